"""New nodes for the plain twin: which types a claim can still become, limits, minValues, reservations, finishing."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from tests.packing.twin_templates import Template, can_be_had, daemon_on, offered
from tests.packing.twin_topology import Topology

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.cluster.constraints import ANY_ADDRESS, Constraints, Level, Port
from karpool.cluster.daemons import Daemon
from karpool.cluster.nodes import StateNode
from karpool.cluster.resources import ResourceTable
from karpool.model.labels import CAPACITY_TYPE, HOSTNAME, INITIALIZED, REGISTERED, RESERVATION_ID, RESERVED
from karpool.model.operating_systems import needs_windows
from karpool.model.pod import Pod
from karpool.model.requirements import NO_REQUIREMENTS, Requirements, one_of
from karpool.model.scheduling import untolerated
from karpool.packing.directions import DirectedNode
from karpool.packing.options import MinValues, Options
from karpool.packing.result import NewNode
from karpool.wire.quantity import Quantity

MOST_TYPES: Final = 600
NODES: Final = "nodes"


class ReservedCapacityError(Exception):
    """A new node could use reserved capacity, but all of it is taken in this run; the pod had better wait."""


@dataclass(frozen=True, slots=True)
class Rider:
    """A pod that looks for a place, with its rules and its requests."""

    pod: Pod
    constraints: Constraints
    requests: Mapping[str, int]


@dataclass(slots=True)
class Claim:
    """A new node while it is being filled."""

    template: Template
    number: int
    requirements: Requirements
    types: tuple[InstanceType, ...]
    riders: list[Rider] = field(default_factory=list)
    reservations: frozenset[str] = frozenset()
    relaxed: bool = False
    charged: dict[str, int] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The new node's name; no node can have this one, so no rule can mix it up with another."""
        return f"new node {self.number}"


@dataclass(frozen=True, slots=True)
class Fit:
    """What a claim becomes when it takes one more pod."""

    requirements: Requirements
    types: tuple[InstanceType, ...]
    reservations: frozenset[str]
    relaxed: bool


def taken(amounts: Mapping[str, Quantity]) -> Counter[str]:
    """What a pod takes, in whole numbers."""
    table = ResourceTable()
    return Counter({table.names[column]: amount for column, amount in table.request(amounts).items()})


def room(amounts: Mapping[str, Quantity]) -> Counter[str]:
    """What a node or a type has, in whole numbers."""
    table = ResourceTable()
    vector = table.room(amounts)
    return Counter({name: int(amount) for name, amount in zip(table.names, vector, strict=True)})


