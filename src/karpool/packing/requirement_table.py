"""Requirements of claims as numbers: each distinct collection once, and what becomes of it under another.

Kernels look up `narrow` and the domain memo; what is not there yet they ask for, and it is worked out here once.
"""

from dataclasses import dataclass, field

import numpy as np

from karpool.cluster.arrays import Array, grown
from karpool.cluster.groups import NodeFilter
from karpool.cluster.topology import Domains
from karpool.model.requirements import Requirement, Requirements
from karpool.packing.kernels.columns import NOT_KNOWN, UNKNOWN, UNSET
from karpool.packing.type_table import TypeTable

IMPOSSIBLE = -1


def _ints(*shape: int, fill: int = 0) -> Array:
    return np.full(shape, fill, dtype=np.int32)


def _bytes(*shape: int) -> Array:
    return np.zeros(shape, dtype=np.uint8)


@dataclass
class RequirementTable:
    """All requirement collections that claims have had, in columns."""

    types: TypeTable
    domains: Domains
    free_keys: frozenset[str]
    held: list[Requirements] = field(default_factory=list)
    ids: dict[Requirements, int] = field(default_factory=dict)
    incoming: list[Requirements] = field(default_factory=list)
    incoming_ids: dict[Requirements, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        keys, domains = self.domains.size
        self.narrow = _ints(16, 16, fill=UNKNOWN)
        self.types_of = _bytes(16, max(1, len(self.types.types)))
        self.reserved_ok = _bytes(16, max(1, len(self.types.reserved)))
        self.mask_of = _bytes(16, keys, domains)
        self.concrete = _bytes(16, keys)
        self.single = _ints(16, keys, fill=UNSET)
        self.domain_head = _ints(16, fill=UNSET)
        self.domain_next = _ints(16)
        self.domain_key = _ints(16)
        self.domain_result = _ints(16)
        self.domain_mask = _bytes(16, domains)
        self.claim_seen = np.full((4, 16), NOT_KNOWN, dtype=np.uint8)
        self.priced = _bytes(16)
        self.worst_price = np.full((16, max(1, len(self.types.types))), np.inf)
        self.memos = 0

    def number(self, wanted: Requirements) -> int:
        """The number of a claim's requirements, judged when they are new."""
        found = self.ids.get(wanted)
        if found is None:
            found = self.ids[wanted] = len(self.held)
            self.held.append(wanted)
            self._make_room()
            self.types_of[found, : len(self.types.types)] = self.types.suitable(wanted)
            if self.types.reserved:
                self.reserved_ok[found] = self.types.launchable(wanted)[self.types.reserved]
            self._locate(found)
        return found

    def incoming_number(self, wanted: Requirements) -> int:
        """The number of what pods or volumes ask of a claim."""
        found = self.incoming_ids.get(wanted)
        if found is None:
            found = self.incoming_ids[wanted] = len(self.incoming)
            self.incoming.append(wanted)
            self._make_room()
        return found

    def _make_room(self) -> None:
        rows, (keys, domains) = len(self.held), self.domains.size
        self.narrow = grown(self.narrow, (rows, len(self.incoming)), UNKNOWN)
        self.types_of = grown(self.types_of, (rows, self.types_of.shape[1]))
        self.reserved_ok = grown(self.reserved_ok, (rows, self.reserved_ok.shape[1]))
        self.mask_of = grown(self.mask_of, (rows, keys, domains))
        self.concrete = grown(self.concrete, (rows, keys))
        self.single = grown(self.single, (rows, keys), UNSET)
        self.domain_head = grown(self.domain_head, (rows,), UNSET)
        self.claim_seen = grown(self.claim_seen, (self.claim_seen.shape[0], rows), NOT_KNOWN)
        self.priced = grown(self.priced, (rows,))
        self.worst_price = grown(self.worst_price, (rows, self.worst_price.shape[1]))

    def locate_all(self, filters: int) -> None:
        """Take note of topology keys, domains and filters that are new."""
        self._make_room()
        self.domain_mask = grown(self.domain_mask, (self.domain_mask.shape[0], self.domains.size[1]))
        self.claim_seen = grown(self.claim_seen, (filters, self.claim_seen.shape[1]), NOT_KNOWN)
        for number in range(len(self.held)):
            self._locate(number)

    def _locate(self, number: int) -> None:
        """Work out which domains a claim with these requirements could be in."""
        wanted = self.held[number]
        for name, key in self.domains.keys.items():
            values = self.domains.values[key]
            allowed = wanted.get(name)
            # A listed value that is no domain cannot be seen in the mask, so the mask does not tell all.
            told = allowed is not None and not allowed.complement and allowed.values <= values.keys()
            self.concrete[number, key] = told
            self.single[number, key] = UNSET
            if allowed is None:
                self.mask_of[number, key, : len(values)] = name in self.free_keys
                continue
            for value, domain in values.items():
                self.mask_of[number, key, domain] = allowed.has(value)
            if not allowed.complement and len(allowed.values) == 1:
                self.single[number, key] = values.get(next(iter(allowed.values)), UNSET)

    def work_out(self, requirement: int, incoming: int) -> None:
        """Narrow a claim's requirements by what comes in."""
        held, wanted = self.held[requirement], self.incoming[incoming]
        result = IMPOSSIBLE
        if held.conflict(wanted, undefined=self.free_keys) is None:
            both = held.intersect(wanted)
            result = self.number(both) if both.satisfiable else IMPOSSIBLE
        self.narrow[requirement, incoming] = result

    def work_out_domains(self, requirement: int, key: int, mask: Array) -> None:
        """Narrow a claim's requirements to some domains of a key."""
        name = next(name for name, number in self.domains.keys.items() if number == key)
        allowed = frozenset(value for value, domain in self.domains.values[key].items() if mask[domain])
        held = self.held[requirement]
        result = IMPOSSIBLE
        if allowed and (name in held or name in self.free_keys):
            narrowed = held.with_key(name, Requirement(complement=False, values=allowed, absent=False))
            result = self.number(narrowed) if narrowed.satisfiable else IMPOSSIBLE
        entry = self.memos
        self.memos += 1
        self.domain_next = grown(self.domain_next, (self.memos,))
        self.domain_key = grown(self.domain_key, (self.memos,))
        self.domain_result = grown(self.domain_result, (self.memos,))
        self.domain_mask = grown(self.domain_mask, (self.memos, self.domains.size[1]))
        self.domain_next[entry], self.domain_head[requirement] = self.domain_head[requirement], entry
        self.domain_key[entry], self.domain_result[entry] = key, result
        self.domain_mask[entry] = 0
        self.domain_mask[entry, : len(mask)] = mask

    def price(self, requirement: int) -> None:
        """Work out the highest price at which every type could be launched under a claim's requirements."""
        self.worst_price[requirement, : len(self.types.types)] = self.types.worst(self.held[requirement])
        self.priced[requirement] = 1

    def see(self, number: int, nodes: NodeFilter, requirement: int) -> None:
        """Judge whether a spread rule looks at claims with these requirements."""
        held = self.held[requirement]
        self.claim_seen[number, requirement] = not nodes.alternatives or any(
            held.conflict(wanted, undefined=self.free_keys) is None for wanted in nodes.alternatives
        )
