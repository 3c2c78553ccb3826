"""The cluster is unhealthy: too many of its nodes, or of those of one zone, are not ready or gone."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final, NamedTuple

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.reasons import ReasonCode
from karpool.model.labels import INITIALIZED, ZONE
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.wire.objects import condition, is_true

_STARTUP: Final = timedelta(minutes=15)
"""How long a new node may take to become ready, as Cluster Autoscaler has it."""
_CALM: Final = timedelta(minutes=5)
"""How long a node that was down must have been ready before it counts as ready, so that the brake does not flap."""
_LEAST_OF_ZONE: Final = 2
"""So many nodes of a zone must be down: one alone is the failure of a machine, whatever its part of the zone is."""
_ASKED_FOR: Final = "DisruptionReason"
"""The condition of a NodeClaim that a controller removes on purpose."""


class _State(Enum):
    WELL = ""
    DOWN = "not ready"
    UNKNOWN = "cannot be read"
    GONE = "gone without being asked to"
    RECENT = "ready for less than 5m"


class _Member(NamedTuple):
    zone: str
    state: _State


class _Removed(NamedTuple):
    """By name of a node: whose NodeClaim somebody asked to be removed, and which have one at all."""

    asked_for: frozenset[str]
    claimed: frozenset[str]

    @classmethod
    def of(cls, objects: Objects) -> "_Removed":
        claims = objects.node_claims
        asked_for = (claim.status.node_name for claim in claims if is_true(claim.status.conditions, _ASKED_FOR))
        return cls(frozenset(asked_for), frozenset(claim.status.node_name for claim in claims))

    def on_purpose(self, node: Node) -> bool:
        """Whether somebody removes a node, and not because its instance is gone: that gives its NodeClaim no reason."""
        return node.terminating and (node.name in self.asked_for or node.name not in self.claimed)


class _Glance(NamedTuple):
    """What is seen of all nodes at a moment; of each it holds as long as that is the same object."""

    nodes: tuple[Node, ...]
    at: datetime
    down: tuple[Node, ...]
    names: frozenset[str]
    well: Mapping[str, Node]


_NOTHING: Final = _Glance((), datetime.min.replace(tzinfo=UTC), (), frozenset(), {})
_last: list[_Glance] = [_NOTHING]
"""Answers of the last time, which depend on nothing but what was asked."""
_last_claims: list[tuple[tuple[NodeClaim, ...], frozenset[str], list[NodeClaim]]] = [((), frozenset(), [])]
"""The NodeClaims of the last time, the names of nodes, and those of the claims whose node is none of these."""


def _at_a_glance(nodes: tuple[Node, ...], now: datetime) -> _Glance:
    """The nodes that are not well at a moment or were not a while before: one that does not change only gets well."""
    last = _last[0]
    if nodes is not last.nodes or now < last.at:
        known = last.well if now >= last.at else {}
        well = {node.metadata.name: node for node in nodes}
        unknown = [node for name, node in well.items() if known.get(name) is not node]
        down = tuple(node for node in unknown if _state(node, now) is not _State.WELL)
        names = frozenset(well)
        for node in down:
            well.pop(node.name, None)
        last = _last[0] = _Glance(nodes, now, down, names, well)
    return last


def unhealthy(objects: Objects, settings: BrakeSettings, now: datetime) -> Iterator[Stop]:
    """A stop of everything while too much of the cluster is unready: what looks unused may only be unreachable."""
    # The brake is asked before every decision, and mostly nothing is the matter: that is to be seen at a glance.
    seen = _at_a_glance(objects.nodes, now)
    down = [node for node in seen.down if _may_be_down(node, now)]
    gone, least = [*_gone(objects, seen.names)], min(_LEAST_OF_ZONE, settings.unready_nodes_allowed + 1)
    if len(down) + len(gone) >= least:
        removed = _Removed.of(objects)
        down = [node for node in down if not removed.on_purpose(node)]
    if len(down) + len(gone) < least:
        return
    members = [*_nodes(objects, now), *gone]
    message = _whole_cluster(members, settings) or _one_zone(members, settings)
    if message is not None:
        yield Stop(ReasonCode.CLUSTER_UNHEALTHY, message, "Cluster", halts=True)


def _whole_cluster(members: Sequence[_Member], settings: BrakeSettings) -> str | None:
    unready = _unready(members)
    if unready <= settings.unready_nodes_allowed or not _too_many(unready, len(members), settings):
        return None
    return (
        f"{unready} of {len(members)} nodes are not ready{_details(members)}, "
        f"more than {settings.most_unready_percent:g}% and more than {settings.unready_nodes_allowed}"
    )


def _one_zone(members: Sequence[_Member], settings: BrakeSettings) -> str | None:
    zones: dict[str, list[_Member]] = {}
    for member in members:
        zones.setdefault(member.zone, []).append(member)
    zones.pop("", None)
    for zone, here in sorted(zones.items()):
        unready = _unready(here)
        looked_at = len(here) >= settings.least_nodes_of_zone and unready >= _LEAST_OF_ZONE
        if looked_at and _too_many(unready, len(here), settings):
            most = f"{settings.most_unready_percent:g}%"
            told = f"{unready} of {len(here)} are not ready{_details(here)}"
            return f"zone {zone} is losing its nodes: {told}, more than {most}"
    return None


def _unready(members: Sequence[_Member]) -> int:
    return sum(member.state is not _State.WELL for member in members)


def _details(members: Sequence[_Member]) -> str:
    """What else than being down is the matter, and with how many."""
    counts = Counter(member.state for member in members if member.state not in (_State.WELL, _State.DOWN))
    listed = ", ".join(f"{number} {state.value}" for state, number in sorted(counts.items(), key=lambda e: e[0].value))
    return f" ({listed})" if listed else ""


def _too_many(unready: int, nodes: int, settings: BrakeSettings) -> bool:
    return unready * 100 > nodes * settings.most_unready_percent


def _nodes(objects: Objects, now: datetime) -> Iterator[_Member]:
    """Nodes that have been up; those that are removed on purpose count as well, until they are gone."""
    removed = _Removed.of(objects)
    for node in objects.nodes:
        state = _state(node, now)
        if state is not _State.WELL:
            if _starting(node, state, now):
                continue
            if removed.on_purpose(node):
                state = _State.WELL
        yield _Member(node.metadata.labels.get(ZONE, ""), state)


def _gone(objects: Objects, names: frozenset[str]) -> Iterator[_Member]:
    """Nodes that had registered and are not there any more, though nobody deletes their NodeClaims."""
    claims, known, without = _last_claims[0]
    if claims is not objects.node_claims or known is not names:
        without = [claim for claim in objects.node_claims if claim.status.node_name not in names]
        _last_claims[0] = objects.node_claims, names, without
    for claim in without:
        if not claim.terminating and _had_node(claim):
            yield _Member(claim.metadata.labels.get(ZONE, ""), _State.GONE)


def _had_node(claim: NodeClaim) -> bool:
    return bool(claim.status.node_name) and claim.is_true("Registered")


def _state(node: Node, now: datetime) -> _State:
    """How a node is: one without a Ready condition is not known to be ready."""
    if node.unreadable:
        return _State.UNKNOWN
    ready = condition(node.status.conditions, "Ready")
    if ready is None or ready.status != "True":
        return _State.DOWN
    since, created = ready.last_transition_time, node.metadata.creation_timestamp
    if since is None or now - since >= _CALM or (created is not None and since - created <= _STARTUP):
        return _State.WELL
    return _State.RECENT


def _may_be_down(node: Node, now: datetime) -> bool:
    """Whether a node counts as not ready, unless somebody removes it on purpose."""
    state = _state(node, now)
    return state is not _State.WELL and not _starting(node, state, now)


def _starting(node: Node, state: _State, now: datetime) -> bool:
    """Whether a node is so new that it may not have been ready yet."""
    created = node.metadata.creation_timestamp
    young = created is not None and now - created < _STARTUP
    return young and state is _State.DOWN and node.metadata.labels.get(INITIALIZED) != "true"
