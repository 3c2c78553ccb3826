"""Spot markets whose prices follow a history: what new and running instances cost, and when they are interrupted.

When the price of a market rises by a share `j` at once, each of its instances is interrupted in the time `within` after
that with the hazard `interruptionsPerJump * j / within`. So of instances that stay, the share `1 - exp(-j)` goes.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from karpool.catalog.instance_types import Catalog, Offering
from karpool.catalog.spot_history import Market, MarketHistory, SpotHistory
from karpool.model.labels import SPOT, ZONE_ID
from karpool.virtual.cloud import Instance, VirtualCloud
from karpool.virtual.curves import seconds
from karpool.virtual.random_streams import waiting_time
from karpool.virtual.scenario import Scenario, SpotHistorySettings
from karpool.virtual.world import VirtualWorld

_USUAL_ZONE_PARTS: Final = 2
"""`use1-az1`; ids of local zones, as `use1-atl2-az1`, have more."""


@dataclass(frozen=True, slots=True)
class PriceChange:
    """A market costs so much from a time on, in seconds since the start of the run."""

    at: float
    market: Market
    price: float


@dataclass(frozen=True, slots=True)
class SpotPrices:
    """The prices of the markets of a catalogue during a run, in the order of time; zones are the catalogue's."""

    opening: Mapping[Market, float]
    changes: tuple[PriceChange, ...]
    settings: SpotHistorySettings


def spot_prices(history: SpotHistory, scenario: Scenario, catalog: Catalog) -> SpotPrices | None:
    """What of a history a run meets; None if the scenario has none."""
    settings = scenario.spot_history
    if settings is None:
        return None
    chosen = settings.start or scenario.start
    begin = chosen.timestamp()
    if settings.start is None and not history.first <= begin < history.last:
        begin = history.first
    end = begin + seconds(scenario.warm_up) + seconds(scenario.length)
    markets = dict(_markets(history, settings, catalog))
    changes = heapq.merge(*(_changes(market, there, begin, end) for market, there in markets.items()), key=_order)
    return SpotPrices({market: there.at(begin) for market, there in markets.items()}, tuple(changes), settings)


def _changes(market: Market, there: MarketHistory, begin: float, end: float) -> Iterator[PriceChange]:
    for time, price in there.between(begin, end):
        yield PriceChange(time - begin, market, price)


def _order(change: PriceChange) -> tuple[float, Market]:
    return change.at, change.market


def _markets(
    history: SpotHistory, settings: SpotHistorySettings, catalog: Catalog
) -> Iterator[tuple[Market, MarketHistory]]:
    """The markets of a catalogue that the history knows."""
    names = zone_names(history, settings.zones, catalog)
    for entry in catalog.types:
        for zone in sorted({offering.zone for offering in entry.offerings if offering.capacity_type == SPOT}):
            there = history.markets.get((entry.name, names.get(zone, "")))
            if there is not None:
                yield (entry.name, zone), there


def zone_names(history: SpotHistory, given: Mapping[str, str], catalog: Catalog) -> dict[str, str]:
    """What the history calls the zones of a catalogue.

    A zone has the name that a scenario gives, its id, or its own name. Which letter is which zone differs between
    accounts: zones that are left are paired in their order, without local zones.
    """
    ids: dict[str, str] = {}
    for entry in catalog.types:
        for offering in entry.offerings:
            ids.setdefault(offering.zone, _zone_id(offering))
    known = set(history.zones)
    found = {}
    for zone in sorted(ids):
        named = next((name for name in (given.get(zone, ""), ids[zone], zone) if name in known), None)
        if named is not None:
            found[zone] = named
    left = [zone for zone in history.zones if zone not in found.values() and zone.count("-") < _USUAL_ZONE_PARTS]
    found.update(zip((zone for zone in sorted(ids) if zone not in found), left, strict=False))
    return found


def _zone_id(offering: Offering) -> str:
    wanted = offering.requirements.get(ZONE_ID)
    return next(iter(wanted.values)) if wanted is not None and len(wanted.values) == 1 else ""


@dataclass(frozen=True, slots=True)
class _Jump:
    """A rise of a price, after which instances are interrupted for a while."""

    at: float
    share: float


class SpotMarket:
    """Changes prices as their time comes, and interrupts instances after jumps."""

    def __init__(self, world: VirtualWorld, cloud: VirtualCloud, prices: SpotPrices) -> None:
        self.world = world
        self.cloud = cloud
        self._rules = prices.settings
        self._prices = dict(prices.opening)
        self._changes = prices.changes
        self._next = 0
        self._jumps: dict[Market, list[_Jump]] = {}
        cloud.reprice(prices.opening)
        cloud.on_start.append(self._started)
        self._wait()

    def _wait(self) -> None:
        if self._next < len(self._changes):
            self.world.queue.at(self._changes[self._next].at, self._change)

    def _change(self) -> None:
        now = self.world.queue.time
        changed: dict[Market, float] = {}
        while self._next < len(self._changes) and self._changes[self._next].at <= now:
            change = self._changes[self._next]
            changed[change.market] = change.price
            self._next += 1
        rises = {market: price / self._prices[market] - 1 for market, price in changed.items()}
        self._prices.update(changed)
        self.cloud.reprice(changed)
        jumped = {market: _Jump(now, share) for market, share in rises.items() if share > 0}
        for market, jump in jumped.items():
            self._jumps[market] = [*self._recent(market), jump]
        for instance in list(self.cloud.instances.values()) if jumped else ():
            of = _market_of(instance)
            if of is not None and of in jumped:
                self._expose(instance, of, [jumped[of]])
        self._wait()

    def _recent(self, market: Market) -> list[_Jump]:
        """Jumps after which instances are still interrupted."""
        since = self.world.queue.time - seconds(self._rules.within)
        return [jump for jump in self._jumps.get(market, ()) if jump.at > since]

    def _started(self, instance: Instance) -> None:
        market = _market_of(instance)
        if market is not None and market in self._jumps:
            self._expose(instance, market, self._recent(market))

    def _expose(self, instance: Instance, market: Market, jumps: Iterable[_Jump]) -> None:
        within, now = seconds(self._rules.within), self.world.queue.time
        for jump in jumps:
            hazard = self._rules.interruptions_per_jump * jump.share / within
            if hazard <= 0:
                continue
            concern = ("spot", *market, f"{jump.at:.0f}", instance.name)
            wait = waiting_time(self.world.seed, 1 / hazard, *concern)
            if now + wait < jump.at + within:
                self.cloud.plan_interruption(instance, now + wait, seconds(self._rules.warning))


def _market_of(instance: Instance) -> Market | None:
    return (instance.entry.name, instance.offering.zone) if instance.offering.capacity_type == SPOT else None
