"""The built-in catalogues: the machines of AWS, Google Cloud and Azure, at the prices of the regions asked for."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from statistics import median
from typing import Final, NamedTuple

from karpool.catalog import aws, azure, gcp
from karpool.catalog.instance_types import InstanceType, Offering
from karpool.catalog.machines import Machine, values
from karpool.catalog.overhead import AKS_PODS, GKE_PODS, Room, aks_room, eks_pods, eks_room, gke_room
from karpool.catalog.places import CLASSES, Place, ZoneName, place_of
from karpool.catalog.price_data import ANY_ZONE, AWS, AZURE, GCP, RegionPrices, TypePrices, region_prices
from karpool.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, OS, REGION, SPOT, ZONE, ZONE_ID
from karpool.model.node import Node
from karpool.model.requirements import DOES_NOT_EXIST, Requirement, Requirements
from karpool.wire.quantity import ZERO

_LETTERS: Final = {"ap-northeast-1": "acd", "ca-central-1": "abd"}
_USUAL_ZONES: Final = 3
_WITHOUT_ZONES: Final = ("northcentralus", "westcentralus", "westus")
"""Regions of Azure whose machines are in no zone."""


class Kubelets(NamedTuple):
    """What nodes of a cluster show of how their kubelets are set."""

    prefixes: bool = False
    """Whether the network plugin of EKS hands out prefixes of addresses, so that nodes run more pods."""


class _Market(NamedTuple):
    """A region with its prices, if there are any, and its zones under the names that nodes have."""

    region: str
    zones: tuple[ZoneName, ...]
    prices: RegionPrices | None


@lru_cache(maxsize=16)
def cloud_types(
    cloud: str,
    places: tuple[Place, ...],
    kubelets: Kubelets = Kubelets(),  # noqa: B008 - it is immutable
) -> tuple[InstanceType, ...]:
    """The machines of a cloud that are sold in some of the regions, by name; what has no price list has no prices."""
    markets = [_market(place) for place in places]
    everywhere = any(market.prices is None for market in markets)
    known = _machines(cloud)
    sold = {name for market in markets if market.prices is not None for name in market.prices.types}
    names = sorted(known if everywhere else known.keys() & sold)
    return tuple(_instance_type(cloud, known[name], markets, kubelets) for name in names)


def kubelets_of(nodes: Iterable[Node]) -> Kubelets:
    """How the kubelets of a cluster are set, as most of its nodes show it."""
    votes = 0
    for node in nodes:
        machine = _known_on_aws(node)
        if machine is None:
            continue
        few, many = (eks_pods(machine, prefixes=prefixes) for prefixes in (False, True))
        pods = node.status.capacity.get("pods", ZERO).units
        votes += (pods == many) - (pods == few)
    return Kubelets(prefixes=votes > 0)


def _known_on_aws(node: Node) -> Machine | None:
    cloud, _ = place_of(node.metadata.labels, node.spec.provider_id)
    return aws.machines().get(node.metadata.labels.get(INSTANCE_TYPE, "")) if cloud == AWS else None


def _machines(cloud: str) -> Mapping[str, Machine]:
    return {AWS: aws.machines, GCP: gcp.machines, AZURE: azure.machines}[cloud]()


def labels_by_name(name: str) -> Mapping[str, tuple[str, ...]]:
    """The labels of a machine that some cloud calls so; none if no cloud does."""
    machine = next((known[name] for cloud in (AWS, GCP, AZURE) if name in (known := _machines(cloud))), None)
    return {} if machine is None else machine.labels


def _market(place: Place) -> _Market:
    prices = region_prices(place.cloud, place.region)
    listed = prices.zones if prices is not None else ()
    if place.cloud == AWS:
        zones = _aws_zones(place, sum(zone.count("-") == 1 for zone in listed) or _USUAL_ZONES)
    elif place.cloud == GCP:
        names = listed or [zone.name for zone in place.zones] or [f"{place.region}-{letter}" for letter in "abc"]
        zones = tuple(map(ZoneName, names))
    elif place.region in _WITHOUT_ZONES:
        zones = (ZoneName(""),)
    else:
        zones = tuple(ZoneName(f"{place.region}-{number}") for number in range(1, _USUAL_ZONES + 1))
    return _Market(place.region, zones, prices)


def _aws_zones(place: Place, count: int) -> tuple[ZoneName, ...]:
    """The zones that an account may see in a region: those that its nodes name, and the usual letters."""
    letters = _LETTERS.get(place.region, "abcdefghij"[:count])
    names = {f"{place.region}{letter}": "" for letter in letters}
    names.update({zone.name: zone.id for zone in place.zones if zone.name.startswith(place.region)})
    return tuple(ZoneName(name, names[name]) for name in sorted(names))


def _instance_type(cloud: str, machine: Machine, markets: Iterable[_Market], kubelets: Kubelets) -> InstanceType:
    several = len(list(markets)) > 1
    regions = [market for market in markets if market.prices is None or machine.name in market.prices.types]
    offerings = tuple(
        offering for market in regions for offering in _offerings(cloud, machine.name, market, named=several)
    )
    room = _room(cloud, machine, kubelets)
    return InstanceType(
        name=machine.name,
        requirements=Requirements(_labels(cloud, machine, offerings, [market.region for market in regions])),
        capacity=room.capacity,
        overhead=room.overhead,
        offerings=offerings,
    )


def _room(cloud: str, machine: Machine, kubelets: Kubelets) -> Room:
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
    usual = _usual_spot_price(cloud, sold)
    for zone in market.zones:
        here = cloud != GCP or not sold.spot or zone.name in sold.spot
        # Another city has prices of its own, which the price list of the region does not tell.
        elsewhere = cloud == AWS and len(zone.name) > len(market.region) + 1
        if here:
            on_demand = None if elsewhere else sold.on_demand
            yield Offering(_sold_in(zone, ON_DEMAND, region, ids=ids), on_demand)
        # AWS names zones by account: without its id nobody knows which one of the price list a zone is.
        price = sold.spot.get(zone.id or zone.name) if cloud == GCP or zone.id or elsewhere else usual
        if price is not None:
            yield Offering(_sold_in(zone, SPOT, region, ids=ids), price)
        elif here and usual is not None and not elsewhere:
            # The price list says that nobody can have it there now; a node that is there costs about this.
            yield Offering(_sold_in(zone, SPOT, region, ids=ids), usual, available=False)


def _usual_spot_price(cloud: str, sold: TypePrices) -> float | None:
    """What spot costs in a region on the whole: the middle of its zones, without those in other cities."""
    if cloud == AZURE:
        return sold.spot.get(ANY_ZONE)
    prices = [price for zone, price in sold.spot.items() if cloud != AWS or zone.count("-") == 1]
    return median(prices) if prices else None


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
