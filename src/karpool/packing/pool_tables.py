"""What new nodes of each pool would be like, in columns."""

from collections.abc import Iterable, Sequence

import numpy as np

from karpool.catalog.instance_types import Catalog
from karpool.cluster.arrays import Array, Ragged
from karpool.cluster.resources import ATTACH, UNLIMITED
from karpool.cluster.snapshot import Snapshot
from karpool.model.nodepool import NodePool
from karpool.model.reading.unreadable import UNKNOWN
from karpool.model.requirements import Requirement, Requirements
from karpool.packing.limit_usage import LimitUsage
from karpool.packing.options import MinValues, Options
from karpool.packing.templates import NodeTemplate, templates
from karpool.packing.type_table import Mask, TypeTable


class PoolTables:
    """Columns of pools and their types; fixed for a catalogue and a set of pools."""

    def __init__(self, snapshot: Snapshot, catalog: Catalog, options: Options) -> None:
        self.snapshot = snapshot
        self.options = options
        self.types = TypeTable(catalog, reserved=options.reserved_capacity)
        self.templates: list[NodeTemplate] = templates(_supplying(snapshot), options.seed, options.supply_annotation)
        _, self.capacity = self.types.rooms(snapshot.resources)
        for template in self.templates:
            snapshot.resources.learn({k: v for k, v in template.pool.spec.limits.items() if k != "nodes"})
        snapshot.nodes.widen()
        self.suitable = [self.types.suitable(template.requirements) for template in self.templates]
        self.runs = [self._daemons_on(template) for template in self.templates]
        self.room = self._rooms()
        self.usable = Ragged()
        self.widen()
        self._list_minimums()
        for number in range(len(self.templates)):
            self.usable.append(self._usable(number))
        self._find_largest()
        self.limited = np.array([bool(t.pool.spec.limits) for t in self.templates] or [False], dtype=np.uint8)
        self.usage = LimitUsage(snapshot, self.templates)
        self._list_reservations()

    def _list_reservations(self) -> None:
        """The reservations, and how many nodes each still has room for: the least that any of its offerings says."""
        left: dict[str, int] = {}
        for number in self.types.reserved:
            offering = self.types.offerings[number]
            name, count = offering.reservation_id or "", offering.reservation_capacity
            left[name] = min(count, left.get(name, count))
        self.reservation_ids = sorted(left)
        self.reservations = np.array([left[name] for name in self.reservation_ids] or [0], dtype=np.int32)

    def _daemons_on(self, template: NodeTemplate) -> Array:
        """Which daemons run on which types of a pool."""
        runs = np.zeros((len(self.snapshot.daemons), len(self.types.types)), dtype=np.bool_)
        free = self.types.catalog.well_known
        for number, daemon in enumerate(self.snapshot.daemons):
            if daemon.tolerates(template.taints):
                for requirements in daemon.alternatives:
                    if template.requirements.conflict(requirements, undefined=free) is None:
                        runs[number] |= self.types.requirements.meet(requirements)
        return runs

    def _rooms(self) -> Array:
        """What each type of each pool has left for pods after its daemons."""
        resources = self.snapshot.resources
        pools = [template.name for template in self.templates] or [""]
        room = np.stack([self.types.room_in(pool, resources) for pool in pools])
        numbers = {entry.name: number for number, entry in enumerate(self.types.types)}
        for name, limits in self.snapshot.nodes.attached_by_types().items():
            if name in numbers:
                for driver, count in limits.items():
                    room[:, numbers[name], resources.column(ATTACH + driver)] = count
        for number, runs in enumerate(self.runs):
            for daemon, types in zip(self.snapshot.daemons, runs, strict=True):
                for column, amount in self.snapshot.resources.request(daemon.requests).items():
                    room[number, types, column] -= amount
        return room

    def widen(self) -> None:
        """Make columns for resources that are new: no type has any, but each attaches any number of new volumes."""
        resources, before = self.snapshot.resources, self.room.shape[2]
        added = len(resources) - before
        if added:
            self.room = np.pad(self.room, ((0, 0), (0, 0), (0, added)))
            self.capacity = np.pad(self.capacity, ((0, 0), (0, added)))
            self.room[:, :, [column for column in resources.attach if column >= before]] = UNLIMITED
            self._find_largest()

    def _find_largest(self) -> None:
        """The most that any usable type of each pool has, of every resource: left for pods, and in all."""
        self.most = np.zeros((self.room.shape[0], self.room.shape[2]), dtype=np.int64)
        self.largest = np.zeros_like(self.most)
        for number in range(self.usable.rows):
            types = self.usable.row(number)
            if types:
                self.most[number] = self.room[number, types].max(axis=0)
                self.largest[number] = self.capacity[types].max(axis=0)

    def _list_minimums(self) -> None:
        """The keys for which pools want several values, and the values that types have for them."""
        self.minimums: list[tuple[str, int]] = []
        self.min_start = np.zeros(max(1, len(self.templates)), dtype=np.int32)
        self.min_length = np.zeros_like(self.min_start)
        for number, template in enumerate(self.templates):
            minimums = [(k, r.min_values) for k, r in template.requirements.items() if r.min_values is not None]
            self.min_start[number], self.min_length[number] = len(self.minimums), len(minimums)
            self.minimums += minimums
        self.values = Ragged()
        self.counted_values: dict[tuple[str, str], int] = {}
        numbers = self.counted_values
        for key, _ in self.minimums:
            for values in self.types.requirements.values(key):
                self.values.append([numbers.setdefault((key, value), len(numbers)) for value in sorted(values)])

    def _usable(self, number: int) -> list[int]:
        """The types that a pool can use at all, if it reaches its minimums with them."""
        types: list[int] = np.flatnonzero(self.suitable[number] & (self.room[number] >= 0).all(axis=1)).tolist()
        strict = self.options.min_values is MinValues.STRICT
        return [] if strict and self.lacking(number, types, self.templates[number].requirements) else types

    def lacking(self, number: int, types: Sequence[int], requirements: Requirements) -> tuple[str, int, int] | None:
        """The first key of which too few values are left for a pool: how many there are, and its minValues."""
        for row, (key, minimum) in self.minimums_of(number):
            reached = self.distinct_values(row, types, requirements.get(key))
            if reached < minimum:
                return key, reached, minimum
        return None

    def usable_mask(self, number: int) -> Mask:
        mask: Mask = np.zeros(len(self.types.types), dtype=np.bool_)
        mask[self.usable.row(number)] = True
        return mask

    def minimums_of(self, number: int) -> list[tuple[int, tuple[str, int]]]:
        """The keys of a pool with minValues and what these are, each with its row among all."""
        first = int(self.min_start[number])
        return list(enumerate(self.minimums))[first : first + int(self.min_length[number])]

    def distinct_values(self, row: int, types: Iterable[int], allowed: Requirement | None) -> int:
        """How many distinct values types have of the key of a row of minimums, of those that are allowed."""
        first, key = row * len(self.types.types), self.minimums[row][0]
        values = {value for number in types for value in self.values.row(first + number)}
        if allowed is None:
            return len(values)
        return sum(
            number in values and allowed.has(value)
            for (about, value), number in self.counted_values.items()
            if about == key
        )


def _supplying(snapshot: Snapshot) -> list[NodePool]:
    """The pools without those of which a node or a claim cannot be read."""
    withheld = snapshot.withheld_pools
    return [pool for pool in snapshot.objects.node_pools if withheld.isdisjoint((pool.name, UNKNOWN))]
