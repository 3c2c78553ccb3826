"""What would hold the pods of node groups for less: NodePools with a free choice of types, or groups of other machines.

All pods of the groups are placed anew, on new nodes alone: what stands in the way of moving them is not asked, as a
move to other machines drains every node once.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog
from karpool.catalog.machines import AMD_GPU, GPU
from karpool.catalog.places import place_of
from karpool.cluster.node_groups import memberships
from karpool.disruption.context import DecisionContext
from karpool.disruption.policies import HAIR
from karpool.disruption.suggested_fleets import FleetFinder, SuggestedFleet
from karpool.model import labels as names
from karpool.model.node_group import GroupMember, NodeGroup
from karpool.model.nodepool import (
    NodeClassRef,
    NodePool,
    NodePoolSpec,
    PoolRequirement,
    PoolTemplate,
    TemplateMetadata,
    TemplateSpec,
)
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.wire.objects import Metadata

MakeContext = Callable[[Objects], DecisionContext]


class _Provider(NamedTuple):
    """How Karpenter's provider of a cloud labels machines.

    `sort`: by what, and `general` what of that is for any purpose; `generation`: what counts them, up to `old` for
    machines that nobody would begin with.
    """

    prefix: str
    node_class: NodeClassRef
    sort: str
    general: tuple[str, ...]
    generation: str = ""
    old: int = 0


_PROVIDERS: Final = (
    _Provider(
        "karpenter.k8s.aws/instance-",
        NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default"),
        sort="category",
        general=("c", "m", "r"),
        generation="generation",
        old=4,
    ),
    _Provider(
        "karpenter.azure.com/sku-",
        NodeClassRef(group="karpenter.azure.com", kind="AKSNodeClass", name="default"),
        sort="family",
        general=("D", "E", "F"),
    ),
    _Provider(
        "karpenter.k8s.gcp/instance-",
        NodeClassRef(group="karpenter.k8s.gcp", kind="GCENodeClass", name="default"),
        sort="category",
        general=("c", "e", "n", "t"),
    ),
)
_GPU: Final = "gpu-name"
_LONGEST_NAME: Final = 40


@dataclass(frozen=True, slots=True)
class PoolSuggestion:
    """A NodePool in the place of groups, what it would come to, and what the groups cost today."""

    pool: NodePool
    groups: tuple[str, ...]
    nodes: int
    price: float | None
    fleet: SuggestedFleet


@dataclass(frozen=True, slots=True)
class GroupSuggestion:
    """A group with another machine type, how many nodes it would have, and what it costs today."""

    group: str
    nodes: int
    price: float | None
    fleet: SuggestedFleet


@dataclass(frozen=True, slots=True)
class Suggestions:
    pools: tuple[PoolSuggestion, ...]
    groups: tuple[GroupSuggestion, ...]


def suggestions(
    objects: Objects, catalog: Catalog, prices: Mapping[str, float | None], make_context: MakeContext
) -> Suggestions:
    """What to have instead of node groups; `prices`: of today's nodes, by name."""
    groups = [pool for pool in objects.node_pools if isinstance(pool, NodeGroup)]
    return _Suggester(objects, catalog, prices, make_context, groups).suggest()


