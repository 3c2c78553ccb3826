"""What comes in the place of nodes that go: one cheaper node, or any nodes at all when nodes have drifted."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.disruption.command import Replacement
from karpool.disruption.context import Candidate, DecisionContext, price_of
from karpool.disruption.policies import HAIR
from karpool.disruption.reasons import ReasonCode
from karpool.model.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from karpool.model.reasons import Reason
from karpool.model.requirements import ANY, Requirements, one_of
from karpool.packing.placement import Placement
from karpool.packing.type_table import Mask, TypeTable

_NAMES_SHOWN: Final = 3


def about(candidates: Sequence[Candidate], code: ReasonCode, said: str) -> Reason:
    """A reason that concerns some nodes together."""
    names = ", ".join(candidate.name for candidate in candidates[:_NAMES_SHOWN])
    more = f" and {len(candidates) - _NAMES_SHOWN} more" if len(candidates) > _NAMES_SHOWN else ""
    return Reason(code, said, f"Node {names}{more}")


class ReplacementFinder:
    """Chooses the types of new nodes from what a placement leaves open."""

    def __init__(self, context: DecisionContext) -> None:
        self.context = context
        self.engine = context.engine

    @property
    def table(self) -> TypeTable:
        """All types that can be had."""
        return self.engine.tables.pools.types

    def cheaper(self, candidates: Sequence[Candidate], found: Placement) -> Replacement | Reason:
        """The one new node, narrowed to the types that are cheaper; or why there is none."""
        wanted = found.claim_requirements(0)
        kinds = wanted.get(CAPACITY_TYPE, ANY)
        all_spot = all(candidate.state.labels.get(CAPACITY_TYPE) == SPOT for candidate in candidates)
        if all_spot and kinds.has(SPOT):
            return self._spot_to_spot(candidates, found, wanted)
        types = self._below(candidates, found, wanted)
        if isinstance(types, Reason):
            return types
        for pinned in self._pins(wanted):
            # The launch must fail rather than buy dearer capacity of another kind, so the kind is settled here.
            worst = self.engine.worst_prices(pinned)
            offered = self._without_rebuilding(candidates, types[worst[types] < price_of(candidates) - HAIR], worst)
            if len(offered) and found.keeps_minimums(0, offered):
                return self.made(found.claim_pool(0), pinned, offered)
        return self._too_few(candidates)

    def at_any_price(self, found: Placement, claim: int) -> Replacement | None:
        """A new node at whatever price, as its cheapest type would be launched; None if too few types can be named."""
        wanted = found.claim_requirements(claim)
        types = found.ordered_types(claim, wanted)
        if not len(types):
            return None
        for pinned in self._pins(wanted):
            offered = types[self.table.suitable(pinned)[types]]
            if len(offered) and offered[0] == types[0] and found.keeps_minimums(claim, offered):
                return self.made(found.claim_pool(claim), pinned, offered)
        return self.made(found.claim_pool(claim), wanted, types)

    def of_pool(self, pool: str, wanted: Requirements, fits: Mask) -> Replacement | None:
        """A new node straight from a pool, of the types that would do; None if none can be had."""
        for pinned in self._pins(wanted):
            types = np.flatnonzero(fits & self.table.suitable(pinned))
            if len(types):
                return self.made(pool, pinned, types)
        return None

    def made(self, pool: str, wanted: Requirements, types: Array) -> Replacement:
        """A new node of a pool with these types to choose from, cheapest first."""
        table = self.table
        prices = self.engine.prices(wanted)
        ordered = types[np.lexsort((table.rank[types], prices[types]))]
        launchable = table.launchable(wanted) & np.isin(table.type_of, ordered)
        zones = {table.offerings[number].zone for number in np.flatnonzero(launchable)}
        kinds = {table.offerings[number].capacity_type for number in np.flatnonzero(launchable)}
        price = float(prices[ordered[0]]) if len(ordered) else np.inf
        return Replacement(
            pool=pool,
            requirements=wanted,
            instance_types=tuple(table.names[ordered].tolist()),
            capacity_type=next(iter(kinds)) if len(kinds) == 1 else "",
            zones=tuple(sorted(zones - {""})),
            price=price if np.isfinite(price) else None,
        )

    @staticmethod
    def _pins(wanted: Requirements) -> list[Requirements]:
        """The capacity types that a new node may have, each settled, in the order in which they are launched."""
        kinds = wanted.get(CAPACITY_TYPE, ANY)
        pins = [wanted.with_key(CAPACITY_TYPE, one_of(kind)) for kind in (SPOT, ON_DEMAND) if kinds.has(kind)]
        # Only a node that holds a reservation is reserved; the engine has settled that then.
        return pins or [wanted]

    # -- prices --------------------------------------------------------------------------------------------------

    def _below(self, candidates: Sequence[Candidate], found: Placement, wanted: Requirements) -> Array | Reason:
        """The types that cost less than the nodes they replace wherever they are launched, cheapest first."""
        types = found.ordered_types(0, wanted)
        worst = self.engine.worst_prices(wanted)
        price = price_of(candidates)
        kept = types[worst[types] < price - HAIR]
        if not len(kept):
            return self._not_cheaper(candidates, wanted, types, price)
        kept = self._without_rebuilding(candidates, kept, worst)
        if not len(kept):
            said = "the replacement would be of a type that one of the nodes has already, and no cheaper"
            return about(candidates, ReasonCode.SAME_TYPE_REPLACEMENT, said)
        return kept if found.keeps_minimums(0, kept) else self._too_few(candidates)

    @staticmethod
    def _too_few(candidates: Sequence[Candidate]) -> Reason:
        said = "too few of the types that its pool wants to choose from (minValues) are cheaper"
        return about(candidates, ReasonCode.MIN_VALUES_BROKEN, said)

    def _not_cheaper(self, candidates: Sequence[Candidate], wanted: Requirements, types: Array, price: float) -> Reason:
        if all(candidate.price is None for candidate in candidates):
            said = "nobody knows what it costs, so nothing can be said to be cheaper"
            return about(candidates, ReasonCode.PRICE_UNKNOWN, said)
        prices = self.engine.prices(wanted)
        if not len(types) or not np.isfinite(prices[types[0]]):
            return about(candidates, ReasonCode.PRICE_UNKNOWN, "no node with a known price would hold its pods")
        first = int(types[0])
        zone = self.engine.cheapest_zone(first, wanted)
        worst = float(self.engine.worst_prices(wanted)[first])
        up_to = f" and up to {worst:.6g}" if worst > prices[first] + HAIR else ""
        said = (
            f"the cheapest node that would hold its pods, {self.table.names[first]}{f' in {zone}' if zone else ''}, "
            f"costs {prices[first]:.6g}{up_to} $/h, not less than today's {price:.6g}"
        )
        return about(candidates, ReasonCode.NOT_CHEAPER, said)

    def _without_rebuilding(self, candidates: Sequence[Candidate], types: Array, worst: Array) -> Array:
        """Leave out what would only rebuild one of several nodes that could simply be kept."""
        if len(candidates) == 1:
            return types
        listed = set(self.table.names[types].tolist())
        prices = [
            candidate.price or 0.0
            for candidate in candidates
            if candidate.entry is not None and candidate.entry.name in listed
        ]
        return types[worst[types] < min(prices) - HAIR] if prices else types

    def _spot_to_spot(
        self, candidates: Sequence[Candidate], found: Placement, wanted: Requirements
    ) -> Replacement | Reason:
        settings = self.context.settings
        if not settings.spot_to_spot:
            said = "is a spot node, and replacing spot by spot needs the feature gate SpotToSpotConsolidation"
            return about(candidates, ReasonCode.SPOT_TO_SPOT_DISABLED, said)
        pinned = wanted.with_key(CAPACITY_TYPE, one_of(SPOT))
        types = self._below(candidates, found, pinned)
        if isinstance(types, Reason):
            return types
        if len(candidates) == 1:
            if len(types) < settings.spot_floor:
                said = (
                    f"only {len(types)} spot types are cheaper, and {settings.spot_floor} are needed to be sure of one"
                )
                return about(candidates, ReasonCode.SPOT_TO_SPOT_TOO_FEW_TYPES, said)
            most = settings.spot_floor
            while most < len(types) and not found.keeps_minimums(0, types[:most]):
                most += 1
            types = types[:most]
        return self.made(found.claim_pool(0), pinned, types)
