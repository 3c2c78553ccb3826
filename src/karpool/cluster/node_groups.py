"""Node groups, learned from the nodes that belong to them.

A group becomes a pool that supplies nodes of its own shape alone, and each of its nodes gets a place in it, so that
everything that decides about nodes of pools decides about nodes of groups.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from typing import Final

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.catalog.pricing import TOLD_PRICE, capacity_type_of, label_of, price_on_label
from karpool.cluster.nodes import TO_BE_DELETED, is_ephemeral
from karpool.cluster.pairing import with_claims
from karpool.model import labels as names
from karpool.model.group_sizes import UNKNOWN_SIZES, Sizes, sizes_of
from karpool.model.managers import GroupSource, ManagerKind, manager_of
from karpool.model.node import Node
from karpool.model.node_group import GroupMember, NodeGroup
from karpool.model.nodepool import (
    Budget,
    Disruption,
    NodeClaimSpec,
    NodeClaimStatus,
    NodePoolSpec,
    PoolRequirement,
    PoolTemplate,
    TemplateMetadata,
    TemplateSpec,
)
from karpool.model.objects import Objects
from karpool.model.scheduling import Taint
from karpool.wire.duration import NEVER
from karpool.wire.objects import Metadata
from karpool.wire.quantity import Quantity

_PASSING_TAINTS: Final = frozenset(
    {
        TO_BE_DELETED,
        "DeletionCandidateOfClusterAutoscaler",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/out-of-service",
    }
)
_OF_ONE_NODE: Final = frozenset(
    {names.HOSTNAME, names.ZONE, names.INSTANCE_TYPE, names.CAPACITY_TYPE, names.NODEPOOL, *names.ALIASES}
)
"""Labels that do not describe a group: a node's own, and those that requirements say instead."""
_WHOLE: Final = 10**9
_NO_CLAIM: Final = "group member "


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """What the user says of node groups: the label that names them, their sizes, and what a node costs."""

    pool_label: str | None = None
    sizes: Mapping[str, Sizes] = field(default_factory=dict)


NO_OPTIONS: Final = GroupOptions()


@dataclass(frozen=True, slots=True)
class _Members:
    source: GroupSource
    nodes: list[Node]


def with_groups(objects: Objects, options: GroupOptions | None = None) -> Objects:
    """The objects with a pool for each node group, and a place in it for each of its nodes."""
    chosen = options or NO_OPTIONS
    members = group_members(objects, chosen.pool_label)
    if not members:
        return objects
    taken = {pool.name for pool in objects.node_pools}
    nodes = {name: found.nodes for name, found in members.items()}
    sizes = sizes_of(nodes, objects.autoscaler_statuses, chosen.sizes)
    fixed = _why_none_grows(objects)
    uses = Counter(node.spec.provider_id for node in objects.nodes)
    shared = {provider_id for provider_id, count in uses.items() if count > 1}
    groups, places = list[NodeGroup](), list[GroupMember]()
    for name, found in sorted(members.items()):
        title = f"{name} (group)" if name in taken else name
        group = _group(title, found, sizes.get(name, UNKNOWN_SIZES), fixed)
        groups.append(group)
        places += [_place(node, title, shared) for node in found.nodes]
    return replace(
        with_group_prices(objects, chosen),
        node_pools=(*objects.node_pools, *groups),
        node_claims=(*objects.node_claims, *places),
    )


def with_group_prices(objects: Objects, options: GroupOptions) -> Objects:
    """The objects with labels that say what nodes of groups cost, as far as the user told; a node's own label stays."""
    told = {name: sizes.price for name, sizes in options.sizes.items() if sizes.price is not None}
    if not told:
        return objects
    members = group_members(objects, options.pool_label)
    prices = {node.name: price for name, price in told.items() if name in members for node in members[name].nodes}
    return replace(objects, nodes=tuple(_priced(node, prices.get(node.name)) for node in objects.nodes))


def _priced(node: Node, price: float | None) -> Node:
    if price is None or price_on_label(node.metadata.labels) is not None:
        return node
    labels = {**node.metadata.labels, TOLD_PRICE: repr(price)}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def group_members(objects: Objects, pool_label: str | None = None) -> dict[str, _Members]:
    """The nodes of each node group, by the name of the group."""
    members: dict[str, _Members] = {}
    for node, claim in with_claims(objects.nodes, objects.node_claims):
        manager = manager_of(node, claimed=claim is not None, pool_label=pool_label)
        if manager.kind is ManagerKind.NODE_GROUP and manager.source is not None and not node.unreadable:
            members.setdefault(manager.name, _Members(manager.source, [])).nodes.append(node)
    return members


def memberships(objects: Objects) -> dict[str, str]:
    """By the name of a node: the group in which it has a place, after `with_groups`."""
    return {place.status.node_name: place.group for place in objects.node_claims if isinstance(place, GroupMember)}


