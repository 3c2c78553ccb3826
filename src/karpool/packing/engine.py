"""The engine: what-ifs on a snapshot (nodes removed, pods placed elsewhere), each undone before the next."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any, Final

import numpy as np

from karpool.catalog.instance_types import Catalog
from karpool.cluster.arrays import Array
from karpool.cluster.devices.ledger import DeviceLedger
from karpool.cluster.snapshot import Snapshot
from karpool.model.devices import TypeDevices
from karpool.model.labels import INITIALIZED, REGISTERED
from karpool.model.requirements import Requirements
from karpool.packing.device_placement import place_among_devices
from karpool.packing.directions import Directions, follow
from karpool.packing.kernels import columns as c
from karpool.packing.kernels.journal import remove, uncount, undo
from karpool.packing.kernels.memory import Memory
from karpool.packing.kernels.place import place, prepare_candidates
from karpool.packing.layout import cluster_columns, extents
from karpool.packing.new_node_devices import DeviceKinds
from karpool.packing.options import Options
from karpool.packing.placement import Placement
from karpool.packing.runspace import RunSpace
from karpool.packing.tables import TableCache

_ROOM: Final = {c.NEED_LOG: "log", c.NEED_CLAIMS: "claims", c.NEED_CANDIDATES: "candidates"}
"""The axes of which kernels may need more."""


class Engine:
    """Says where pods would go; holds the tables and the scratch space of one run."""

    def __init__(self, snapshot: Snapshot, catalog: Catalog, options: Options | None = None) -> None:
        self.snapshot = snapshot
        self.catalog = catalog
        self.options = options or Options()
        self.tables = TableCache(snapshot, catalog, self.options)
        self.memory = Memory()
        self.space = RunSpace(self.memory)
        types = self.tables.pools.types
        self.prices = cache(types.cheapest)
        self.worst_prices = cache(types.worst)
        self.cheapest_zone = cache(types.cheapest_zone)
        self.price_order = cache(types.price_order)
        self.launched = cache(_launched)
        self._type_names: dict[bytes, tuple[str, ...]] = {}
        self.explained: dict[Hashable, Any] = {}
        """Why nodes and pools refuse pods that are alike, as far as it was asked; for one version of the snapshot."""
        self._ledger: tuple[int, DeviceLedger] | None = None
        self.trial_ledger: DeviceLedger | None = None
        """Who has which devices in the what-if that is going on, if it is about pods with claims."""
        self._version = c.UNSET
        self._fitted: dict[str, int] = {}
        self.refresh()

    @property
    def remembered(self) -> int:
        """How many requirements are known, and answers about them, those that nobody asks for any more among them."""
        answers = (self.prices, self.worst_prices, self.cheapest_zone, self.price_order, self.launched)
        return len(self.tables.requirements.requirements) + sum(known.cache_info().currsize for known in answers)

    def refresh(self) -> None:
        """Follow the changes of the snapshot."""
        self.snapshot.reseal()
        if self._version == self.snapshot.version:
            return
        self._type_names.clear()
        self.explained.clear()
        # Columns are replaced only when they are too small.
        if extents(self.snapshot, self.tables) != self._fitted:
            self._fit()
        elif self.tables.pools.usage:
            self.limits = self.tables.pools.usage.left()
        self.space.forget_candidates()
        self.tables.judge_hosts()
        order = self.snapshot.nodes.order
        self.memory.put(order=order, host_ok=self.tables.host_ok)
        self.memory["sizes"][c.NODES] = len(order)
        self._version = self.snapshot.version

    def _fit(self) -> None:
        """Give the kernels all arrays again: there is more of something than before."""
        self.tables.sync()
        pools, memory = self.tables.pools, self.memory
        self.limits = pools.usage.left()
        memory.put(**cluster_columns(self.snapshot, pools), **self.tables.columns())
        self._fitted = extents(self.snapshot, self.tables)
        rules = int(memory["owned_length"].max() + memory["kept_off_by_length"].max()) + 1
        room = {"nodes": len(memory["live"]), "host_rows": len(memory["by_host"])}
        self.space.fit(
            {**self._fitted, **room, "rules": rules, "values": len(pools.counted_values)}, pools.reservations
        )
        memory.check(self._fitted)

    @cached_property
    def type_devices(self) -> dict[str, TypeDevices]:
        """By name of an instance type the devices that its nodes will have; types without any are left out."""
        return {entry.name: entry.devices for entry in self.catalog.types if entry.devices.slices}

    @cached_property
    def device_kinds(self) -> DeviceKinds:
        """The types of the tables by the devices that their nodes will have."""
        return DeviceKinds([entry.devices for entry in self.tables.pools.types.types])

    def device_ledger(self) -> DeviceLedger:
        """Who has which devices now."""
        if self._ledger is None or self._ledger[0] != self.snapshot.version:
            self._ledger = (self.snapshot.version, DeviceLedger.of(self.snapshot, self.type_devices))
        return self._ledger[1]

    @contextmanager
    def what_if(self) -> Iterator["PlacementTrial"]:
        """A trial on the snapshot as it is, undone at the end."""
        self.refresh()
        trial = PlacementTrial(self)
        try:
            yield trial
        finally:
            undo(self.memory.table)
            self.trial_ledger = None
            if trial.runs > 1:
                self.space.forget_candidates()

    def type_names(self, types: Array) -> tuple[str, ...]:
        """The names of types, one tuple for the same types: thousands of claims may share it."""
        key = types.tobytes()
        if key not in self._type_names:
            self._type_names[key] = tuple(self.tables.pools.types.names[types].tolist())
        return self._type_names[key]

    def limits_without(self, nodes: Array, sets: Array, count: int) -> Array:
        """What is left of pools' limits without the nodes of each set; one row for all sets if no pool has limits."""
        usage = self.tables.pools.usage
        limits: Array = np.repeat(self.limits[None], count if usage else 1, axis=0)
        if usage:
            usage.give_back(limits, nodes, sets)
        return limits

    def run(self, kernel: Callable[..., int], *arguments: object) -> None:
        """Call a kernel until it is done; each time it lacks something, add that."""
        while (answer := kernel(self.memory.table, *arguments)) != c.DONE:
            self.resolve(answer)

    def resolve(self, answer: int) -> None:
        """Compute what a kernel asked for, or give it more room."""
        if answer in _ROOM:
            self.space.grow(_ROOM[answer])
            return
        state, table = self.memory["state"], self.tables.requirements
        first, second = int(state[c.MISS_A]), int(state[c.MISS_B])
        if answer == c.NEED_INTERSECTION:
            table.intersect(first, second)
        elif answer == c.NEED_DOMAIN:
            table.restrict_to_domains(first, second, self.memory["miss_mask"])
        elif answer == c.NEED_CLAIM_SEEN:
            table.match_filter(first, self.snapshot.topology.filters[first], second)
        elif answer == c.NEED_PRICES:
            table.price(first)
        self.memory.put(**table.columns)


