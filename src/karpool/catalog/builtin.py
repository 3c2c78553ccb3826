"""Catalogues of clouds: the machines of AWS, Google Cloud and Azure, at the prices of the regions asked for."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from statistics import median
from typing import Final, NamedTuple

from karpool.catalog.instance_types import InstanceType, Offering
from karpool.catalog.machines import Machine, values
from karpool.catalog.overhead import AKS_PODS, GKE_PODS, Room, aks_room, eks_pods, eks_room, gke_room
from karpool.catalog.places import CLASSES, CloudRegion, ZoneName, place_of
from karpool.catalog.price_data import AWS, CLOUDS, GCP, RegionPrices, TypePrices
from karpool.catalog.price_list import PriceList, shipped_list, shipped_machines
from karpool.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, OS, REGION, SPOT, ZONE, ZONE_ID
from karpool.model.node import Node
from karpool.model.requirements import DOES_NOT_EXIST, Requirement, Requirements
from karpool.wire.quantity import ZERO

_LETTERS: Final = {"ap-northeast-1": "acd", "ca-central-1": "abd"}
_USUAL_ZONES: Final = 3
_WITHOUT_ZONES: Final = ("northcentralus", "westcentralus", "westus")
"""Regions of Azure whose machines are in no zone."""


class KubeletSettings(NamedTuple):
    """What nodes of a cluster show of how their kubelets are set."""

    prefixes: bool = False
    """Whether the network plugin of EKS hands out prefixes of addresses, so that nodes run more pods."""


class _Market(NamedTuple):
    """A region with its prices, if there are any, and its zones under the names that nodes have."""

    region: str
    zones: tuple[ZoneName, ...]
    prices: RegionPrices | None
    launched_in: frozenset[str] = frozenset()
    """The zones in which new nodes may come; none stands for all."""


@lru_cache(maxsize=16)
def cloud_types(
    cloud: str,
    places: tuple[CloudRegion, ...],
    kubelets: KubeletSettings = KubeletSettings(),  # noqa: B008 - it is immutable
) -> tuple[InstanceType, ...]:
    """The machines of the list that ships, remembered."""
    return listed_types(shipped_list(cloud), places, kubelets)


def listed_types(
    listed: PriceList, places: Iterable[CloudRegion], kubelets: KubeletSettings
) -> tuple[InstanceType, ...]:
    """The machines of a list that are sold in some of the regions, by name; what it does not cover has no prices."""
    markets = [_market(listed, place) for place in places]
    everywhere = any(market.prices is None for market in markets)
    known = listed.machines()
    sold = {name for market in markets if market.prices is not None for name in market.prices.types}
    names = sorted(known if everywhere else known.keys() & sold)
    return tuple(_instance_type(listed.cloud, known[name], markets, kubelets) for name in names)


def kubelets_of(nodes: Iterable[Node]) -> KubeletSettings:
    """How the kubelets of a cluster are set, as most of its nodes show it."""
    votes = 0
    for node in nodes:
        machine = _known_on_aws(node)
        if machine is None:
            continue
        few, many = (eks_pods(machine, prefixes=prefixes) for prefixes in (False, True))
        pods = node.status.capacity.get("pods", ZERO).units
        votes += (pods == many) - (pods == few)
    return KubeletSettings(prefixes=votes > 0)


def _known_on_aws(node: Node) -> Machine | None:
    cloud, _ = place_of(node.metadata.labels, node.spec.provider_id)
    return shipped_machines(AWS).get(node.metadata.labels.get(INSTANCE_TYPE, "")) if cloud == AWS else None


def labels_by_name(name: str) -> Mapping[str, tuple[str, ...]]:
    """The labels of a machine that some cloud calls so; none if no cloud does."""
    machine = next((known[name] for cloud in CLOUDS if name in (known := shipped_machines(cloud))), None)
    return {} if machine is None else machine.labels


def _market(listed_prices: PriceList, place: CloudRegion) -> _Market:
    prices = listed_prices.prices(place.region)
    listed = prices.zones if prices is not None else ()
    if place.cloud == AWS:
        zones = _aws_zones(place, prices)
    elif place.cloud == GCP:
        names = listed or [zone.name for zone in place.zones] or [f"{place.region}-{letter}" for letter in "abc"]
        zones = tuple(map(ZoneName, names))
    elif place.region in _WITHOUT_ZONES:
        zones = (ZoneName(""),)
    else:
        zones = tuple(ZoneName(f"{place.region}-{number}") for number in range(1, _USUAL_ZONES + 1))
    return _Market(place.region, zones, prices, _in_use(place))


def _in_use(place: CloudRegion) -> frozenset[str]:
    """The zones that a cluster is in, if it shows several: a new node comes where it has a network."""
    shown = frozenset(zone.name for zone in place.zones)
    return shown if len(shown) > 1 else frozenset()


def unlisted_zones(listed: PriceList, place: CloudRegion) -> tuple[ZoneName, ...]:
    """The zones whose ids, as nodes show them, are not in the price list of their region."""
    prices = listed.prices(place.region) if place.cloud == AWS else None
    return () if prices is None else tuple(zone for zone in place.zones if zone.id and zone.id not in prices.zones)


def _aws_zones(place: CloudRegion, prices: RegionPrices | None) -> tuple[ZoneName, ...]:
    """The zones that an account may see in a region: those that its nodes name, and the usual letters.

    A list that was made for the account knows them all. If a node shows another id, it was made for another account.
    """
    count = sum(zone.count("-") == 1 for zone in prices.zones) if prices is not None else 0
    letters = _LETTERS.get(place.region, "abcdefghij"[: count or _USUAL_ZONES])
    named = {zone.name: zone.id for zone in place.zones if zone.name.startswith(place.region)}
    known = {name: zone_id for zone_id, name in prices.zone_names.items()} if prices is not None else {}
    if any(zone_id and known.get(name, zone_id) != zone_id for name, zone_id in named.items()):
        known = {}
    names = known or {f"{place.region}{letter}": "" for letter in letters}
    names = {**names, **{name: zone_id or names.get(name, "") for name, zone_id in named.items()}}
    return tuple(ZoneName(name, names[name]) for name in sorted(names))


def _instance_type(cloud: str, machine: Machine, markets: Iterable[_Market], kubelets: KubeletSettings) -> InstanceType:
    several = len(list(markets)) > 1
    regions = [market for market in markets if market.prices is None or machine.name in market.prices.types]
    offerings = tuple(
        _launchable(offering, machine, market)
        for market in regions
        for offering in _offerings(cloud, machine.name, market, named=several)
    )
    room = _room(cloud, machine, kubelets)
    return InstanceType(
        name=machine.name,
        requirements=Requirements(_labels(cloud, machine, offerings, [market.region for market in regions])),
        capacity=room.capacity,
        overhead=room.overhead,
        offerings=offerings,
    )


def _launchable(offering: Offering, machine: Machine, market: _Market) -> Offering:
    """An offering as it is sold, or as a mere price if nobody can have it, or not there."""
    here = not market.launched_in or offering.zone in market.launched_in
    return offering if machine.orderable and here else replace(offering, available=False)


def _room(cloud: str, machine: Machine, kubelets: KubeletSettings) -> Room:
    if cloud == AWS:
        return eks_room(machine, eks_pods(machine, prefixes=kubelets.prefixes))
    return gke_room(machine, GKE_PODS) if cloud == GCP else aks_room(machine, AKS_PODS)


def _labels(
    cloud: str, machine: Machine, offerings: tuple[Offering, ...], regions: list[str]
) -> Iterator[tuple[str, Requirement]]:
    yield INSTANCE_TYPE, values(machine.name)
    yield ARCH, values(machine.arch)
    yield OS, values("linux")
    yield REGION, values(*regions)
    yield from _places(frozenset(offering.requirements for offering in offerings))
    for key, allowed in machine.labels.items():
        yield key, values(*allowed)
    others = (label for owner, labels in CLASSES.items() if owner != cloud for label in labels)
    for label in (*others, *machine.closed_to):
        yield label, DOES_NOT_EXIST


@lru_cache(maxsize=1024)
def _places(sold: frozenset[Requirements]) -> tuple[tuple[str, Requirement], ...]:
    """The capacity types, zones and ids of zones that something is sold in; many machines share them."""
    found = {}
    for key in (CAPACITY_TYPE, ZONE, ZONE_ID):
        named = sorted({value for place in sold if key in place for value in place[key].values})
        if named:
            found[key] = values(*named)
    return tuple(found.items())


def _offerings(cloud: str, name: str, market: _Market, *, named: bool) -> Iterator[Offering]:
    """What a machine is sold as in a region: on demand and as spot, in each of its zones."""
    region = market.region if named else ""
    if market.prices is None:
        for zone in market.zones:
            for kind in (ON_DEMAND, SPOT):
                yield Offering(_sold_in(zone, kind, region, ids=False), None)
        return
    sold = market.prices.types[name]
    ids = any(zone.id for zone in market.zones)
    of_region = _spot_in_region(cloud, sold)
    usual = median(prices) if (prices := [price for price in of_region.values() if price is not None]) else None
    for zone in market.zones:
        here = cloud != GCP or not sold.spot or zone.name in sold.spot
        # Another city has prices of its own, which the price list of the region does not tell.
        elsewhere = cloud == AWS and len(zone.name) > len(market.region) + 1
        if here:
            on_demand = None if elsewhere else sold.on_demand
            yield Offering(_sold_in(zone, ON_DEMAND, region, ids=ids), on_demand)
        # AWS names zones by account: without an id that the price list has, nobody knows which one of it a zone is.
        known = cloud == GCP or zone.id in market.prices.zones or elsewhere
        if (zone.id or zone.name) in sold.spot if known else of_region:
            price = sold.spot[zone.id or zone.name] if known else usual
            yield Offering(_sold_in(zone, SPOT, region, ids=ids), price)
        elif here and usual is not None and not elsewhere:
            # The price list says that nobody can have it there now; a node that is there costs about this.
            yield Offering(_sold_in(zone, SPOT, region, ids=ids), usual, available=False)


def _spot_in_region(cloud: str, sold: TypePrices) -> Mapping[str, float | None]:
    """Spot prices in the zones of a region, without those in other cities; what is usual is the middle of them."""
    return {zone: price for zone, price in sold.spot.items() if cloud != AWS or zone.count("-") == 1}


@lru_cache(maxsize=4096)
def _sold_in(zone: ZoneName, kind: str, region: str, *, ids: bool) -> Requirements:
    """Where and as what something is sold; the same object for the same place, since they are compared often."""
    items = [(CAPACITY_TYPE, values(kind))]
    if zone.name:
        items.append((ZONE, values(zone.name)))
    if region:
        items.append((REGION, values(region)))
    if ids:
        items.append((ZONE_ID, values(zone.id) if zone.id else DOES_NOT_EXIST))
    return Requirements(items)
