"""Instance types and offerings in columns, so that a requirement is judged for all of them at once."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from karpool.catalog.instance_types import Amounts, Catalog, InstanceType
from karpool.cluster.arrays import Array
from karpool.cluster.resources import ResourceTable, counted
from karpool.model.labels import CAPACITY_TYPES, machine_prefix, of_provider
from karpool.model.requirements import ANY, Requirement, Requirements

Mask = npt.NDArray[np.bool_]
Prices = npt.NDArray[np.float64]


class RequirementColumns:
    """Many requirement collections as columns of the distinct sets that each key has among them."""

    def __init__(self, rows: Sequence[Requirements]) -> None:
        self.size = len(rows)
        self.sets: dict[str, list[Requirement | None]] = {}
        self.columns: dict[str, Array] = {}
        # Thousands of offerings share a few collections, and types their sets: an object is compared once.
        distinct = {id(row): row for row in rows}
        place = {name: number for number, name in enumerate(distinct)}
        places = np.array([place[id(row)] for row in rows], dtype=np.int32)
        for key in {key for row in distinct.values() for key in row}:
            ids: dict[Requirement | None, int] = {}
            seen: dict[int, int] = {}
            numbers = []
            for row in distinct.values():
                rule = row.get(key)
                number = seen.get(id(rule))
                if number is None:
                    number = seen[id(rule)] = ids.setdefault(rule, len(ids))
                numbers.append(number)
            self.columns[key] = np.array(numbers, dtype=np.int32)[places]
            self.sets[key] = list(ids)

    def meet(self, requirements: Requirements) -> Mask:
        """Which rows overlap with requirements on every key that both mention."""
        mask: Mask = np.ones(self.size, dtype=np.bool_)
        for key, allowed in requirements.items():
            if key in self.columns:
                table = [rule is None or rule.overlaps(allowed) for rule in self.sets[key]]
                mask &= np.array(table, dtype=np.bool_)[self.columns[key]]
        return mask

    def distinct(self, key: str, rows: Mask) -> set[Requirement | None]:
        """The different sets that some rows have for a key; None stands for rows that say nothing."""
        if key not in self.columns:
            return {None} if rows.any() else set()
        return {self.sets[key][number] for number in np.unique(self.columns[key][rows])}

    def silent(self, key: str) -> Mask:
        """The rows that say nothing of a key."""
        if key not in self.columns:
            return np.ones(self.size, dtype=np.bool_)
        return np.array([rule is None for rule in self.sets[key]], dtype=np.bool_)[self.columns[key]]

    def values(self, key: str) -> list[frozenset[str]]:
        """The listed values of a key, row by row."""
        sets = self.sets.get(key)
        if sets is None:
            return [frozenset()] * self.size
        listed = [frozenset() if s is None or s.complement else s.values for s in sets]
        return [listed[number] for number in self.columns[key]]


class TypeTable:
    """A catalogue in columns; types keep the catalogue's order, offerings of a type are neighbours."""

    def __init__(self, catalog: Catalog, *, reserved: bool) -> None:
        self.catalog = catalog
        self._rooms: tuple[Array, Array] | None = None
        self.types = catalog.types
        self.names = np.array([entry.name for entry in self.types], dtype=object)
        self.requirements = RequirementColumns([entry.requirements for entry in self.types])
        offerings = [
            (number, offering)
            for number, entry in enumerate(self.types)
            for offering in entry.offerings
            if offering.launchable and (reserved or not offering.reserved)
        ]
        self.offerings = [offering for _, offering in offerings]
        self.type_of = np.array([number for number, _ in offerings], dtype=np.int32)
        self.offered = RequirementColumns([offering.requirements for offering in self.offerings])
        prices = [catalog.price(offering) for offering in self.offerings]
        self.price = np.array([np.inf if price is None else price for price in prices], dtype=np.float64)
        order = {name: number for number, name in enumerate(CAPACITY_TYPES)}
        self.capacity_type = np.array([order.get(o.capacity_type, len(order)) for o in self.offerings], dtype=np.int32)
        self.reserved = [
            number
            for number, offering in enumerate(self.offerings)
            if offering.reserved and offering.reservation_id is not None
        ]
        self.rank = np.argsort(np.argsort(self.names)) if len(self.types) else np.zeros(0, dtype=np.int64)

    def numbers(self, names: Iterable[str]) -> Array:
        """The numbers of types by their names."""
        known = {name: number for number, name in enumerate(self.names.tolist())}
        return np.array([known[name] for name in names], dtype=np.int64)

    def rooms(self, resources: ResourceTable) -> tuple[Array, Array]:
        """Allocatable and capacity of all types, by resource; computed once for each number of resources."""
        added = [amounts for by_type in self.catalog.pool_capacity.values() for amounts in by_type.values()]
        for amounts in (*(entry.capacity for entry in self.types), *added):
            resources.learn(amounts)
        if self._rooms is None or self._rooms[0].shape[1] != len(resources):
            empty = np.zeros((0, len(resources)), dtype=np.int64)
            allocatable = [resources.room(entry.allocatable) for entry in self.types]
            capacity = [counted(resources.room(self._most(entry))) for entry in self.types]
            self._rooms = (np.stack(allocatable), np.stack(capacity)) if self.types else (empty, empty)
        return self._rooms

    def _most(self, entry: InstanceType) -> Amounts:
        """What a type has at most in any pool: limits bind at what can happen."""
        most = dict(entry.capacity)
        for by_type in self.catalog.pool_capacity.values():
            for name, amount in by_type.get(entry.name, {}).items():
                most[name] = max(amount, most.get(name, amount))
        return most

    def room_in(self, pool: str, resources: ResourceTable) -> Array:
        """Allocatable of all types in a pool, by resource."""
        allocatable, _ = self.rooms(resources)
        own = self.catalog.pool_capacity.get(pool)
        if not own:
            return allocatable
        room = allocatable.copy()
        for number, entry in enumerate(self.types):
            if entry.name in own:
                room[number] = resources.room(self.catalog.in_pool(entry, pool).allocatable)
        return room

    def launchable(self, requirements: Requirements) -> Mask:
        return self.offered.meet(requirements)

    def suitable(self, requirements: Requirements) -> Mask:
        """Which types meet requirements and can be launched under them."""
        offered: Mask = np.zeros(len(self.types), dtype=np.bool_)
        offered[self.type_of[self.launchable(requirements)]] = True
        return offered & self.requirements.meet(requirements) & self._known(requirements)

    def _known(self, requirements: Requirements) -> Mask:
        """Which types have the labels of providers that are required, as far as anybody knows."""
        mask: Mask = np.ones(len(self.types), dtype=np.bool_)
        for key, allowed in requirements.items():
            if allowed.given or not of_provider(key):
                continue
            silent = self.requirements.silent(key)
            prefix = machine_prefix(key)
            if not allowed.absent:
                mask &= ~silent
            elif prefix and silent.any():
                mask &= ~silent | np.array([prefix in entry.described for entry in self.types], dtype=np.bool_)
        return mask

    def unknown(self, requirements: Requirements) -> str | None:
        """A label that is required and that no type is known to have; None if there is none."""
        return next((key for key in requirements if self._unknown(key, requirements[key])), None)

    def _unknown(self, key: str, allowed: Requirement) -> bool:
        return not self._known(Requirements([(key, allowed)])).any()

    def offered_values(self, requirements: Requirements, usable: Mask, key: str) -> set[str]:
        """The values of a key that new nodes can have: what offerings say, else their types, else the requirements."""
        allowed = requirements.get(key, ANY)
        launchable = self.launchable(requirements) & usable[self.type_of]
        silent: Mask = np.zeros(len(self.types), dtype=np.bool_)
        silent[self.type_of[launchable & self.offered.silent(key)]] = True
        values = (self.offered.distinct(key, launchable) | self.requirements.distinct(key, silent)) - {None}
        if not values and launchable.any() and not allowed.complement:
            return set(allowed.values)
        return {v for listed in values if listed and not listed.complement for v in listed.values if allowed.has(v)}

    def cheapest(self, requirements: Requirements) -> Prices:
        """The lowest price of each type under requirements; infinite if it has no launch or no known price."""
        lowest = np.full(len(self.types), np.inf)
        mask = self.launchable(requirements)
        np.minimum.at(lowest, self.type_of[mask], self.price[mask])
        return lowest

    def price_order(self, requirements: Requirements) -> Array:
        """The rank of every type among all types, cheapest first, under requirements; equal prices by name."""
        order = np.empty(len(self.types), dtype=np.int64)
        order[np.lexsort((self.rank, self.cheapest(requirements)))] = np.arange(len(order))
        return order

    def cheapest_zone(self, entry: int, requirements: Requirements) -> str:
        """The zone in which a type is cheapest under requirements; empty if it cannot be launched."""
        offerings = np.flatnonzero(self.launchable(requirements) & (self.type_of == entry))
        return self.offerings[int(offerings[np.argmin(self.price[offerings])])].zone if len(offerings) else ""

    def worst(self, requirements: Requirements) -> Prices:
        """The highest price each type could be launched at: of the first capacity type that it is offered as."""
        highest = np.full(len(self.types), np.inf)
        mask = self.launchable(requirements)
        settled = np.zeros(len(self.types), dtype=np.bool_)
        for kind in range(len(CAPACITY_TYPES) + 1):
            chosen = mask & (self.capacity_type == kind)
            most = np.full(len(self.types), -np.inf)
            np.maximum.at(most, self.type_of[chosen], self.price[chosen])
            priced = (most > -np.inf) & ~settled
            highest[priced] = most[priced]
            settled |= priced
        return highest
