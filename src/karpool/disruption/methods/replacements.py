"""What comes in the place of nodes that go: cheaper nodes, or any nodes at all when nodes have drifted."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.disruption.candidates.candidate import Candidate, price_of
from karpool.disruption.command import Replacement
from karpool.disruption.context import DecisionContext
from karpool.disruption.policies import HAIR
from karpool.disruption.reasons import ReasonCode
from karpool.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT
from karpool.model.node_group import NodeGroup
from karpool.model.reasons import Reason
from karpool.model.requirements import ANY, Requirements, one_of
from karpool.packing.engine import Engine
from karpool.packing.placement import Placement
from karpool.packing.type_table import Mask, TypeTable

_NAMES_SHOWN: Final = 3
_OWN_PRICE_UNKNOWN: Final = "nobody knows what it costs, so nothing can be said to be cheaper"
_NO_PRICE: Final = "no node with a known price would hold its pods"


def about(candidates: Sequence[Candidate], code: ReasonCode, message: str) -> Reason:
    """A reason that concerns some nodes together."""
    names = ", ".join(candidate.name for candidate in candidates[:_NAMES_SHOWN])
    more = f" and {len(candidates) - _NAMES_SHOWN} more" if len(candidates) > _NAMES_SHOWN else ""
    return Reason(code, message, f"Node {names}{more}")


def _own_group(candidates: Sequence[Candidate], placement: Placement) -> NodeGroup | None:
    """The node group of which all candidates are and the one new node would be; None if there is no such group."""
    pool = candidates[0].pool
    same = all(candidate.pool is pool for candidate in candidates)
    return pool if isinstance(pool, NodeGroup) and same and placement.claim_pool(0) == pool.name else None


class ReplacementFinder:
    """Chooses the types of new nodes from what a placement leaves open."""

    def __init__(self, context: DecisionContext, engine: Engine | None = None) -> None:
        """`engine`: who placed the pods, if it is not that of the context."""
        self.context = context
        self.engine = engine or context.engine

    @property
    def table(self) -> TypeTable:
        """All types that can be had."""
        return self.engine.tables.pools.types

    def cheaper(self, candidates: Sequence[Candidate], placement: Placement) -> tuple[Replacement, ...] | Reason:
        """The new nodes, each narrowed to types with which all are cheaper together wherever they are launched."""
        shares = self._shares(candidates, placement)
        if isinstance(shares, Reason):
            return shares
        made = []
        for claim, share in enumerate(shares):
            offer = self._offer(candidates, placement, claim, share)
            if isinstance(offer, Reason):
                return offer
            made.append(self.made(placement.claim_pool(claim), *offer))
        return tuple(made)

    def _shares(self, candidates: Sequence[Candidate], placement: Placement) -> list[float] | Reason:
        """What each new node has to stay below, so that all together cost less than the nodes that go.

        Each gets the least that it can be had for, and an equal part of what is left then.
        """
        price = price_of(candidates)
        if placement.claims == 1:
            return [price]
        least = []
        for claim in range(placement.claims):
            share = self._least(candidates, placement, claim)
            if isinstance(share, Reason):
                return share
            least.append(share)
        spare = (price - sum(least)) / placement.claims
        if spare < 0.0:
            return self._not_cheaper_together(candidates, placement)
        return [share + spare for share in least]

    def _least(self, candidates: Sequence[Candidate], placement: Placement, claim: int) -> float | Reason:
        """The least share with which a new node can be had, with as many types to choose from as it needs."""
        wanted = placement.claim_requirements(claim)
        types = placement.claim_types(claim)
        prices = np.unique([self.engine.worst_prices(pinned)[types] for pinned in (wanted, *self._pins(wanted))])
        shares = prices[np.isfinite(prices)] + 2 * HAIR
        if not len(shares):
            return about(candidates, ReasonCode.PRICE_UNKNOWN, _NO_PRICE)
        if not isinstance(self._offer(candidates, placement, claim, float(shares[0])), Reason):
            return float(shares[0])
        most = self._offer(candidates, placement, claim, float(shares[-1]))
        if isinstance(most, Reason):
            return most
        # A larger share leaves at least the types that a smaller one leaves.
        low, high = 0, len(shares) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if isinstance(self._offer(candidates, placement, claim, float(shares[middle])), Reason):
                low = middle
            else:
                high = middle
        return float(shares[high])

    def _offer(
        self, candidates: Sequence[Candidate], placement: Placement, claim: int, below: float
    ) -> tuple[Requirements, Array] | Reason:
        """What a new node that costs less than `below` may be, its capacity type settled, and of which types."""
        requirements = placement.claim_requirements(claim)
        kinds = requirements.get(CAPACITY_TYPE, ANY)
        if (
            not kinds.has(SPOT)
            and not kinds.has(ON_DEMAND)
            and kinds.has(RESERVED)
            and not placement.reservations(claim)
        ):
            message = "its pods need reserved capacity, and none is left"
            return about(candidates, ReasonCode.PODS_WOULD_NOT_FIT, message)
        all_spot = all(candidate.spot for candidate in candidates)
        if all_spot and kinds.has(SPOT):
            return self._spot_to_spot(candidates, placement, claim, below)
        types = self._below(candidates, placement, claim, requirements, below)
        if isinstance(types, Reason):
            return types
        for pinned in self._pins(requirements):
            # The launch must fail rather than buy expensive capacity of another kind, so the kind is settled here.
            worst = self.engine.worst_prices(pinned)
            offered = self._without_rebuilding(candidates, placement, types[worst[types] < below - HAIR], worst)
            if len(offered) and placement.keeps_minimums(claim, offered):
                return pinned, offered
        return self._too_few(candidates)

    def at_any_price(self, placement: Placement, claim: int) -> Replacement | None:
        """A new node at whatever price, as its cheapest type would be launched; None if too few types can be named."""
        wanted = placement.claim_requirements(claim)
        types = placement.ordered_types(claim, wanted)
        if not len(types):
            return None
        for pinned in self._pins(wanted):
            offered = types[self.table.suitable(pinned)[types]]
            if len(offered) and offered[0] == types[0] and placement.keeps_minimums(claim, offered):
                return self.made(placement.claim_pool(claim), pinned, offered)
        return self.made(placement.claim_pool(claim), wanted, types)

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

    def _below(
        self, candidates: Sequence[Candidate], placement: Placement, claim: int, wanted: Requirements, below: float
    ) -> Array | Reason:
        """The types that cost less than `below` wherever they are launched, cheapest first."""
        types = placement.ordered_types(claim, wanted)
        worst = self.engine.worst_prices(wanted)
        kept = types[worst[types] < below - HAIR]
        if not len(kept):
            return self._not_cheaper(candidates, placement, wanted, types)
        kept = self._without_rebuilding(candidates, placement, kept, worst)
        if not len(kept):
            message = "the replacement would be of a type that one of the nodes has already, and no cheaper"
            return about(candidates, ReasonCode.SAME_TYPE_REPLACEMENT, message)
        return kept if placement.keeps_minimums(claim, kept) else self._too_few(candidates)

    @staticmethod
    def _too_few(candidates: Sequence[Candidate]) -> Reason:
        message = "too few of the types that its pool wants to choose from (minValues) are cheaper"
        return about(candidates, ReasonCode.MIN_VALUES_BROKEN, message)

    @staticmethod
    def _not_cheaper_together(candidates: Sequence[Candidate], placement: Placement) -> Reason:
        if all(candidate.price is None for candidate in candidates):
            return about(candidates, ReasonCode.PRICE_UNKNOWN, _OWN_PRICE_UNKNOWN)
        message = f"its pods would need {placement.claims} new nodes, which together cost no less"
        return about(candidates, ReasonCode.NEEDS_SEVERAL_NODES, message)

    def _not_cheaper(
        self, candidates: Sequence[Candidate], placement: Placement, wanted: Requirements, types: Array
    ) -> Reason:
        if placement.claims > 1:
            return self._not_cheaper_together(candidates, placement)
        if all(candidate.price is None for candidate in candidates):
            return about(candidates, ReasonCode.PRICE_UNKNOWN, _OWN_PRICE_UNKNOWN)
        prices = self.engine.prices(wanted)
        if not len(types) or not np.isfinite(prices[types[0]]):
            return about(candidates, ReasonCode.PRICE_UNKNOWN, _NO_PRICE)
        if (group := _own_group(candidates, placement)) is not None:
            message = f"its pods would need another node of group {group.name}"
            return about(candidates, ReasonCode.NOT_CHEAPER, message)
        first = int(types[0])
        zone = self.engine.cheapest_zone(first, wanted)
        worst = float(self.engine.worst_prices(wanted)[first])
        up_to = f" and up to {worst:.6g}" if worst > prices[first] + HAIR else ""
        message = (
            f"the cheapest node that would hold its pods, {self.table.names[first]}{f' in {zone}' if zone else ''}, "
            f"costs {prices[first]:.6g}{up_to} $/h, not less than today's {price_of(candidates):.6g}"
        )
        return about(candidates, ReasonCode.NOT_CHEAPER, message)

    def _without_rebuilding(
        self, candidates: Sequence[Candidate], placement: Placement, types: Array, worst: Array
    ) -> Array:
        """Leave out what would only rebuild one of several nodes that could simply be kept."""
        if len(candidates) == 1:
            return types
        kept: dict[str, float] = {}
        for candidate in candidates:
            if candidate.entry is not None:
                price = candidate.price or 0.0
                kept[candidate.entry.name] = min(price, kept.get(candidate.entry.name, price))
        names = self.table.names[types].tolist()
        if placement.claims > 1:
            # A node that is kept holds the pods of one new node only, so the others are not measured by its price.
            limits = np.array([kept.get(name, np.inf) for name in names])
            return types[worst[types] < limits - HAIR]
        prices = [kept[name] for name in names if name in kept]
        return types[worst[types] < min(prices) - HAIR] if prices else types

    def _spot_to_spot(
        self, candidates: Sequence[Candidate], placement: Placement, claim: int, below: float
    ) -> tuple[Requirements, Array] | Reason:
        settings = self.context.settings
        if not settings.spot_to_spot:
            message = "is a spot node, and replacing spot by spot needs the feature gate SpotToSpotConsolidation"
            return about(candidates, ReasonCode.SPOT_TO_SPOT_DISABLED, message)
        pinned = placement.claim_requirements(claim).with_key(CAPACITY_TYPE, one_of(SPOT))
        types = self._below(candidates, placement, claim, pinned, below)
        if isinstance(types, Reason):
            return types
        if len(candidates) == 1:
            floor = settings.spot_floor
            if len(types) < floor:
                message = f"only {len(types)} spot types are cheaper, and {floor} are needed to be sure of one"
                return about(candidates, ReasonCode.SPOT_TO_SPOT_TOO_FEW_TYPES, message)
            most = floor
            while most < len(types) and not placement.keeps_minimums(claim, types[:most]):
                most += 1
            types = types[:most]
        return pinned, types