class _Suggester:
    def __init__(
        self,
        objects: Objects,
        catalog: Catalog,
        prices: Mapping[str, float | None],
        make_context: MakeContext,
        groups: Sequence[NodeGroup],
    ) -> None:
        self.catalog, self.prices, self.groups, self._make_context = catalog, prices, groups, make_context
        self.members: dict[str, list[str]] = {}
        for node, group in memberships(objects).items():
            self.members.setdefault(group, []).append(node)
        claims = tuple(claim for claim in objects.node_claims if not isinstance(claim, GroupMember))
        self.places = {node.name: place_of(node.metadata.labels, node.spec.provider_id) for node in objects.nodes}
        self.taken = Counter[str]()
        self.plain = replace(objects, node_pools=(), node_claims=claims)
        self.pods: dict[str, list[Pod]] = {}
        for pod in objects.pods:
            if pod.bound and not pod.terminal:
                self.pods.setdefault(pod.spec.node_name, []).append(pod)

    def suggest(self) -> Suggestions:
        alike: dict[tuple[object, ...], list[NodeGroup]] = {}
        for group in self.groups:
            labels = self._asked_labels(group)
            # A place on demand is another thing than one on spot, and a GPU another than a core.
            key = (
                self._places(group),
                tuple(group.spec.template.spec.taints),
                tuple(sorted(labels.items())),
                _arch(group),
                group.capacity_types,
                self._devices(group),
            )
            alike.setdefault(key, []).append(group)
        found = [self._suggested(together) for together in alike.values() if any(map(self._known, together))]
        return Suggestions(tuple(pool for pool, _ in found), tuple(group for _, groups in found for group in groups))

    def _suggested(self, groups: Sequence[NodeGroup]) -> tuple[PoolSuggestion, list[GroupSuggestion]]:
        """A NodePool in the place of groups, and for each of them another machine type."""
        nodes = [node for group in groups for node in self.members[group.name]]
        pool = self._node_pool(groups)
        finder = self._finder(pool, nodes)
        fleet = finder.cheapest({kind for group in groups for kind in group.instance_types})
        named = tuple(group.name for group in groups)
        suggestion = PoolSuggestion(pool, named, len(nodes), self._price(nodes), fleet)
        others = (self._other_machines(group, finder.usable) for group in groups)
        return suggestion, [found for found in others if found is not None]

    def _places(self, group: NodeGroup) -> frozenset[tuple[str, str]]:
        """The clouds and regions of a group: no node class launches machines of two."""
        places = (self.places[name] for name in self.members[group.name])
        return frozenset(place for place in places if any(place))

    def _devices(self, group: NodeGroup) -> frozenset[str]:
        """The GPUs of a group's machines: their names where labels tell them, and the resources that they are."""
        entries = [entry for kind in group.instance_types if (entry := self.catalog.by_name.get(kind)) is not None]
        keys = [provider.prefix + _GPU for provider in _PROVIDERS]
        told = [entry.requirements[key].values for entry in entries for key in keys if key in entry.requirements]
        resources = {name for entry in entries for name in entry.capacity if name in (GPU, AMD_GPU)}
        return frozenset(resources).union(*told)

    def _known(self, group: NodeGroup) -> bool:
        """Whether anybody sells machines like those of a group, as far as is known."""
        entries = (self.catalog.by_name.get(kind) for kind in group.instance_types)
        return any(entry is not None and not entry.observed for entry in entries)

    def _node_pool(self, groups: Sequence[NodeGroup]) -> NodePool:
        """A NodePool for the pods of groups that have the same taints, architecture and labels that pods ask for."""
        first = groups[0]
        name = "-".join(group.name for group in groups)
        rules = [
            (names.ARCH, (_arch(first),)),
            (names.OS, ("linux",)),
            (names.CAPACITY_TYPE, _union(group.capacity_types for group in groups)),
            (names.ZONE, _zones(groups)),
        ]
        required = [PoolRequirement(key, "In", values) for key, values in rules if values and values[0]]
        provider = self._provider(groups)
        spec = TemplateSpec(
            requirements=(*required, *(() if provider is None else self._machines_like(groups, provider))),
            taints=tuple(first.spec.template.spec.taints),
            node_class_ref=NodeClassRef() if provider is None else provider.node_class,
        )
        metadata = TemplateMetadata(labels=self._asked_labels(first))
        return NodePool(
            metadata=Metadata(name=self._free_name(name if len(name) <= _LONGEST_NAME else "general")),
            spec=NodePoolSpec(template=PoolTemplate(metadata=metadata, spec=spec)),
        )

    def _free_name(self, name: str) -> str:
        """The name, with a number if another suggestion has it."""
        self.taken[name] += 1
        return name if self.taken[name] == 1 else f"{name}-{self.taken[name]}"

    def _provider(self, groups: Sequence[NodeGroup]) -> _Provider | None:
        """Whose machines all nodes of some groups are; None if nobody knows that."""
        return next((entry for entry in _PROVIDERS if self._values(groups, entry.prefix + entry.sort)), None)

    def _machines_like(self, groups: Sequence[NodeGroup], provider: _Provider) -> Iterator[PoolRequirement]:
        """The machines of today's sorts and of the general ones: with today's GPUs, and else of no old generation."""
        sort, gpu = provider.prefix + provider.sort, provider.prefix + _GPU
        yield PoolRequirement(sort, "In", tuple(sorted((self._values(groups, sort) or set()).union(provider.general))))
        if gpus := self._values(groups, gpu):
            yield PoolRequirement(gpu, "In", tuple(sorted(gpus)))
        elif provider.generation:
            yield PoolRequirement(provider.prefix + provider.generation, "Gt", (str(provider.old),))

    def _values(self, groups: Sequence[NodeGroup], key: str) -> set[str] | None:
        """The values of a label of today's machines; None if one does not have it."""
        found: set[str] = set()
        for kind in (kind for group in groups for kind in group.instance_types):
            entry = self.catalog.by_name.get(kind)
            known = None if entry is None else entry.requirements.get(key)
            if known is None:
                return None
            found |= known.values
        return found or None

    def _asked_labels(self, group: NodeGroup) -> dict[str, str]:
        """The labels of a group that its pods ask for, and that a new node does not have by itself."""
        asked = {
            key
            for node in self.members[group.name]
            for pod in self.pods.get(node, ())
            for requirements in _asked(pod)
            for key in requirements
        }
        labels = group.spec.template.metadata.labels
        return {key: labels[key] for key in sorted(asked & labels.keys()) if key not in names.WELL_KNOWN}

    def _other_machines(self, group: NodeGroup, allowed: Collection[str]) -> GroupSuggestion | None:
        """The machine type that holds the pods of a group for the least, if that is another one and less than today."""
        nodes = self.members[group.name]
        today = self._price(nodes)
        fleet = self._finder(self._of_any_type(group), nodes).cheapest_of_one_type(allowed)
        if fleet is None or fleet.price is None or today is None or fleet.price >= today - HAIR:
            return None
        if {kind for kind, _ in fleet.types} <= set(group.instance_types):
            return None
        return GroupSuggestion(group.name, len(nodes), today, fleet)

    def _of_any_type(self, group: NodeGroup) -> NodePool:
        """The group as if its machines could be of any type: without what its labels say of the type of today."""
        template = group.spec.template
        rules = tuple(rule for rule in template.spec.requirements if rule.key != names.INSTANCE_TYPE)
        spec = TemplateSpec(requirements=rules, taints=template.spec.taints)
        of_types = names.WELL_KNOWN | {key for entry in self.catalog.types for key in entry.requirements}
        labels = {key: value for key, value in template.metadata.labels.items() if key not in of_types}
        made = PoolTemplate(metadata=TemplateMetadata(labels=labels), spec=spec)
        return NodePool(metadata=Metadata(name=group.name), spec=NodePoolSpec(template=made))

    def _finder(self, pool: NodePool, nodes: Sequence[str]) -> FleetFinder:
        return FleetFinder(self._make_context(replace(self.plain, node_pools=(pool,))), nodes)

    def _price(self, nodes: Iterable[str]) -> float | None:
        prices = [self.prices.get(name) for name in nodes]
        known = [price for price in prices if price is not None]
        return sum(known) if len(known) == len(prices) else None


def _arch(group: NodeGroup) -> str:
    return group.spec.template.metadata.labels.get(names.ARCH, "")


def _zones(groups: Sequence[NodeGroup]) -> tuple[str, ...]:
    """The zones of groups; none where Azure numbers the fault domains of nodes that have no zone."""
    zones = _union(group.zones for group in groups)
    return () if any(zone.isdecimal() for zone in zones) else zones


def _union(values: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted({value for listed in values for value in listed}))


def _asked(pod: Pod) -> list[Iterable[str]]:
    """The keys of node labels that a pod asks for."""
    affinity = None if pod.spec.affinity is None else pod.spec.affinity.node_affinity
    required = None if affinity is None else affinity.required
    terms = () if required is None else required.node_selector_terms
    return [pod.spec.node_selector, *([rule.key for rule in term.match_expressions] for term in terms)]