def _launched(requirements: Requirements) -> Requirements:
    """What a new node is asked for: without the labels that say that it is up."""
    return requirements.without(REGISTERED, INITIALIZED)


class PlacementTrial:
    """One trial: nodes removed, pods placed; the engine undoes it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.gone: list[int] = []
        self._uncounted: list[int] = []
        self.runs = 0

    def remove(self, nodes: Sequence[int]) -> None:
        """Remove nodes with everything on them; their pools may use what they took of the limits."""
        for node in nodes:
            self.engine.run(remove, node)
        self.gone += nodes

    def uncount(self, pods: Sequence[int]) -> None:
        """Stop counting pods where they are: they leave nodes that stay."""
        self.engine.run(uncount, np.array(pods, dtype=np.int64))
        self._uncounted += pods

    def place(
        self,
        pods: Sequence[int],
        *,
        exempt: Sequence[bool] = (),
        closed: Array | None = None,
        existing_only: bool = False,
        strict_reserved: bool = False,
        directions: Directions | None = None,
    ) -> Placement:
        """Find places for pods, largest first; `closed`: nodes (by row) that accept only exempt pods."""
        engine, space = self.engine, self.engine.space
        self.runs += 1
        rows = np.array(pods, dtype=np.int32)
        order = engine.snapshot.pods.ranking.order(rows)
        rows = rows[order]
        free = np.array(exempt, dtype=np.uint8)[order] if exempt else np.zeros(len(rows), dtype=np.uint8)
        gone = np.array(self.gone, dtype=np.int64)
        space.start(rows, free, closed, engine.limits_without(gone, np.zeros_like(gone), 1)[0])
        space.set_modes(engine.options, existing_only=existing_only, strict_reserved=strict_reserved)
        engine.run(prepare_candidates)
        users = engine.snapshot.pods.device_rows
        if not users or users.isdisjoint(pods):
            directed = follow(engine, rows, free, directions) if directions is not None else ()
            engine.run(place)
            return Placement(engine, rows.tolist(), directed)
        claims, drivers = place_among_devices(engine, self._ledger(), rows, free, directions)
        return Placement(engine, rows.tolist(), claims, drivers)

    def _ledger(self) -> DeviceLedger:
        """Who has which devices in this trial."""
        engine = self.engine
        if engine.trial_ledger is None:
            snapshot = engine.snapshot
            on_gone = {row for node in self.gone for row in snapshot.pods_on(node)}
            leaving = snapshot.pods.device_rows & (on_gone | set(self._uncounted))
            engine.trial_ledger = engine.device_ledger().without(leaving, self.gone)
        return engine.trial_ledger
