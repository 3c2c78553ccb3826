"""Somebody has to answer for NodeClaims: where another controller launches and terminates them, and it is gone.

It answers by what it writes: a condition on a NodeClaim that was created, and a condition, or the deletion of the Node,
on one that was deleted. A claim that it leaves alone while it still writes on others is a matter of that claim.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.reasons import ReasonCode, clock
from karpool.model.labels import TERMINATION_FINALIZER
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodeClassRef
from karpool.model.objects import Objects

_OWN: Final = "DisruptionReason"
"""The condition that commands write themselves."""
Kind = tuple[str, str]
"""Group and kind of node classes: each has its own controller."""


class _Silence(NamedTuple):
    patience: timedelta
    heard: datetime | None
    """When somebody was last heard of, on any claim."""
    now: datetime

    def since(self, asked: datetime | None) -> bool:
        """Whether what was asked at a moment is overdue, and nobody was heard of after it should have been done."""
        if asked is None or self.now < asked + self.patience:
            return False
        return self.heard is None or self.heard < asked + self.patience


def nobody_answers(objects: Objects, settings: BrakeSettings, now: datetime) -> Iterator[Stop]:
    """Stops for the pools of a kind of node classes: no launches while none is answered, nothing if no deletion is."""
    patience = settings.answered_within
    if not settings.launched_by_others or not patience:
        return
    kinds: dict[Kind, list[NodeClaim]] = {}
    for claim in objects.node_claims:
        if not claim.unreadable:
            kinds.setdefault(_kind(claim.spec.node_class_ref), []).append(claim)
    nodes = {node.name: node for node in objects.nodes}
    for kind, claims in sorted(kinds.items()):
        heard = max((moment for claim in claims for moment in _written(claim)), default=None)
        silence = _Silence(patience, heard, now)
        deleted = [
            claim for claim in claims if _is_left(claim, nodes) and silence.since(claim.metadata.deletion_timestamp)
        ]
        created = [claim for claim in claims if _is_new(claim) and silence.since(claim.metadata.creation_timestamp)]
        pools = [pool.name for pool in objects.node_pools if _kind(pool.spec.template.spec.node_class_ref) == kind]
        for pool in pools:
            if deleted:
                yield _not_terminated(deleted, pool, now)
            elif created:
                yield _not_launched(created, pool, now)


def _kind(ref: NodeClassRef) -> Kind:
    return ref.group, ref.kind


def _written(claim: NodeClaim) -> Iterator[datetime]:
    """When somebody else wrote on a claim, as far as it shows."""
    for entry in claim.status.conditions:
        if entry.type != _OWN and entry.last_transition_time is not None:
            yield entry.last_transition_time


def _is_new(claim: NodeClaim) -> bool:
    """Whether nobody has written anything on a claim that is to be launched."""
    said = any(entry.type != _OWN for entry in claim.status.conditions)
    return not claim.terminating and not claim.status.provider_id and not said


def _is_left(claim: NodeClaim, nodes: dict[str, Node]) -> bool:
    """Whether nobody has begun to end the node of a claim that was deleted."""
    deleted = claim.metadata.deletion_timestamp
    if deleted is None or TERMINATION_FINALIZER not in claim.metadata.finalizers:
        return False
    if any(moment >= deleted.replace(microsecond=0) for moment in _written(claim)):
        return False
    name = claim.status.node_name
    return not name or (name in nodes and nodes[name].metadata.deletion_timestamp is None)


def _first(claims: Iterable[NodeClaim], now: datetime) -> NodeClaim:
    return min(claims, key=lambda claim: (claim.metadata.creation_timestamp or now, claim.name))


def _not_launched(claims: list[NodeClaim], pool: str, now: datetime) -> Stop:
    first = _first(claims, now)
    since = clock(first.metadata.creation_timestamp or now, now)
    message = f"was created at {since}, and nobody answers for it: only empty nodes go until somebody does"
    return Stop(ReasonCode.NOBODY_ANSWERS, message, f"NodeClaim {first.name}", pool, spares_empty=True)


def _not_terminated(claims: list[NodeClaim], pool: str, now: datetime) -> Stop:
    first = _first(claims, now)
    since = clock(first.metadata.deletion_timestamp or now, now)
    message = f"was deleted at {since}, and nobody terminates it: nothing goes until somebody does"
    return Stop(ReasonCode.NOBODY_ANSWERS, message, f"NodeClaim {first.name}", pool)