def _place(node: Node, group: str, shared: Collection[str]) -> GroupMember:
    """The place of a node in its group; an id that several nodes have, as in edited files, says nothing."""
    provider_id = node.spec.provider_id
    return GroupMember(
        metadata=Metadata(
            name=f"{_NO_CLAIM}{node.name}",
            uid=f"{_NO_CLAIM}{node.metadata.uid or node.name}",
            creation_timestamp=node.metadata.creation_timestamp,
        ),
        spec=NodeClaimSpec(expire_after=NEVER),
        status=NodeClaimStatus(node_name=node.name, provider_id="" if provider_id in shared else provider_id),
        group=group,
    )


def _group(name: str, members: _Members, sizes: Sizes, why_none_grows: str) -> NodeGroup:
    nodes, size = members.nodes, len(members.nodes)
    types = _values(label_of(node.metadata.labels, names.INSTANCE_TYPE) for node in nodes)
    zones = _values(label_of(node.metadata.labels, names.ZONE) for node in nodes)
    kinds = _values(capacity_type_of(node.metadata.labels) for node in nodes)
    fixed = why_none_grows or _why_fixed(types, kinds, sizes)
    required = ((names.INSTANCE_TYPE, types), (names.ZONE, zones), (names.CAPACITY_TYPE, kinds))
    template = PoolTemplate(
        metadata=TemplateMetadata(labels=common_labels(nodes)),
        spec=TemplateSpec(
            requirements=tuple(PoolRequirement(key, "In", values) for key, values in required if values),
            taints=lasting_taints(nodes),
            expire_after=NEVER,
        ),
    )
    return NodeGroup(
        metadata=Metadata(name=name, uid=f"group {name}"),
        spec=NodePoolSpec(
            template=template,
            disruption=Disruption(budgets=(Budget(nodes="100%"),)),
            limits={"nodes": Quantity(0 if fixed else (sizes.maximum or 0) * _WHOLE)},
        ),
        title=members.source.title,
        label=members.source.key,
        instance_types=types,
        zones=zones,
        capacity_types=kinds,
        size=size,
        minimum=sizes.minimum,
        maximum=sizes.maximum,
        sizes_from=sizes.source,
        fixed=fixed,
        local_storage_stays=members.source.local_storage_stays,
    )


def _why_none_grows(objects: Objects) -> str:
    """Why no node is added to any group, if none is."""
    if any(node.unreadable for node in objects.nodes):
        return "gets no new node, as a Node cannot be read and may belong to it"
    return "gets no new node, as NodePools supply them here" if objects.node_pools else ""


def _why_fixed(types: Sequence[str], kinds: Sequence[str], sizes: Sizes) -> str:
    """Why no node is added to a group, if none is."""
    if len(types) != 1 or len(kinds) != 1:
        what = "machine types" if len(types) != 1 else "capacity types"
        count = len(types) if len(types) != 1 else len(kinds)
        return f"has nodes of {count or 'unknown'} {what}, so nobody knows what the next one would be"
    return "gets no new node, as its maximum is not known" if sizes.maximum is None else ""


def common_labels(nodes: Sequence[Node]) -> dict[str, str]:
    """The labels that all nodes have alike, without those of a single node."""
    first, *others = (node.metadata.labels for node in nodes)
    return {
        key: value
        for key, value in first.items()
        if key not in _OF_ONE_NODE and all(other.get(key) == value for other in others)
    }


def lasting_taints(nodes: Sequence[Node]) -> tuple[Taint, ...]:
    """The taints that any of the nodes has, without those that come and go."""
    found = {taint: None for node in nodes for taint in node.spec.taints}
    return tuple(taint for taint in found if taint.key not in _PASSING_TAINTS and not is_ephemeral(taint))


def _values(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values) - {""}))


# -- what a new node of a group is like --------------------------------------------------------------------------------


def with_group_shapes(catalog: Catalog, objects: Objects) -> Catalog:
    """The catalogue in which types of node groups have the room that their nodes turn out to have."""
    grouped = memberships(objects)
    seen: dict[str, list[Node]] = {}
    for node in objects.nodes:
        kind = label_of(node.metadata.labels, names.INSTANCE_TYPE)
        if node.name in grouped and kind and node.status.allocatable:
            seen.setdefault(kind, []).append(node)
    if not seen:
        return catalog
    return with_fields(catalog, types=tuple(_as_seen(entry, seen.get(entry.name, ())) for entry in catalog.types))


def _as_seen(entry: InstanceType, nodes: Sequence[Node]) -> InstanceType:
    """A type with the room of the node that has the least; devices that no node shows are not there."""
    if not nodes or entry.observed:
        return entry
    capacity = dict(entry.capacity)
    overhead = dict(entry.overhead)
    for name, whole in entry.capacity.items():
        amounts = [node.status.allocatable[name] for node in nodes if name in node.status.allocatable]
        if amounts:
            least = min(amounts)
            capacity[name] = max(whole, least)
            overhead[name] = capacity[name] - least
        elif "/" in name:
            overhead[name] = whole
    return with_fields(entry, capacity=capacity, overhead=overhead)
