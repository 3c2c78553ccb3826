"""Requirements of claims as numbers: each distinct collection once, and its intersections with others.

Kernels look up intersections and restrictions to domains. What is not computed yet they ask for, and it is added here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from karpool.cluster.arrays import Array
from karpool.cluster.groups import NodeFilter
from karpool.cluster.topology import Domains
from karpool.model.requirements import Requirement, Requirements
from karpool.packing.kernels.columns import GROWING, UNSET
from karpool.packing.type_table import TypeTable

_IMPOSSIBLE: Final = -1


@dataclass
class RequirementTable:
    types: TypeTable
    domains: Domains
    free_keys: frozenset[str]
    counted_values: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Values of keys that minValues count, with their numbers."""
    requirements: list[Requirements] = field(default_factory=list)
    incoming: list[Requirements] = field(default_factory=list)
    columns: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers: dict[Requirements, int] = {}
        self._incoming_numbers: dict[Requirements, int] = {}
        self._filters = 0
        self._domain_results = 0
        self._make_room()

    def _make_room(self) -> None:
        keys, domains = self.domains.size
        sizes = {
            "requirements": len(self.requirements),
            "incoming": len(self.incoming),
            "filters": self._filters,
            "domain_results": self._domain_results,
            "keys": keys,
            "domains": domains,
            "types": len(self.types.types),
            "reserved": len(self.types.reserved),
            "values": len(self.counted_values),
        }
        for name, column in GROWING.items():
            self.columns[name] = column.fitted(sizes, self.columns.get(name))

    def number(self, requirements: Requirements) -> int:
        """The number of a claim's requirements, judged when they are new."""
        number = self._numbers.get(requirements)
        if number is None:
            number = self._numbers[requirements] = len(self.requirements)
            self.requirements.append(requirements)
            self._make_room()
            self.columns["types_of"][number, : len(self.types.types)] = self.types.suitable(requirements)
            if self.types.reserved:
                self.columns["reserved_ok"][number] = self.types.launchable(requirements)[self.types.reserved]
            for (key, value), counted in self.counted_values.items():
                allowed = requirements.get(key)
                self.columns["value_allowed"][number, counted] = allowed is None or allowed.has(value)
            self._locate(number)
        return number

    def incoming_number(self, requirements: Requirements) -> int:
        """The number of what pods or volumes require of a claim."""
        number = self._incoming_numbers.get(requirements)
        if number is None:
            number = self._incoming_numbers[requirements] = len(self.incoming)
            self.incoming.append(requirements)
            self._make_room()
        return number

    def locate_all(self, filters: int) -> None:
        """Update the columns for topology keys, domains and filters that are new."""
        self._filters = filters
        self._make_room()
        for number in range(len(self.requirements)):
            self._locate(number)

    def _locate(self, number: int) -> None:
        """Write down which domains a claim with these requirements could be in."""
        requirements = self.requirements[number]
        mask_of, concrete, single = (self.columns[name] for name in ("mask_of", "concrete", "single"))
        for name, key in self.domains.keys.items():
            values = self.domains.values[key]
            allowed = requirements.get(name)
            # A listed value that is no known domain is not in the mask, so that the mask does not say everything.
            concrete[number, key] = allowed is not None and not allowed.complement and allowed.values <= values.keys()
            single[number, key] = UNSET
            if allowed is None:
                mask_of[number, key, : len(values)] = name in self.free_keys
                continue
            for value, domain in values.items():
                mask_of[number, key, domain] = allowed.has(value)
            if not allowed.complement and len(allowed.values) == 1:
                single[number, key] = values.get(next(iter(allowed.values)), UNSET)

    def intersect(self, number: int, incoming: int) -> None:
        result = self.both(self.requirements[number], self.incoming[incoming])
        self.columns["intersections"][number, incoming] = result

    def both(self, claim: Requirements, wanted: Requirements) -> int:
        """The number of a claim's requirements together with what else is wanted of it; -1 if they conflict."""
        if claim.conflict(wanted, undefined=self.free_keys) is not None:
            return _IMPOSSIBLE
        return self._satisfiable_number(claim.intersect(wanted))

    def restrict_to_domains(self, number: int, key: int, mask: Array) -> None:
        """Compute a claim's requirements restricted to some domains of a key."""
        name = next(name for name, known in self.domains.keys.items() if known == key)
        allowed = frozenset(value for value, domain in self.domains.values[key].items() if mask[domain])
        claim = self.requirements[number]
        result = _IMPOSSIBLE
        if allowed and (name in claim or name in self.free_keys):
            restricted = claim.with_key(name, Requirement(complement=False, values=allowed, absent=False))
            result = self._satisfiable_number(restricted)
        entry = self._domain_results
        self._domain_results += 1
        self._make_room()
        columns = self.columns
        columns["domain_next"][entry], columns["domain_head"][number] = columns["domain_head"][number], entry
        columns["domain_key"][entry], columns["domain_result"][entry] = key, result
        columns["domain_mask"][entry, : len(mask)] = mask

    def _satisfiable_number(self, requirements: Requirements) -> int:
        return self.number(requirements) if requirements.satisfiable else _IMPOSSIBLE

    def price(self, number: int) -> None:
        """Compute the highest price at which every type could be launched under a claim's requirements."""
        prices = self.types.worst(self.requirements[number])
        self.columns["worst_price"][number, : len(prices)] = prices
        self.columns["priced"][number] = 1

    def match_filter(self, number: int, nodes: NodeFilter, requirement: int) -> None:
        """Judge whether a spread rule counts pods on claims with these requirements."""
        claim = self.requirements[requirement]
        self.columns["claim_seen"][number, requirement] = not nodes.alternatives or any(
            claim.conflict(wanted, undefined=self.free_keys) is None for wanted in nodes.alternatives
        )
