"""Logs and counts what happens to nodes, claims and pods, whoever caused it."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog

from karpool.cluster.nodes import StateNode
from karpool.controller.store import ClusterStore
from karpool.disruption.candidates.costs import unreadable_cost
from karpool.disruption.command import Cause
from karpool.disruption.repair.diagnosis import diagnose
from karpool.disruption.repair.policies import RepairPolicies
from karpool.execution.conditions import DISRUPTION_REASON, DRAINED, INITIALIZED, REBOOT_SUCCEEDED
from karpool.execution.deadlines import deadline_of
from karpool.execution.tickets import ticket_of
from karpool.model.labels import CAPACITY_TYPE, NODEPOOL, REBOOT_ISSUED, REGISTERED, ZONE
from karpool.model.node import Node
from karpool.model.nodepool import REBOOTING, NodeClaim
from karpool.model.pod import Pod
from karpool.observability.metrics import DisruptedClaim, Metrics
from karpool.wire.objects import Object, condition, is_true

_log = structlog.get_logger()
_AT_ONCE: Final = timedelta(seconds=1)
"""How far a deadline of now may lie behind the time of a deletion, which is in whole seconds."""
_LONGEST_VALUE: Final = 40
_CONSOLIDATION: Final = (Cause.EMPTY, Cause.UNDERUTILIZED)


class LifecycleReporter:
    def __init__(
        self,
        store: ClusterStore,
        metrics: Metrics,
        clock: Callable[[], datetime],
        repair: RepairPolicies | None = None,
    ) -> None:
        """`repair`: by which it is known what was wrong with a node that was repaired."""
        self._store = store
        self._metrics = metrics
        self._clock = clock
        self._repair = repair
        self._movable = Counter(pod.spec.node_name for pod in store.pods if pod.reschedulable)
        """By name of a node: how many of its pods need another place when it goes."""
        for pod in store.pods:
            _tell_of_cost(pod)
        store.claims.watch(self._claim)
        store.nodes.watch(self._node)
        store.pods.watch(self._pod)

    def _since(self, moment: datetime | None) -> float:
        return 0.0 if moment is None else max(0.0, (self._clock() - moment).total_seconds())

    def _claim(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        claim = new or old
        if claim is None:
            return
        if not (old is not None and old.terminating) and (new is None or new.terminating):
            _log.info("node deletion started", **_fields(claim), reason=_cause(claim))
            self._disrupted(claim)
        self._reboot(old, new)
        if new is None:
            seconds = self._since(claim.metadata.deletion_timestamp)
            _log.info("node deleted", **_fields(claim), after_seconds=round(seconds, 1))
            labels = claim.metadata.labels
            self._metrics.claim_terminated(
                _pool(claim), labels.get(CAPACITY_TYPE, ""), labels.get(ZONE, ""), seconds=seconds
            )
        elif new.is_true(INITIALIZED) and old is not None and not old.is_true(INITIALIZED):
            seconds = self._since(new.metadata.creation_timestamp)
            _log.info("node initialized", **_fields(new), after_seconds=round(seconds, 1))
        elif new.is_true(DRAINED) and not (old is not None and old.is_true(DRAINED)):
            _log.info("node drained", **_fields(new))
            self._metrics.node_drained(_pool(new))

    def _disrupted(self, claim: NodeClaim) -> None:
        """Count a NodeClaim that is to go, its pods, and what was wrong with its node."""
        cause, pool = _cause(claim), self._store.pools.get(_pool(claim))
        disruption = DisruptedClaim(
            pool=_pool(claim),
            reason=cause,
            capacity_type=claim.metadata.labels.get(CAPACITY_TYPE, ""),
            policy="" if pool is None or cause not in _CONSOLIDATION else pool.spec.disruption.consolidation_policy,
            mode=_termination_mode(claim),
            pods=self._movable[claim.status.node_name],
        )
        self._metrics.claim_disrupted(disruption)
        if cause == Cause.UNHEALTHY:
            self._metrics.unhealthy_disrupted(disruption, self._condition(claim), claim.status.image_id)

    def _condition(self, claim: NodeClaim) -> str:
        """The condition that a node is repaired for; empty if it has none any more."""
        state = StateNode(self._store.nodes.get(claim.status.node_name), claim)
        diagnosis = None if self._repair is None else diagnose(self._repair, state, self._clock())
        return "" if diagnosis is None else diagnosis.condition.type

    def _reboot(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        """Report a reboot that has ended."""
        before = None if old is None else condition(old.status.conditions, REBOOTING)
        after = None if new is None else condition(new.status.conditions, REBOOTING)
        if old is None or before is None or after is None or before.status != "True" or after.status == "True":
            return
        result, _, why = after.message.partition(": ")
        seconds = self._since(before.last_transition_time)
        issued = old.metadata.annotations.get(REBOOT_ISSUED)
        succeeded = after.reason == REBOOT_SUCCEEDED
        recovery = self._since(datetime.fromisoformat(issued)) if issued is not None and succeeded else None
        self._metrics.reboot_ended(result, seconds=seconds, recovery=recovery)
        _log.info("node reboot ended", **_fields(old), result=result, why=why, after_seconds=round(seconds, 1))

    def _node(self, old: Node | None, new: Node | None) -> None:
        if new is None and old is not None:
            meta = old.metadata
            seconds, age = self._since(meta.deletion_timestamp), self._since(meta.creation_timestamp)
            self._metrics.node_terminated(_pool(old), _zone(old), seconds=seconds, age=age)
        elif new is not None and _registered(new) and not (old is not None and _registered(old)):
            self._metrics.node_created(_pool(new), _zone(new))

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        for pod, change in ((old, -1), (new, 1)):
            if pod is not None and pod.bound and pod.reschedulable:
                self._movable[pod.spec.node_name] += change
        if new is not None and (old is None or old.metadata.annotations != new.metadata.annotations):
            _tell_of_cost(new)
        if new is None or old is None:
            return
        created = new.metadata.creation_timestamp
        if new.bound and not old.bound:
            self._metrics.pod_bound(self._since(created), devices=bool(new.spec.resource_claims))
        if is_true(new.status.conditions, "Ready") and not is_true(old.status.conditions, "Ready"):
            self._metrics.pod_started(self._since(created))


def _tell_of_cost(pod: Pod) -> None:
    annotation = unreadable_cost(pod)
    if annotation is not None:
        value = pod.metadata.annotations[annotation][:_LONGEST_VALUE]
        _log.warning(
            "the cost of a pod is no 32-bit number; it counts as 0", pod=pod.key, annotation=annotation, value=value
        )


def _pool(item: Object) -> str:
    return item.metadata.labels.get(NODEPOOL, "")


def _zone(node: Node) -> str:
    return node.metadata.labels.get(ZONE, "")


def _termination_mode(claim: NodeClaim) -> str:
    """Whether pods have all the time they want to leave, some, or none."""
    ticket, own = ticket_of(claim), claim.spec.termination_grace_period
    deadline, deleted = deadline_of(claim), claim.metadata.deletion_timestamp
    bound = None if own is None else own.delta
    if ticket is not None and ticket.drain_seconds is not None:
        bound = timedelta(seconds=ticket.drain_seconds)
    elif deadline is not None and deleted is not None and deadline - deleted <= _AT_ONCE:
        bound = timedelta(0)
    if bound is None:
        return "graceful"
    return "eventual" if bound > timedelta(0) else "forceful"


def _fields(claim: NodeClaim) -> dict[str, str]:
    ticket = ticket_of(claim)
    fields = {"claim": claim.name, "node": claim.status.node_name, "pool": _pool(claim)}
    return fields if ticket is None else {**fields, "command": ticket.id}


def _cause(claim: NodeClaim) -> str:
    disruption = condition(claim.status.conditions, DISRUPTION_REASON)
    if disruption is not None and disruption.status == "True":
        return disruption.reason
    meta, longest = claim.metadata, claim.spec.expire_after.delta
    if longest is None or meta.creation_timestamp is None or meta.deletion_timestamp is None:
        return "deleted"
    return "expired" if meta.deletion_timestamp - meta.creation_timestamp >= longest else "deleted"


def _registered(node: Node) -> bool:
    return node.metadata.labels.get(REGISTERED) == "true"
