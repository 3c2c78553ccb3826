"""The engine's plain twin: where pods would go, said as simply as possible and without any regard for speed.

It walks objects, keeps nothing between questions, and looks at every node and type for every pod. The fast engine must
give the same answers.
"""

import itertools
from collections import Counter, deque
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from tests.packing.twin_claims import Claim, ReservedCapacityError, Rider, Supply, clash, lacking, room, taken, total
from tests.packing.twin_templates import templates_of
from tests.packing.twin_topology import Topology

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.cluster.constraints import Constraints, Level, Port, constraints, host_ports
from karpool.cluster.daemons import daemons
from karpool.cluster.groups import labels_satisfy
from karpool.cluster.nodes import StateNode
from karpool.cluster.pairing import join
from karpool.cluster.volumes import VolumeIndex
from karpool.model.labels import INSTANCE_TYPE
from karpool.model.objects import Objects
from karpool.model.operating_systems import needs_windows, runs_windows
from karpool.model.pod import Pod
from karpool.model.requests import effective_requests
from karpool.model.requirements import NO_REQUIREMENTS, Requirements
from karpool.model.scheduling import untolerated
from karpool.packing.directions import DirectedNode
from karpool.packing.options import MinValues, Options
from karpool.packing.result import NewNode, PlacementResult

DEFAULTS: Final = Options()
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Wishes:
    """New nodes, and for some pods, by key, the name of a node or the number of a new one; `kinds`: who is alike."""

    new_nodes: tuple[DirectedNode, ...]
    places: Mapping[str, str | int]
    kinds: Mapping[str, Hashable]
    every_level: bool = False


def place(
    objects: Objects,
    catalog: Catalog,
    *,
    pods: Sequence[Pod],
    gone: Collection[str] = (),
    closed: Collection[str] = (),
    exempt: Collection[str] = (),
    options: Options = DEFAULTS,
    reserved_strict: bool = False,
    existing_only: bool = False,
    wishes: Wishes | None = None,
) -> PlacementResult:
    """Say where `pods` would go if the nodes `gone` were not there.

    Nodes in `closed` take only pods whose keys are in `exempt`. `reserved_strict`: pods wait for reserved capacity that
    others took in this run. `existing_only`: no new nodes. `wishes`: where pods are sent.
    """
    answer, _ = follow(
        objects,
        catalog,
        pods=pods,
        gone=gone,
        closed=closed,
        exempt=exempt,
        options=options,
        reserved_strict=reserved_strict,
        existing_only=existing_only,
        wishes=wishes,
    )
    return answer


@dataclass(frozen=True, slots=True)
class Step:
    """A pod took a place: the name of a node, or the number of a new one and what that may be from now on."""

    pod: Pod
    place: str | int
    pool: str = ""
    requirements: Requirements = NO_REQUIREMENTS
    types: tuple[str, ...] = ()


def follow(
    objects: Objects,
    catalog: Catalog,
    *,
    pods: Sequence[Pod],
    gone: Collection[str] = (),
    closed: Collection[str] = (),
    exempt: Collection[str] = (),
    options: Options = DEFAULTS,
    reserved_strict: bool = False,
    existing_only: bool = False,
    wishes: Wishes | None = None,
) -> tuple[PlacementResult, list[Step]]:
    """As `place`, and step by step how it came about."""
    scene = _Scene(objects, catalog, pods, gone, options)
    run = _Run(
        nodes=scene.destinations(),
        topology=scene.topology(),
        supply=scene.supply(strict=reserved_strict),
        closed=closed,
        exempt=exempt,
        existing_only=existing_only,
    )
    riders = scene.riders()
    if wishes is not None:
        run.send(riders, wishes)
    run.fill([rider for rider in riders if not run.has_place(rider)])
    return run.answer(pods), run.steps


