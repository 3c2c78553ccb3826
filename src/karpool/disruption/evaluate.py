"""What removing a set of nodes together would mean: nothing else needed, one cheaper node instead, or a reason why not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.disruption.command import Cause, Command, Method, Move, Replacement
from karpool.disruption.reasons import Code
from karpool.disruption.situation import Situation, Standing
from karpool.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT
from karpool.model.reasons import Reason
from karpool.model.requirements import ANY, Requirements, one_of
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.placement import Placement
from karpool.packing.refusals import refusals, sentence
from karpool.packing.typetable import TypeTable

# Prices are sums of binary fractions: two equal sums may differ by a hair, which is no saving.
HAIR: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Footprint:
    """What an answer rests on: if none of it changes, neither does the answer."""

    nodes: frozenset[int]
    groups: frozenset[int]
    classes: frozenset[int]
    opened: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """A command, or why there is none; and what that rests on."""

    command: Command | None
    reason: Reason | None
    footprint: Footprint


class Evaluator:
    """Evaluates sets of nodes against one situation."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation

    def consolidate(self, standings: Sequence[Standing]) -> Outcome:
        """Whether nodes can go with nothing, or with one cheaper node, in their place."""
        situation, engine = self.situation, self.situation.engine
        pods = [row for standing in standings for row in standing.movers]
        exempt = [situation.exempt(situation.snapshot.pods.get(row)) for row in pods]
        with engine.what_if() as trial:
            trial.remove([standing.row for standing in standings])
            found = trial.place(pods, exempt=exempt, closed=situation.closed)
            footprint = self._footprint(standings, found)
            reason = self._nowhere(standings, found)
            if reason is None and found.claims > 1:
                reason = self._about(
                    standings, Code.NEEDS_SEVERAL_NODES, f"its pods would need {found.claims} new nodes"
                )
            if reason is not None:
                return Outcome(None, reason, footprint)
            replacements: tuple[Replacement, ...] = ()
            if found.claims:
                made = self._replacement(standings, found)
                if isinstance(made, Reason):
                    return Outcome(None, made, footprint)
                replacements = (made,)
            method = Method.MULTI_NODE if len(standings) > 1 else Method.SINGLE_NODE
            return Outcome(self._command(method, Cause.UNDERUTILIZED, standings, found, replacements), None, footprint)

    def drift(self, standing: Standing) -> Outcome:
        """What removing a drifted node takes: as many new nodes as its pods need, at any price."""
        situation = self.situation
        pods = list(standing.movers)
        with situation.engine.what_if() as trial:
            trial.remove([standing.row])
            found = trial.place(pods, exempt=[True] * len(pods))
            footprint = self._footprint([standing], found)
            reason = self._nowhere([standing], found)
            if reason is not None:
                return Outcome(None, reason, footprint)
            replacements = tuple(self._any_price(found, claim) for claim in range(found.claims))
            command = self._command(Method.DRIFT, Cause.DRIFTED, [standing], found, replacements)
            return Outcome(command, None, footprint)

    # -- where pods go -------------------------------------------------------------------------------------------

    def _footprint(self, standings: Sequence[Standing], found: Placement) -> Footprint:
        snapshot = self.situation.snapshot
        classes = {int(snapshot.pods.class_of[row]) for row in found.pods}
        groups: set[int] = set()
        for row in found.pods:
            groups.update(snapshot.topology.kept_off_by.row(int(snapshot.pods.labels_of[row])))
        for number in classes:
            level = number
            while level >= 0:
                groups.update(snapshot.classes.owned.row(level))
                level = int(snapshot.classes.next[level])
        nodes = {standing.row for standing in standings} | {target for target in found.targets if target >= 0}
        opened = found.claims > 0 or UNPLACED in found.targets
        return Footprint(frozenset(nodes), frozenset(groups), frozenset(classes), opened)

    def _nowhere(self, standings: Sequence[Standing], found: Placement) -> Reason | None:
        """The first pod that has no place to go to, or only one on a node that is not up yet."""
        situation = self.situation
        pods, nodes = situation.snapshot.pods, situation.snapshot.nodes
        for row, target in zip(found.pods, found.targets, strict=True):
            pod = pods.get(row)
            if pod.key in situation.pending:
                continue
            if target == UNPLACED:
                why = sentence(refusals(situation.engine, row, exempt=situation.exempt(pod)))
                return Reason(Code.PODS_WOULD_NOT_FIT, f"would find no other place: {why}", f"Pod {pod.key}")
            if target >= 0 and not nodes.get(target).initialized and pod.key not in situation.leaving:
                said = f"would have to go to node {nodes.get(target).name}, which is not initialized"
                return Reason(Code.UNINITIALIZED_DESTINATION, said, f"Pod {pod.key}")
        return None

    @staticmethod
    def _about(standings: Sequence[Standing], code: Code, said: str) -> Reason:
        names = ", ".join(standing.name for standing in standings[:3])
        more = f" and {len(standings) - 3} more" if len(standings) > 3 else ""  # noqa: PLR2004 - three names are read at a glance
        return Reason(code, said, f"Node {names}{more}")

    def _command(
        self,
        method: Method,
        cause: Cause,
        standings: Sequence[Standing],
        found: Placement,
        replacements: tuple[Replacement, ...],
    ) -> Command:
        situation = self.situation
        pods = situation.snapshot.pods
        moves = []
        for row, target in zip(found.pods, found.targets, strict=True):
            pod = pods.get(row)
            if target == UNPLACED:
                continue
            moves.append(
                Move(
                    pod=pod.key,
                    source=None if pod.key in situation.pending else pod.spec.node_name,
                    target=situation.snapshot.nodes.get(target).name if target >= 0 else -2 - target,
                    leaving=pod.key in situation.leaving,
                )
            )
        going = [pods.get(row) for row in found.pods if not situation.expected(pods.get(row))]
        return Command(
            method=method,
            cause=cause,
            nodes=tuple(standing.name for standing in standings),
            replacements=replacements,
            moves=tuple(sorted(moves, key=lambda move: move.pod)),
            price=sum(standing.price or 0.0 for standing in standings),
            unpriced=sum(standing.price is None for standing in standings),
            disruption_cost=sum(standing.cost for standing in standings),
            waves=situation.pdbs.waves(going, situation.now),
        )

    # -- what comes instead --------------------------------------------------------------------------------------

    def _replacement(self, standings: Sequence[Standing], found: Placement) -> Replacement | Reason:
        """The one new node, narrowed to the types that are cheaper; or why there is none."""
        wanted = found.claim_requirements(0)
        kinds = wanted.get(CAPACITY_TYPE, ANY)
        all_spot = all(standing.state.labels.get(CAPACITY_TYPE) == SPOT for standing in standings)
        if all_spot and kinds.has(SPOT):
            return self._spot_to_spot(standings, found, wanted)
        types = self._cheaper(standings, found, wanted)
        if isinstance(types, Reason):
            return types
        if kinds.has(SPOT) and kinds.has(ON_DEMAND):
            # The launch must fail rather than buy dearer on-demand capacity, so the capacity type is settled here.
            for kind in (SPOT, ON_DEMAND):
                pinned = wanted.with_key(CAPACITY_TYPE, one_of(kind))
                offered = types[self._table.suitable(pinned)[types]]
                if len(offered):
                    return self._made(found, 0, pinned, offered)
        return self._made(found, 0, wanted, types)

    @property
    def _table(self) -> TypeTable:
        return self.situation.engine.keeper.pools.types

    def _cheaper(self, standings: Sequence[Standing], found: Placement, wanted: Requirements) -> Array | Reason:
        """The types that cost less than the nodes they replace wherever they are launched, cheapest first."""
        types = found.ordered_types(0, wanted)
        worst = self.situation.engine.worst_prices(wanted)
        price = sum(standing.price or 0.0 for standing in standings)
        kept = types[worst[types] < price - HAIR]
        if not len(kept):
            return self._not_cheaper(standings, wanted, types, price)
        if len(standings) > 1:
            kept = self._without_rebuilding(standings, kept, worst)
            if not len(kept):
                said = "the replacement would be of a type that one of the nodes has already, and no cheaper"
                return self._about(standings, Code.SAME_TYPE_REPLACEMENT, said)
        if not found.keeps_minimums(0, kept):
            said = "too few of the types that its pool wants to choose from are cheaper"
            return self._about(standings, Code.MIN_VALUES_BROKEN, said)
        return kept

    def _not_cheaper(self, standings: Sequence[Standing], wanted: Requirements, types: Array, price: float) -> Reason:
        if all(standing.price is None for standing in standings):
            said = "nobody knows what it costs, so nothing can be said to be cheaper"
            return self._about(standings, Code.PRICE_UNKNOWN, said)
        prices = self.situation.engine.prices(wanted)
        if not len(types) or not np.isfinite(prices[types[0]]):
            said = "no node with a known price would hold its pods"
            return self._about(standings, Code.PRICE_UNKNOWN, said)
        first = int(types[0])
        zone = self._cheapest_zone(first, wanted)
        worst = float(self.situation.engine.worst_prices(wanted)[first])
        up_to = f" and up to {worst:.6g}" if worst > prices[first] + HAIR else ""
        said = (
            f"the cheapest node that would hold its pods, {self._table.names[first]}{f' in {zone}' if zone else ''}, "
            f"costs {prices[first]:.6g}{up_to} $/h, not less than today's {price:.6g}"
        )
        return self._about(standings, Code.NOT_CHEAPER, said)

    def _cheapest_zone(self, entry: int, wanted: Requirements) -> str:
        table = self._table
        here = np.flatnonzero(table.launchable(wanted) & (table.type_of == entry))
        return table.offerings[int(here[np.argmin(table.price[here])])].zone if len(here) else ""

    def _without_rebuilding(self, standings: Sequence[Standing], types: Array, worst: Array) -> Array:
        """Leave out what would only rebuild a node that could simply be kept."""
        names = self._table.names
        listed = set(names[types].tolist())
        prices = [
            standing.price or 0.0
            for standing in standings
            if standing.entry is not None and standing.entry.name in listed
        ]
        return types[worst[types] < min(prices) - HAIR] if prices else types

    def _spot_to_spot(
        self, standings: Sequence[Standing], found: Placement, wanted: Requirements
    ) -> Replacement | Reason:
        settings = self.situation.settings
        if not settings.spot_to_spot:
            said = "is a spot node, and replacing spot by spot needs the feature gate SpotToSpotConsolidation"
            return self._about(standings, Code.SPOT_TO_SPOT_DISABLED, said)
        pinned = wanted.with_key(CAPACITY_TYPE, one_of(SPOT))
        types = self._cheaper(standings, found, pinned)
        if isinstance(types, Reason):
            return types
        types = types[self._table.suitable(pinned)[types]]
        if len(standings) == 1:
            if len(types) < settings.spot_floor:
                said = (
                    f"only {len(types)} spot types are cheaper, and {settings.spot_floor} are needed to be sure of one"
                )
                return self._about(standings, Code.SPOT_TO_SPOT_TOO_FEW_TYPES, said)
            most = settings.spot_floor
            while most < len(types) and not found.keeps_minimums(0, types[:most]):
                most += 1
            types = types[:most]
        return self._made(found, 0, pinned, types)

    def _any_price(self, found: Placement, claim: int) -> Replacement:
        """A new node at whatever price, of the capacity type that its cheapest type would be launched as."""
        wanted = found.claim_requirements(claim)
        types = found.ordered_types(claim, wanted)
        kinds = wanted.get(CAPACITY_TYPE, ANY)
        for kind in (RESERVED, SPOT, ON_DEMAND):
            pinned = wanted.with_key(CAPACITY_TYPE, one_of(kind))
            if kinds.has(kind) and len(types) and self._table.suitable(pinned)[types[0]]:
                return self._made(found, claim, pinned, types[self._table.suitable(pinned)[types]])
        return self._made(found, claim, wanted, types)

    def _made(self, found: Placement, claim: int, wanted: Requirements, types: Array) -> Replacement:
        table = self._table
        prices = self.situation.engine.prices(wanted)
        ordered = types[np.lexsort((table.rank[types], prices[types]))]
        launchable = table.launchable(wanted) & np.isin(table.type_of, ordered)
        zones = {table.offerings[number].zone for number in np.flatnonzero(launchable)}
        kinds = {table.offerings[number].capacity_type for number in np.flatnonzero(launchable)}
        price = float(prices[ordered[0]]) if len(ordered) else np.inf
        return Replacement(
            pool=found.claim_pool(claim),
            requirements=wanted,
            instance_types=tuple(table.names[ordered].tolist()),
            capacity_type=next(iter(kinds)) if len(kinds) == 1 else "",
            zones=tuple(sorted(zones - {""})),
            price=price if np.isfinite(price) else None,
        )
