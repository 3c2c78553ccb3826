"""The cluster after a command, predicted on the snapshot itself."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Final

import numpy as np
from msgspec import structs

from karpool.catalog.instance_types import InstanceType, Offering
from karpool.catalog.pricing import cheapest_launch
from karpool.cluster.nodes import StateNode
from karpool.disruption.command import Command, Replacement
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.refills import credited, reservation_of
from karpool.disruption.refusal_cache import SnapshotChange
from karpool.model import labels as names
from karpool.model.node import Node, NodeSpec, NodeStatus
from karpool.model.node_group import GroupMember, NodeGroup
from karpool.model.nodepool import NodeClaim, NodeClaimSpec, NodeClaimStatus, NodePool
from karpool.model.requirements import Requirement
from karpool.wire.objects import Condition, Metadata

# Our own moves start no window: a predicted node counts as quiet since long ago.
LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


def apply(context: DecisionContext, command: Command, replacement_names: Sequence[str]) -> SnapshotChange:
    """Carry out a command on the snapshot; what that changed."""
    snapshot = context.snapshot
    if command.reboot:
        return _reboot(context, command)
    known = snapshot.topology.nodes_seen > 0
    freed = command.terminate_first is not None and _free_reservations(context, command)
    for replacement, name in zip(command.new_nodes, replacement_names, strict=True):
        snapshot.put_node(predicted_node(context, replacement, name))
    fuller: set[int] = set()
    touched: set[int] = set()
    for move in command.places:
        row = snapshot.pods.rows[move.pod]
        touched.update(_groups_of(context, row))
        target = replacement_names[move.target] if isinstance(move.target, int) else move.target
        snapshot.move(row, target)
        fuller.add(snapshot.nodes.rows[target])
        if move.source is None:
            context.pending.discard(move.pod)
    gone = [snapshot.nodes.rows[name] for name in command.nodes]
    left = [row for node in gone for row in snapshot.pods_on(node)]
    touched.update(group for row in left for group in _groups_of(context, row))
    for name in command.nodes:
        snapshot.remove_node(name)
    fuller.update(_leave_behind(context, left))
    # They are evicted and start where room was left for them; pods that wait today are only expected there.
    context.pending.difference_update(command.displaced)
    new = {snapshot.nodes.rows[name] for name in replacement_names}
    reserved = _use_reservations(context, [snapshot.nodes.get(row) for row in new])
    touched.update(_groups_with_other_domains(context, known))
    changed = frozenset(gone) | frozenset(fuller)
    return SnapshotChange(changed, frozenset(new), frozenset(touched), limits=context.memo.limited or reserved or freed)


def _reboot(context: DecisionContext, command: Command) -> SnapshotChange:
    """Let nodes come back from a reboot without what they were rebooted for; pods are where they were."""
    snapshot, policies = context.snapshot, context.settings.repair
    rows = [snapshot.nodes.rows[name] for name in command.nodes]
    for state in map(snapshot.nodes.get, rows):
        if state.node is not None and policies is not None:
            status = state.node.status
            kept = tuple(entry for entry in status.conditions if (entry.type, entry.status) not in policies.covered)
            snapshot.put_node(
                StateNode(structs.replace(state.node, status=structs.replace(status, conditions=kept)), state.claim)
            )
    return SnapshotChange(frozenset(rows), frozenset(rows), frozenset(), limits=False)


def _free_reservations(context: DecisionContext, command: Command) -> bool:
    """Give back the slots of nodes that go first, which what comes next may take."""
    catalog = context.catalog
    for name in command.nodes:
        catalog = credited(
            catalog, reservation_of(context.snapshot.nodes.get(context.snapshot.nodes.rows[name]).labels)
        )
    if catalog is context.catalog:
        return False
    context.replace_catalog(catalog)
    return True


def _use_reservations(context: DecisionContext, new: Sequence[StateNode]) -> bool:
    """Take the new nodes off the reservations that they use, so that a later step does not count on them again."""
    used = Counter(state.labels[names.RESERVATION_ID] for state in new if names.RESERVATION_ID in state.labels)
    if used:
        types = tuple(_less_reserved(entry, used) for entry in context.catalog.types)
        context.replace_catalog(replace(context.catalog, types=types))
    return bool(used)


def _less_reserved(entry: InstanceType, used: Counter[str]) -> InstanceType:
    if not any(offering.reservation_id in used for offering in entry.offerings):
        return entry
    return replace(entry, offerings=tuple(_less_of(offering, used) for offering in entry.offerings))


def _less_of(offering: Offering, used: Counter[str]) -> Offering:
    taken = used[offering.reservation_id] if offering.reservation_id is not None else 0
    left = offering.reservation_capacity - taken
    return replace(offering, reservation_capacity=max(0, left)) if taken else offering


def _leave_behind(context: DecisionContext, rows: Sequence[int]) -> list[int]:
    """Forget the pods that go with their node; those that only its end could move look for room, and fill nodes."""
    snapshot = context.snapshot
    waiting = [row for row in rows if snapshot.pods.get(row).reschedulable]
    for row in set(rows).difference(waiting):
        snapshot.remove_pod(snapshot.pods.get(row).key)
    context.bind_waiting(waiting)
    return [int(snapshot.pods.node_of[row]) for row in waiting if snapshot.pods.node_of[row] >= 0]


def _groups_of(context: DecisionContext, row: int) -> list[int]:
    snapshot = context.snapshot
    labels, number = int(snapshot.pods.labels_of[row]), int(snapshot.pods.class_of[row])
    return snapshot.topology.counted_by.row(labels) + snapshot.classes.declared.row(number)


def _groups_with_other_domains(context: DecisionContext, known: "np.typing.NDArray[np.bool_]") -> list[int]:
    """The groups that know of other domains than before, because nodes came or went."""
    topology = context.snapshot.topology
    now = topology.nodes_seen > 0
    if now.shape == known.shape:
        changed = {(int(f), int(k)) for f, k, _ in np.argwhere(now != known)}
    else:
        changed = {(int(f), int(k)) for f in range(now.shape[0]) for k in range(now.shape[1])}
    if not changed:
        return []
    count = len(topology.groups)
    pairs = zip(topology.filter[:count].tolist(), topology.key[:count].tolist(), strict=True)
    return [number for number, pair in enumerate(pairs) if pair in changed]


def predicted_node(context: DecisionContext, replacement: Replacement, name: str) -> StateNode:
    """The node that a replacement becomes if its first type is launched where that is cheapest."""
    catalog = context.catalog
    entry = catalog.in_pool(catalog.by_name[replacement.instance_types[0]], replacement.pool)
    pool = context.pools[replacement.pool]
    labels = _labels(replacement, entry, pool, name)
    conditions = tuple(
        Condition(type=kind, status="True", last_transition_time=LONG_AGO)
        for kind in ("Launched", "Registered", "Initialized")
    )
    stamps = (names.NODEPOOL_HASH, names.NODEPOOL_HASH_VERSION)
    hashes = {key: value for key, value in pool.metadata.annotations.items() if key in stamps}
    spec = pool.spec.template.spec
    node = Node(
        metadata=Metadata(name=name, uid=name, labels=labels, creation_timestamp=context.now),
        spec=NodeSpec(provider_id=f"predicted://{name}", taints=spec.taints),
        status=NodeStatus(
            capacity=dict(entry.capacity),
            allocatable=dict(entry.allocatable),
            conditions=(Condition(type="Ready", status="True"),),
        ),
    )
    claim = NodeClaim(
        metadata=Metadata(name=name, uid=name, labels=labels, annotations=hashes, creation_timestamp=context.now),
        spec=NodeClaimSpec(
            taints=spec.taints,
            node_class_ref=spec.node_class_ref,
            expire_after=spec.expire_after,
            termination_grace_period=spec.termination_grace_period,
        ),
        status=NodeClaimStatus(node_name=name, provider_id=f"predicted://{name}", conditions=conditions),
    )
    return StateNode(node, claim if not isinstance(pool, NodeGroup) else _member(claim, pool))


def _member(claim: NodeClaim, group: NodeGroup) -> GroupMember:
    """The place of a new node in its group."""
    return GroupMember(metadata=claim.metadata, spec=claim.spec, status=claim.status, group=group.name)


def _labels(replacement: Replacement, entry: InstanceType, pool: NodePool, name: str) -> dict[str, str]:
    offering = cheapest_launch(entry, replacement.requirements)
    known = replacement.requirements.intersect(entry.requirements)
    known = known.intersect(offering.requirements) if offering else known
    labels = {key: _some_value(allowed) for key, allowed in known.items() if not allowed.absent}
    labels.update(pool.spec.template.metadata.labels)
    if isinstance(pool, NodeGroup):
        return {**labels, names.HOSTNAME: name}
    labels.update(
        {names.NODEPOOL: pool.name, names.HOSTNAME: name, names.REGISTERED: "true", names.INITIALIZED: "true"}
    )
    return labels


def _some_value(allowed: Requirement) -> str:
    """A value that a label may have: of those listed, else a number within bounds, else any word."""
    if not allowed.complement:
        return "linux" if "linux" in allowed.values else min(allowed.values, default="")
    if allowed.lower is not None or allowed.upper is None:
        numbers = map(str, count(allowed.lower or 0))
    else:
        numbers = map(str, count(allowed.upper, -1))
    return next(number for number in numbers if allowed.has(number))