@dataclass(slots=True)
class _Existing:
    """A node that is there, and what is left of it."""

    state: StateNode
    free: Counter[str]
    ports: list[Port]
    attached: set[tuple[str, str]]
    attachable: dict[str, int]

    def accepts(self, rider: Rider, level: Level, topology: Topology) -> bool:
        """Whether the node can take a pod."""
        labels, rules = self.state.labels, rider.constraints
        return (
            untolerated(self.state.taints, level.tolerations) is None
            and (needs_windows(level.requirements) or not runs_windows(labels))
            and self._attaches(rules.attached)
            and not clash(rules.ports, self.ports)
            and min(self.free.values()) >= 0
            and all(amount <= self.free[name] for name, amount in rider.requests.items())
            and labels_satisfy(labels, level.requirements)
            and (not rules.volumes or any(labels_satisfy(labels, wanted) for wanted in rules.volumes))
            and topology.allows_node(rider.pod, level, labels)
        )

    def _attaches(self, volumes: tuple[tuple[str, str], ...]) -> bool:
        new = set(volumes) - self.attached
        held = Counter(driver for driver, _ in self.attached | new)
        return all(held[driver] <= self.attachable[driver] for driver, _ in new if driver in self.attachable)

    def board(self, rider: Rider) -> None:
        """Take a pod."""
        self.free.subtract(rider.requests)
        self.ports.extend(rider.constraints.ports)
        self.attached.update(rider.constraints.attached)


class _Scene:
    """The cluster as it is before any pod is placed."""

    def __init__(
        self, objects: Objects, catalog: Catalog, pods: Sequence[Pod], gone: Collection[str], options: Options
    ) -> None:
        if not options.reserved_capacity:
            catalog = replace(catalog, types=tuple(_unreserved(entry) for entry in catalog.types))
        self.objects, self.catalog, self.pods, self.options = objects, catalog, pods, options
        states = [state for state in join(objects.nodes, objects.node_claims) if state.name not in gone]
        by_name = {state.name: state for state in states}
        moving = {pod.key for pod in pods}
        self.included = [state for state in states if not state.deleting]
        self.bound = [
            (pod, by_name[pod.spec.node_name])
            for pod in objects.pods
            if pod.spec.node_name in by_name and not pod.terminal and pod.key not in moving
        ]
        self.templates = [
            template
            for template in templates_of(objects.node_pools, catalog, options.seed)
            if template.types
            and (options.min_values is not MinValues.STRICT or not lacking(template.types, template.requirements))
        ]
        self.daemons = daemons(objects.daemon_sets, objects.pods)
        self.volumes = VolumeIndex(objects)
        self.namespaces = {entry.name: entry for entry in objects.namespaces}
        everywhere = [*(state.taints for state in states), *(template.taints for template in self.templates)]
        self.soft_taints = any(taint.effect == "PreferNoSchedule" for taints in everywhere for taint in taints)

    def riders(self) -> list[Rider]:
        """The pods to place with all they ask for."""
        return [Rider(pod, self._rules(pod), taken(effective_requests(pod))) for pod in self.pods]

    def _rules(self, pod: Pod) -> Constraints:
        return constraints(
            pod,
            namespaces=self.namespaces,
            volumes=self.volumes.needs(pod),
            preferences=self.options.preferences,
            soft_taints=self.soft_taints,
        )

    def destinations(self) -> list[_Existing]:
        """The nodes that could take pods, in the order in which they are tried."""
        ordered = sorted(self.included, key=lambda state: (not state.initialized, state.name))
        return [self._existing(state) for state in ordered]

    def _existing(self, state: StateNode) -> _Existing:
        pods = [pod for pod, node in self.bound if node is state]
        expected = total(taken(d.requests) for d in self.daemons if d.runs_on(state.labels, state.taints))
        expected.subtract(total(taken(effective_requests(pod)) for pod in pods if pod.is_daemon))
        free = room(state.allocatable)
        free.subtract(total(taken(effective_requests(pod)) for pod in pods))
        free.subtract(+expected)
        drivers = [d for entry in self.objects.csi_nodes if entry.name == state.name for d in entry.spec.drivers]
        return _Existing(
            state=state,
            free=free,
            ports=[port for pod in pods for port in host_ports(pod)],
            attached={volume for pod in pods for volume in self.volumes.needs(pod).attached},
            attachable={d.name: d.allocatable.count for d in drivers if d.allocatable.count is not None},
        )

    def topology(self) -> Topology:
        """Every rule of the pods to place, and of running pods those that keep others away; running pods counted."""
        running = [
            (pod, constraints(pod, namespaces=self.namespaces, pinned=True).inverse, state)
            for pod, state in self.bound
            if pod.active
        ]
        groups = [group for _, inverse, _ in running for group in inverse]
        for rider in self.riders():
            groups += [*rider.constraints.inverse, *(g for level in rider.constraints.levels for g in level.groups)]
        topology = Topology(groups, templates=self.templates, nodes=self.included, well_known=self.catalog.well_known)
        for pod, inverse, state in running:
            topology.record_on_node(pod, inverse, state.labels, state.taints)
        return topology

    def supply(self, *, strict: bool) -> Supply:
        """Where new nodes can come from."""
        return Supply(
            self.catalog,
            self.templates,
            self.daemons,
            self.options,
            strict=strict,
            nodes=self.included,
            attachable=self._attachable_by_type(),
        )

    def _attachable_by_type(self) -> dict[str, dict[str, int]]:
        """By type and driver: the least number of volumes that a node of the type, gone or not, can attach."""
        states = join(self.objects.nodes, self.objects.node_claims)
        types = {state.name: state.labels.get(INSTANCE_TYPE, "") for state in states}
        counts: dict[str, dict[str, int]] = {}
        for entry in self.objects.csi_nodes:
            for driver in entry.spec.drivers:
                if types.get(entry.name) and driver.allocatable.count:
                    of_type = counts.setdefault(types[entry.name], {})
                    of_type[driver.name] = min(driver.allocatable.count, of_type.get(driver.name, 2**31))
        return counts