def total(parts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The sum of amounts, resource by resource."""
    added: Counter[str] = Counter()
    for part in parts:
        added.update(part)
    return added


def clash(some: Iterable[Port], others: Sequence[Port]) -> bool:
    """Whether two sets of host ports get in each other's way."""
    return any(
        port[1:] == other[1:] and (port[0] == other[0] or ANY_ADDRESS in (port[0], other[0]))
        for port in some
        for other in others
    )


def lacking(types: Iterable[InstanceType], requirements: Requirements) -> dict[str, int]:
    """The keys on which types have fewer distinct values than asked for, of those that are allowed, and how many."""
    listed = list(types)
    short = {}
    for key, wanted in requirements.items():
        own = [entry.requirements[key] for entry in listed if key in entry.requirements]
        reached = len({value for held in own if not held.complement for value in held.values if wanted.has(value)})
        if wanted.min_values is not None and reached < wanted.min_values:
            short[key] = reached
    return short


class Supply:
    """Where new nodes come from: the pools, and what is left of their limits and of reserved capacity."""

    def __init__(
        self,
        catalog: Catalog,
        templates: Sequence[Template],
        daemons: Sequence[Daemon],
        options: Options,
        *,
        strict: bool,
        nodes: Sequence[StateNode],
        attachable: Mapping[str, Mapping[str, int]],
    ) -> None:
        self.catalog = catalog
        self.attachable = attachable
        self.templates = templates
        self.daemons = daemons
        self.options = options
        self.strict = strict
        self.limits = {template.name: _remaining(template, nodes) for template in templates}
        self.units = _reservations(catalog)

    def blank(self, template: Template, number: int) -> Claim | None:
        """An empty claim of a pool, or None when the pool's limits let no type in."""
        left = self.limits[template.name]
        if left.get(NODES, 1) <= 0:
            return None
        types = [
            entry
            for entry in template.types
            if all(room(entry.capacity)[name] <= amount for name, amount in left.items() if name != NODES)
        ]
        return Claim(template, number, template.requirements, tuple(types)) if types else None

    def wished(self, wish: DirectedNode, number: int) -> Claim | None:
        """An empty claim as somebody wants it, or None when there can be none."""
        template = next((template for template in self.templates if template.name == wish.pool), None)
        claim = None if template is None else self.blank(template, number)
        requirements = None if claim is None else self._joined(claim.requirements, wish.requirements)
        if claim is None or requirements is None:
            return None
        wanted = wish.instance_types
        types = tuple(entry for entry in claim.types if wanted is None or entry.name in wanted)
        return replace(claim, requirements=requirements, types=types) if types else None

    def fit(self, claim: Claim, rider: Rider, level: Level, topology: Topology) -> Fit | None:
        """What a claim becomes with one more pod, or None if it cannot take it."""
        ports = [port for other in claim.riders for port in other.constraints.ports]
        if untolerated(claim.template.taints, level.tolerations) or clash(rider.constraints.ports, ports):
            return None
        if needs_windows(claim.template.requirements) and not needs_windows(level.requirements):
            return None
        wanted = self._joined(claim.requirements, level.requirements)
        if wanted is None:
            return None
        for volumes in rider.constraints.volumes or (NO_REQUIREMENTS,):
            reachable = self._joined(wanted, volumes)
            if reachable is None:
                continue
            for requirements in topology.choices(rider.pod, level, reachable, claim.host):
                fit = self._typed(claim, rider, requirements)
                if fit is not None:
                    return replace(fit, reservations=self._reserved(claim, fit))
        return None

    def _joined(self, held: Requirements, wanted: Requirements) -> Requirements | None:
        """Both at once, or None if they conflict; a new node's name is unknown, so only exclusions of names hold."""
        name = wanted.get(HOSTNAME)
        if name is not None and not (name.complement and name.satisfiable):
            return None
        rest = wanted.without(HOSTNAME)
        return None if held.conflict(rest, undefined=self.catalog.well_known) else held.intersect(rest)

    def _typed(self, claim: Claim, rider: Rider, requirements: Requirements) -> Fit | None:
        """The types that are left, if there are enough."""
        types = tuple(entry for entry in claim.types if self._suits(entry, claim, rider, requirements))
        if not types:
            return None
        short = lacking(types, requirements)
        if not short:
            return Fit(requirements, types, frozenset(), claim.relaxed)
        if claim.riders or self.options.min_values is MinValues.STRICT:
            return None
        lowered = Requirements(
            (key, replace(wanted, min_values=short.get(key, wanted.min_values))) for key, wanted in requirements.items()
        )
        return Fit(lowered, types, frozenset(), relaxed=True)

    def _suits(self, entry: InstanceType, claim: Claim, rider: Rider, requirements: Requirements) -> bool:
        """Whether a node of this type could be had and would hold the claim's pods, this one, and the daemons."""
        running = [d for d in self.daemons if daemon_on(d, claim.template, entry, self.catalog)]
        if clash(rider.constraints.ports, [port for daemon in running for port in daemon.ports]):
            return False
        pods = [other.requests for other in (*claim.riders, rider)]
        needed = total([*pods, *(taken(daemon.requests) for daemon in running)])
        has = room(entry.allocatable)
        volumes = {volume for other in (*claim.riders, rider) for volume in other.constraints.attached}
        attached, most = Counter(driver for driver, _ in volumes), self.attachable.get(entry.name, {})
        return (
            offered(entry, requirements, self.catalog)
            and all(amount <= has[name] for name, amount in needed.items())
            and all(count <= most[driver] for driver, count in attached.items() if driver in most)
        )

    def _can_be_had(self, offering: Offering, requirements: Requirements) -> bool:
        return can_be_had(offering, requirements, self.catalog)

    def _reserved(self, claim: Claim, fit: Fit) -> frozenset[str]:
        """The reservations a claim takes or keeps."""
        usable = {
            offering.reservation_id
            for entry in fit.types
            for offering in entry.offerings
            if offering.reserved and offering.reservation_id and self._can_be_had(offering, fit.requirements)
        }
        got = frozenset(name for name in usable if name in claim.reservations or self.units[name] > 0)
        if self.strict and not got and (usable or claim.reservations):
            raise ReservedCapacityError
        return got

    def board(self, claim: Claim, rider: Rider, fit: Fit) -> None:
        """Let a pod onto a claim."""
        self.units.update(claim.reservations)
        self.units.subtract(fit.reservations)
        left = self.limits[claim.template.name]
        for name in left:
            largest = 1 if name == NODES else max(room(entry.capacity)[name] for entry in fit.types)
            left[name] += claim.charged.get(name, 0) - largest
            claim.charged[name] = largest
        claim.riders.append(rider)
        claim.requirements, claim.types = fit.requirements, fit.types
        claim.reservations, claim.relaxed = fit.reservations, fit.relaxed

    def finish(self, claim: Claim) -> NewNode | None:
        """The node to ask for, types cheapest first; None if too few types may be listed for its minValues."""
        requirements = claim.requirements.without(REGISTERED, INITIALIZED, HOSTNAME)
        if claim.reservations:
            requirements = Requirements(
                (
                    *requirements.without(CAPACITY_TYPE).items(),
                    (CAPACITY_TYPE, one_of(RESERVED)),
                    (RESERVATION_ID, one_of(*claim.reservations)),
                )
            )
        types = claim.types
        if claim.reservations:
            types = tuple(entry for entry in types if offered(entry, requirements, self.catalog))
        ordered = sorted(types, key=lambda entry: (self._price(entry, requirements), entry.name))
        listed = ordered[:MOST_TYPES]
        cut = len(listed) < len(ordered)
        if cut and self.options.min_values is MinValues.STRICT and lacking(listed, requirements):
            return None
        return NewNode(
            pool=claim.template.name,
            requirements=requirements,
            instance_types=tuple(entry.name for entry in listed),
            pods=tuple(rider.pod.key for rider in claim.riders),
            reservations=tuple(sorted(claim.reservations)),
            min_values_relaxed=claim.relaxed,
        )

    def _price(self, entry: InstanceType, requirements: Requirements) -> float:
        prices = [self.catalog.price(o) for o in entry.offerings if self._can_be_had(o, requirements)]
        return min((price for price in prices if price is not None), default=inf)


def _remaining(template: Template, nodes: Sequence[StateNode]) -> dict[str, int]:
    """A pool's limits less what its nodes have."""
    limits = template.pool.spec.limits
    held = [state for state in nodes if state.pool == template.name]
    used = total([*(room(state.capacity) for state in held), {NODES: len(held)}])
    return {name: room(limits)[name] - used[name] for name in limits}


def _reservations(catalog: Catalog) -> Counter[str]:
    """How many nodes each reservation still has room for: the least that any of its offerings says."""
    units: Counter[str] = Counter()
    for offering in (offering for entry in catalog.types for offering in entry.offerings):
        if offering.reserved and offering.reservation_id and offering.launchable:
            capacity = offering.reservation_capacity
            units[offering.reservation_id] = min(units.get(offering.reservation_id, capacity), capacity)
    return units
