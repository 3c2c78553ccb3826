"""The outcome of a run: rows while it lasts, names and new nodes afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.model.labels import CAPACITY_TYPE, RESERVATION_ID, RESERVED
from karpool.model.requirements import Requirements, one_of
from karpool.packing.kernels.columns import CLAIMS, UNPLACED
from karpool.packing.options import MinValues
from karpool.packing.result import NewNode, PlacementResult

if TYPE_CHECKING:
    from karpool.packing.engine import Engine

MOST_TYPES: Final = 600
_NONE: Final[Mapping[int, tuple[str, ...]]] = MappingProxyType({})


class Placement:
    """Where each pod went, read from the engine before the run is undone."""

    def __init__(
        self,
        engine: "Engine",
        pods: list[int],
        directed_claims: Sequence[int] = (),
        drivers: Mapping[int, tuple[str, ...]] = _NONE,
    ) -> None:
        self.engine = engine
        self.pods = pods
        self.targets: list[int] = engine.memory["target"][: len(pods)].tolist()
        self.claims = int(engine.memory["state"][CLAIMS])
        self.directed_claims = directed_claims
        """By new node of the directions: the number of its claim, -1 if no pod went there."""
        self.drivers = drivers
        """By claim the drivers whose devices its pods count on."""

    @property
    def unplaced(self) -> list[int]:
        """The rows of pods that found no place."""
        return [pod for pod, target in zip(self.pods, self.targets, strict=True) if target == UNPLACED]

    def claim_pool(self, claim: int) -> str:
        return self.engine.tables.pools.templates[self._template(claim)].name

    def _template(self, claim: int) -> int:
        return int(self.engine.memory["claim_template"][claim])

    def claim_requirements(self, claim: int) -> Requirements:
        """What a new node must be like, its reservations included."""
        memory = self.engine.memory
        requirements = self.engine.tables.requirements.requirements[int(memory["claim_requirement"][claim])]
        if memory["claim_relaxed"][claim]:
            requirements = self._with_lowered_minimums(requirements, claim)
        reservations = self.reservations(claim)
        if not reservations:
            return requirements
        open_ = requirements.without(CAPACITY_TYPE, RESERVATION_ID)
        return open_.with_key(CAPACITY_TYPE, one_of(RESERVED)).with_key(RESERVATION_ID, one_of(*reservations))

    def _with_lowered_minimums(self, requirements: Requirements, claim: int) -> Requirements:
        pools, memory = self.engine.tables.pools, self.engine.memory
        for at, (_, (key, _)) in enumerate(pools.minimums_of(self._template(claim))):
            lowered = replace(requirements[key], min_values=int(memory["claim_minimum"][claim, at]))
            requirements = requirements.without(key).with_key(key, lowered)
        return requirements

    def reservations(self, claim: int) -> tuple[str, ...]:
        ids = self.engine.tables.pools.reservation_ids
        if not ids:
            return ()
        holds = self.engine.memory["claim_held"][claim]
        return tuple(name for number, name in enumerate(ids) if holds[number])

    def claim_types(self, claim: int) -> Array:
        """The types a new node may have, as numbers."""
        memory = self.engine.memory
        return memory["claim_types"][claim, : int(memory["claim_type_count"][claim])].copy()

    def ordered_types(self, claim: int, requirements: Requirements) -> Array:
        """The types a new node may have, cheapest first, as many as a claim may name; none if that breaks a minimum."""
        table = self.engine.tables.pools.types
        types = self.claim_types(claim)
        if self.reservations(claim):
            types = types[table.suitable(requirements)[types]]
        ordered = types[np.argsort(self.engine.price_order(requirements)[types])]
        if len(ordered) <= MOST_TYPES:
            return ordered
        cut = ordered[:MOST_TYPES]
        strict = self.engine.options.min_values is MinValues.STRICT
        return cut if not strict or self.keeps_minimums(claim, cut) else cut[:0]

    def keeps_minimums(self, claim: int, types: Array) -> bool:
        """Whether types still differ as much as the claim's pool wants."""
        memory, pools = self.engine.memory, self.engine.tables.pools
        rows = [row for row, _ in pools.minimums_of(self._template(claim))]
        minimums = memory["claim_minimum"][claim, : len(rows)].tolist()
        number = int(memory["claim_requirement"][claim])
        requirements = self.engine.tables.requirements.requirements[number]
        return all(
            pools.distinct_values(row, types.tolist(), requirements.get(pools.minimums[row][0])) >= minimum
            for row, minimum in zip(rows, minimums, strict=True)
        )

    def result(self) -> PlacementResult:
        snapshot = self.engine.snapshot
        keys = [snapshot.pods.get(pod).key for pod in self.pods]
        on_claim: list[list[str]] = [[] for _ in range(self.claims)]
        placed: dict[str, str | int] = {}
        unplaced: list[str] = []
        for key, target in zip(keys, self.targets, strict=True):
            if target >= 0:
                placed[key] = snapshot.nodes.get(target).name
            elif target != UNPLACED:
                on_claim[-2 - target].append(key)
            else:
                unplaced.append(key)
        new_nodes: list[NewNode] = []
        for claim, pods in enumerate(on_claim):
            new = self._new_node(claim, pods)
            if new is None:
                unplaced += pods
            else:
                placed.update(dict.fromkeys(pods, len(new_nodes)))
                new_nodes.append(new)
        return PlacementResult(placed=placed, new_nodes=tuple(new_nodes), unplaced=tuple(unplaced))

    def _new_node(self, claim: int, pods: list[str]) -> NewNode | None:
        """The node to ask for; None if too few types may be listed for what its pool wants."""
        requirements = self.claim_requirements(claim)
        types = self.ordered_types(claim, requirements)
        if not len(types):
            return None
        return NewNode(
            pool=self.claim_pool(claim),
            requirements=self.engine.launched(requirements),
            instance_types=self.engine.type_names(types),
            pods=tuple(pods),
            reservations=self.reservations(claim),
            min_values_relaxed=bool(self.engine.memory["claim_relaxed"][claim]),
            drivers=self.drivers.get(claim, ()),
        )