def _unreserved(entry: InstanceType) -> InstanceType:
    return replace(entry, offerings=tuple(offering for offering in entry.offerings if not offering.reserved))


def _queue_key(rider: Rider) -> tuple[int, int, datetime, str, str]:
    meta = rider.pod.metadata
    created = meta.creation_timestamp or _EARLIEST
    return (-rider.requests.get("cpu", 0), -rider.requests.get("memory", 0), created, meta.uid, rider.pod.key)


@dataclass(slots=True)
class _Run:
    """Pods finding their places one after the other."""

    nodes: list[_Existing]
    topology: Topology
    supply: Supply
    closed: Collection[str]
    exempt: Collection[str]
    existing_only: bool
    claims: list[Claim] = field(default_factory=list)
    placed: dict[str, str | int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def fill(self, riders: Sequence[Rider]) -> None:
        """Try every pod, largest first, until a whole round places none."""
        queue = deque(sorted((rider for rider in riders if not rider.constraints.refusal), key=_queue_key))
        length_when_pushed: dict[str, int] = {}
        while queue and length_when_pushed.get(queue[0].pod.key) != len(queue):
            rider = queue.popleft()
            if not self._attempt(rider):
                queue.append(rider)
                length_when_pushed[rider.pod.key] = len(queue)

    def has_place(self, rider: Rider) -> bool:
        return rider.pod.key in self.placed or any(rider in claim.riders for claim in self.claims)

    def send(self, riders: Sequence[Rider], wishes: Wishes) -> None:
        """Try every pod at the places that it and its like are sent to, until a whole round places none."""
        queue = sorted((r for r in riders if not r.constraints.refusal and r.pod.key in wishes.places), key=_queue_key)
        left: dict[Hashable, Counter[str | int]] = {}
        for rider in queue:
            left.setdefault(wishes.kinds[rider.pod.key], Counter())[wishes.places[rider.pod.key]] += 1
        opened: dict[int, Claim] = {}
        waiting = None
        while waiting != len(queue):
            waiting = len(queue)
            queue = [
                rider for rider in queue if not self._sent(rider, left[wishes.kinds[rider.pod.key]], wishes, opened)
            ]

    def _sent(self, rider: Rider, left: Counter[str | int], wishes: Wishes, opened: dict[int, Claim]) -> bool:
        levels = rider.constraints.levels if wishes.every_level else rider.constraints.levels[:1]
        for level, (place, count) in itertools.product(levels, left.items()):
            if count and (
                self._on_node(rider, level, only=place)
                if isinstance(place, str)
                else self._on_wished(rider, level, wishes.new_nodes[place], place, opened)
            ):
                left[place] -= 1
                return True
        return False

    def _on_wished(self, rider: Rider, level: Level, wish: DirectedNode, number: int, opened: dict[int, Claim]) -> bool:
        if self.existing_only:
            return False
        claim = opened.get(number) or self.supply.wished(wish, len(self.claims))
        try:
            if claim is None or not self._board(claim, rider, level):
                return False
        except ReservedCapacityError:
            return False
        if number not in opened:
            opened[number] = claim
            self.claims.append(claim)
        return True

    def _attempt(self, rider: Rider) -> bool:
        """Find a place, giving up preferences one by one; a pod that waits for reserved capacity gives up none."""
        try:
            return any(
                self._on_node(rider, level) or self._on_claim(rider, level) for level in rider.constraints.levels
            )
        except ReservedCapacityError:
            return False

    def _on_node(self, rider: Rider, level: Level, only: str | None = None) -> bool:
        for node in self.nodes:
            if only is not None and node.state.name != only:
                continue
            if node.state.name in self.closed and rider.pod.key not in self.exempt:
                continue
            if node.accepts(rider, level, self.topology):
                node.board(rider)
                state = node.state
                self.topology.record_on_node(rider.pod, rider.constraints.inverse, state.labels, state.taints)
                self.placed[rider.pod.key] = state.name
                self.steps.append(Step(rider.pod, state.name))
                return True
        return False

    def _on_claim(self, rider: Rider, level: Level) -> bool:
        return not self.existing_only and (self._on_open_claim(rider, level) or self._on_new_claim(rider, level))

    def _on_open_claim(self, rider: Rider, level: Level) -> bool:
        return any(self._board(claim, rider, level) for claim in sorted(self.claims, key=lambda c: len(c.riders)))

    def _on_new_claim(self, rider: Rider, level: Level) -> bool:
        for template in self.supply.templates:
            claim = self.supply.blank(template, len(self.claims))
            if claim is not None and self._board(claim, rider, level):
                self.claims.append(claim)
                return True
        return False

    def _board(self, claim: Claim, rider: Rider, level: Level) -> bool:
        try:
            fit = self.supply.fit(claim, rider, level, self.topology)
        except ReservedCapacityError:
            if claim.riders:
                return False
            raise
        if fit is None:
            return False
        self.supply.board(claim, rider, fit)
        names = tuple(entry.name for entry in claim.types)
        self.steps.append(Step(rider.pod, claim.number, claim.template.name, claim.requirements, names))
        self.topology.record_on_claim(
            rider.pod,
            rider.constraints.inverse,
            requirements=claim.requirements,
            taints=claim.template.taints,
            host=claim.host,
        )
        return True

    def answer(self, pods: Sequence[Pod]) -> PlacementResult:
        """Where each pod went."""
        finished = (self.supply.finish(claim) for claim in self.claims)
        new_nodes: list[NewNode] = [node for node in finished if node is not None]
        placed = self.placed | {key: index for index, node in enumerate(new_nodes) for key in node.pods}
        return PlacementResult(
            placed=placed,
            new_nodes=tuple(new_nodes),
            unplaced=tuple(pod.key for pod in pods if pod.key not in placed),
        )
