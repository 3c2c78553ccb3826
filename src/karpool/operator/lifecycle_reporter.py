"""Counts and tells what happens to nodes, claims and pods, whoever made it happen."""

from collections.abc import Callable
from datetime import datetime

import structlog

from karpool.controller.store import ClusterStore
from karpool.execution.conditions import DISRUPTION_REASON, DRAINED, INITIALIZED
from karpool.execution.tickets import commands_in_progress, ticket_of
from karpool.model.labels import CAPACITY_TYPE, NODEPOOL, REGISTERED
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.observability.metrics import Metrics
from karpool.wire.objects import Object, condition, is_true

_log = structlog.get_logger()


class LifecycleReporter:
    """Hears of every change in a store from now on."""

    def __init__(self, store: ClusterStore, metrics: Metrics, clock: Callable[[], datetime]) -> None:
        self._metrics = metrics
        self._clock = clock
        self._claims = store.claims
        store.claims.watch(self._claim)
        store.nodes.watch(self._node)
        store.pods.watch(self._pod)

    def _since(self, moment: datetime | None) -> float:
        return 0.0 if moment is None else max(0.0, (self._clock() - moment).total_seconds())

    def _claim(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        last = new or old
        if last is None:
            return
        if not _going(old) and (new is None or _going(new)):
            _log.info("a node goes", **_named(last), reason=_why(last))
            self._metrics.claim_disrupted(_pool(last), _why(last), last.metadata.labels.get(CAPACITY_TYPE, ""))
        if new is None:
            seconds = self._since(last.metadata.deletion_timestamp)
            _log.info("a node is gone", **_named(last), after_seconds=round(seconds, 1))
            self._metrics.claim_terminated(_pool(last), seconds=seconds)
            self._perhaps_done(last)
        elif new.is_true(INITIALIZED) and old is not None and not old.is_true(INITIALIZED):
            _log.info("a node is ready", **_named(new), after_seconds=round(self._since(_created(new)), 1))
        elif new.is_true(DRAINED) and not (old is not None and old.is_true(DRAINED)):
            _log.info("a node is drained", **_named(new))
            self._metrics.node_drained(_pool(new))

    def _perhaps_done(self, gone: NodeClaim) -> None:
        """Tell of a command when the last of its nodes is gone."""
        ticket = ticket_of(gone)
        if ticket is not None and not any(one.ticket.id == ticket.id for one in commands_in_progress(self._claims)):
            _log.info("command done", command=ticket.id, seconds=round(self._since(ticket.created), 1))

    def _node(self, old: Node | None, new: Node | None) -> None:
        if new is None and old is not None:
            meta = old.metadata
            seconds, age = self._since(meta.deletion_timestamp), self._since(meta.creation_timestamp)
            self._metrics.node_terminated(_pool(old), seconds=seconds, age=age)
        elif new is not None and _registered(new) and not (old is not None and _registered(old)):
            self._metrics.node_created(_pool(new))

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or old is None:
            return
        created = new.metadata.creation_timestamp
        if new.bound and not old.bound:
            self._metrics.pod_bound(self._since(created))
        if is_true(new.status.conditions, "Ready") and not is_true(old.status.conditions, "Ready"):
            self._metrics.pod_started(self._since(created))


def _pool(thing: Object) -> str:
    return thing.metadata.labels.get(NODEPOOL, "")


def _named(claim: NodeClaim) -> dict[str, str]:
    ticket = ticket_of(claim)
    said = {"claim": claim.name, "node": claim.status.node_name, "pool": _pool(claim)}
    return said if ticket is None else {**said, "command": ticket.id}


def _created(claim: NodeClaim) -> datetime | None:
    return claim.metadata.creation_timestamp


def _going(claim: NodeClaim | None) -> bool:
    return claim is not None and claim.metadata.deletion_timestamp is not None


def _why(claim: NodeClaim) -> str:
    """Why a claim goes, as far as it shows."""
    said = condition(claim.status.conditions, DISRUPTION_REASON)
    if said is not None and said.status == "True":
        return said.reason
    meta, longest = claim.metadata, claim.spec.expire_after.delta
    if longest is None or meta.creation_timestamp is None or meta.deletion_timestamp is None:
        return "deleted"
    return "expired" if meta.deletion_timestamp - meta.creation_timestamp >= longest else "deleted"


def _registered(node: Node) -> bool:
    return node.metadata.labels.get(REGISTERED) == "true"
