"""A fleet with everything that could ever be launched, so that a bound is below whatever commands reach.

A search looks at kinds with a price and without reservations, and counts every DaemonSet that may run on a new node. A
bound must not be surprised by what the engine may do beyond that: use what reservations have left, replace drifted
nodes by types whose price nobody knows, and fill room that a DaemonSet did not take in the end.
"""

from dataclasses import replace

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.daemons import Daemon
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.fleet_search.fleet import Fleet, with_unions
from karpool.disruption.fleet_search.kinds import Market, markets_of, suitable, table_of
from karpool.disruption.fleet_search.static_nodes import with_replaced_nodes
from karpool.model.labels import HOSTNAME, RESERVED
from karpool.model.requirements import Requirements
from karpool.optimization.problem import FleetProblem, Kinds
from karpool.packing.engine import Engine


def bounded_problem(decision_pass: DecisionPass, fleet: Fleet) -> FleetProblem:
    """The problem of a fleet with further kinds after those that a search knows."""
    engine = decision_pass.context.engine
    offers = _Offers(engine, fleet.columns, unpriced=bool(decision_pass.drifted()))
    problem = with_replaced_nodes(decision_pass, fleet)
    signatures = engine.snapshot.classes.signatures
    made = [offers.of(market) for market in offers.markets]
    rows = [(number, entry) for number, entries in enumerate(made) for entry in entries]
    if not rows:
        return problem
    prices = np.array([price for entries in made for price, _, _ in entries.values()])
    kinds = replace(
        table_of(engine, offers.markets, rows, prices, fleet.columns),
        room=np.stack([room for entries in made for _, room, _ in entries.values()]),
        most=np.array([most for entries in made for _, _, most in entries.values()]),
    )
    by_market = {number: suitable(engine, offers.markets[number], signatures) for number, _ in rows}
    suits = np.stack([by_market[number][:, entry] for number, entry in rows], axis=1)
    joined = np.concatenate((problem.suits_kind, with_unions(suits, fleet.unions)), axis=1)
    return replace(problem, kinds=_joined(problem.kinds, kinds), suits_kind=np.ascontiguousarray(joined))


Offer = tuple[float, Array, float]
"""Price, room, and how many can be had."""


class _Offers:
    """What can be launched beyond the kinds of a search."""

    def __init__(self, engine: Engine, columns: Array, *, unpriced: bool) -> None:
        self._engine, self._columns, self._unpriced = engine, columns, unpriced
        self._pools, self._types = engine.tables.pools, engine.tables.pools.types
        self.markets = [*markets_of(engine, reserved=False), *markets_of(engine, reserved=True)]

    def of(self, market: Market) -> dict[int, Offer]:
        """By type: an offer that no kind of a search covers."""
        reserved = market.capacity_type == RESERVED
        launchable = self._types.suitable(market.requirements) & self._pools.usable_mask(market.template)
        prices = self._types.cheapest(market.requirements)
        found: dict[int, Offer] = {}
        for entry in np.flatnonzero(launchable).tolist():
            priced = bool(np.isfinite(prices[entry]))
            spared = self._spared(market, entry)
            if reserved or (priced and spared.any()) or (not priced and self._unpriced):
                room = self._pools.room[market.template, entry][self._columns] + spared
                most = self._left(market, entry) if reserved else np.inf
                # A node whose price is not known counts nothing in the price of a fleet.
                found[entry] = (float(prices[entry]) if priced else 0.0, room, most)
        return found

    def _left(self, market: Market, entry: int) -> float:
        """How many nodes of a type the reservations of a market have left."""
        offered = np.flatnonzero(self._types.launchable(market.requirements) & (self._types.type_of == entry))
        offerings = [self._types.offerings[at] for at in offered.tolist()]
        if any(offering.reservation_id is None for offering in offerings):
            return np.inf
        return float(sum(offering.reservation_capacity for offering in offerings))

    def _spared(self, market: Market, entry: int) -> Array:
        """The room of DaemonSets that the engine counts on new nodes of a type, and that may not come."""
        snapshot = self._engine.snapshot
        spared = np.zeros(len(snapshot.resources), dtype=np.int64)
        runs = self._pools.runs[market.template][:, entry]
        for number in np.flatnonzero(runs).tolist():
            daemon = snapshot.daemons[number]
            if not self._certain(daemon, market.requirements.intersect(self._types.types[entry].requirements)):
                for column, amount in snapshot.resources.request(daemon.requests).items():
                    spared[column] += amount
        return spared[self._columns]

    def _certain(self, daemon: Daemon, node: Requirements) -> bool:
        """Whether a daemon runs on every node that meets requirements."""
        return any(self._always(terms, node) for terms in daemon.alternatives)

    def _always(self, terms: Requirements, node: Requirements) -> bool:
        for key, allowed in terms.items():
            own = node.get(key)
            if own is None:
                if key == HOSTNAME or key in self._engine.catalog.well_known or not allowed.absent:
                    return False
            elif own.complement or not all(allowed.has(value) for value in own.values):
                return False
        return True


def _joined(first: Kinds, second: Kinds) -> Kinds:
    names = Kinds.__dataclass_fields__
    return Kinds(**{name: np.concatenate((getattr(first, name), getattr(second, name))) for name in names})
