"""NodeOverlays applied to a catalogue.

For each offering in each pool the price comes from the heaviest overlay that has one, of equals from the last by name;
each resource likewise. An overlay that contradicts another one of the same weight anywhere is left out whole.

What an overlay requires of labels that instance types do not have, it requires of pools. An offering whose price
differs between pools becomes several: one for each price, which only nodes of these pools can have.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Generic, NamedTuple, TypeVar

from karpool.catalog.instance_types import Amounts, Catalog, InstanceType, Offering
from karpool.model.labels import HOSTNAME, NODEPOOL
from karpool.model.node_overlay import NodeOverlay
from karpool.model.nodepool import NodePool, as_requirements
from karpool.model.requirements import Requirements, one_of, requirement
from karpool.wire.quantity import Quantity

V = TypeVar("V")
_Place = tuple[str, int]
"""The name of a type, and the number of one of its offerings."""
_Scope = frozenset[str] | None
"""The pools that an overlay is for; None: whatever the pool."""


@dataclass(frozen=True, slots=True)
class Overlaid:
    """A catalogue with overlays, and by name why some of them were left out."""

    catalog: Catalog
    left_out: Mapping[str, str] = field(default_factory=dict)


class _Said(NamedTuple, Generic[V]):
    """What an overlay says of something, and where."""

    overlay: NodeOverlay
    value: V
    scope: _Scope

    def contradicts(self, other: "_Said[V]") -> bool:
        """Whether two that weigh the same say different things of the same."""
        same_weight = self.overlay.spec.weight == other.overlay.spec.weight
        meet = self.scope is None or other.scope is None or bool(self.scope & other.scope)
        return same_weight and meet and self.value != other.value


class _Values(NamedTuple, Generic[V]):
    """What overlays make of something: wherever no pool has its own, and in these pools."""

    common: V | None
    by_pool: Mapping[str, V]


def with_overlays(catalog: Catalog, overlays: Iterable[NodeOverlay], pools: Iterable[NodePool] = ()) -> Overlaid:
    """The catalogue as overlays change it in some pools; the same where there are none."""
    overlays = tuple(overlays)
    if not overlays:
        return Overlaid(catalog)
    templates = {pool.name: pool.node_requirements for pool in pools if not pool.unreadable}
    left_out: dict[str, str] = {}
    prices: dict[_Place, list[_Said[float]]] = {}
    amounts: dict[tuple[str, str], list[_Said[Quantity]]] = {}
    for overlay in _ordered(overlays):
        wanted = as_requirements(overlay.spec.requirements)
        reason = _unusable(overlay, wanted, catalog, templates)
        if reason:
            left_out[overlay.name] = reason
            continue
        of_types = _part(wanted, catalog, of_pools=False)
        scope = _scope(_part(wanted, catalog, of_pools=True), templates)
        priced = {
            place: _Said(overlay, price, scope) for place, price in _priced(catalog.types, overlay, of_types).items()
        }
        held = {
            (entry.name, resource): _Said(overlay, amount, scope)
            for entry in catalog.types
            for resource, amount in overlay.spec.capacity.items()
            # Resources are added; what a machine has anyway stays.
            if resource not in entry.capacity and any(_meets(entry, o, of_types) for o in entry.offerings)
        }
        rival = _rival(priced, prices) or _rival(held, amounts)
        if rival is not None:
            left_out[overlay.name] = f"contradicts NodeOverlay {rival.name}, which has the same weight"
            continue
        for place, price in priced.items():
            prices.setdefault(place, []).append(price)
        for key, amount in held.items():
            amounts.setdefault(key, []).append(amount)
    return Overlaid(_changed(catalog, _settled(prices), _settled(amounts)), left_out)


def _ordered(overlays: Iterable[NodeOverlay]) -> list[NodeOverlay]:
    by_name = sorted(overlays, key=lambda overlay: overlay.name, reverse=True)
    return sorted(by_name, key=lambda overlay: -overlay.spec.weight)


# -- where ---------------------------------------------------------------------------------------------------------


def _is_of_types(key: str, catalog: Catalog) -> bool:
    return key in catalog.well_known and key != NODEPOOL


def _part(wanted: Requirements, catalog: Catalog, *, of_pools: bool) -> Requirements:
    """What is required of pools, or of instance types."""
    return Requirements((key, rule) for key, rule in wanted.items() if _is_of_types(key, catalog) is not of_pools)


def _unusable(
    overlay: NodeOverlay, wanted: Requirements, catalog: Catalog, templates: Mapping[str, Requirements]
) -> str:
    """Why an overlay cannot be applied, if it cannot."""
    if overlay.unreadable:
        return f"cannot be read: {overlay.unreadable}"
    known = {key for template in templates.values() for key in template} - {HOSTNAME}
    for key, rule in _part(wanted, catalog, of_pools=True).items():
        if key == HOSTNAME or (key not in known and not rule.absent):
            return f"requires {key}, which neither instance types nor NodePools have"
    return ""


def _scope(wanted: Requirements, templates: Mapping[str, Requirements]) -> _Scope:
    """The pools whose nodes may be what is wanted; None if nothing is."""
    if not wanted:
        return None
    return frozenset(
        name
        for name, own in templates.items()
        if all(rule.absent if key not in own else own[key].overlaps(rule) for key, rule in wanted.items())
    )


def _meets(entry: InstanceType, offering: Offering, wanted: Requirements) -> bool:
    own = entry.requirements.intersect(offering.requirements)
    return own.meets(wanted) and all(key in own or rule.absent for key, rule in wanted.items())


# -- what ----------------------------------------------------------------------------------------------------------


def _priced(types: Sequence[InstanceType], overlay: NodeOverlay, wanted: Requirements) -> dict[_Place, float]:
    """What the offerings that an overlay is for would cost."""
    if overlay.spec.price is None and overlay.spec.price_adjustment is None:
        return {}
    return {
        (entry.name, number): price
        for entry in types
        for number, offering in enumerate(entry.offerings)
        if _meets(entry, offering, wanted) and (price := adjusted(offering.price, overlay)) is not None
    }


def adjusted(price: float | None, overlay: NodeOverlay) -> float | None:
    """A price as an overlay has it, never below zero; one that is not known can be set and not adjusted."""
    if overlay.spec.price is not None:
        return float(overlay.spec.price)
    change = overlay.spec.price_adjustment
    if price is None or change is None:
        return None
    whole = Decimal(repr(price))
    if change.endswith("%"):
        return float(max(Decimal(0), whole * (1 + Decimal(change[:-1]) / 100)))
    return float(max(Decimal(0), whole + Decimal(change)))


K = TypeVar("K")


def _rival(new: Mapping[K, _Said[V]], known: Mapping[K, Sequence[_Said[V]]]) -> NodeOverlay | None:
    """An overlay of the same weight that says something else of the same."""
    return next(
        (other.overlay for key, said in new.items() for other in known.get(key, ()) if said.contradicts(other)), None
    )


def _settled(said: Mapping[K, Sequence[_Said[V]]]) -> dict[K, _Values[V]]:
    return {key: _first(entries) for key, entries in said.items()}


def _first(said: Sequence[_Said[V]]) -> _Values[V]:
    """Of what overlays say, in their order, the first that counts: in each pool, and everywhere else."""
    by_pool: dict[str, V] = {}
    for _, value, scope in said:
        if scope is None:
            return _Values(value, {pool: own for pool, own in by_pool.items() if own != value})
        by_pool = {**dict.fromkeys(scope, value), **by_pool}
    return _Values(None, by_pool)


# -- the catalogue -------------------------------------------------------------------------------------------------


def _changed(
    catalog: Catalog, prices: Mapping[_Place, _Values[float]], amounts: Mapping[tuple[str, str], _Values[Quantity]]
) -> Catalog:
    common: dict[str, dict[str, Quantity]] = {}
    in_pools: dict[str, dict[str, Amounts]] = {}
    for (name, resource), amount in amounts.items():
        if amount.common is not None:
            common.setdefault(name, {})[resource] = amount.common
        for pool, own in amount.by_pool.items():
            by_type = in_pools.setdefault(pool, {})
            by_type[name] = {**by_type.get(name, {}), resource: own}
    types = tuple(_changed_type(entry, prices, common.get(entry.name, {})) for entry in catalog.types)
    return replace(catalog, types=types, pool_capacity=in_pools)


def _changed_type(entry: InstanceType, prices: Mapping[_Place, _Values[float]], more: Amounts) -> InstanceType:
    offerings = tuple(
        changed
        for number, offering in enumerate(entry.offerings)
        for changed in _priced_apart(offering, prices.get((entry.name, number)))
    )
    if offerings == entry.offerings and not more:
        return entry
    return replace(entry, offerings=offerings, capacity={**entry.capacity, **more})


def _priced_apart(offering: Offering, prices: _Values[float] | None) -> Iterator[Offering]:
    """An offering for each price that it has: for all pools but some, and for those."""
    if prices is None:
        yield offering
        return
    price = offering.price if prices.common is None else prices.common
    apart = {pool: own for pool, own in prices.by_pool.items() if own != price}
    rest = offering.requirements
    if apart:
        rest = rest.with_key(NODEPOOL, requirement("NotIn", apart))
    yield replace(offering, price=price, requirements=rest)
    for own in sorted(set(apart.values())):
        pools = one_of(*(pool for pool, cost in apart.items() if cost == own))
        yield replace(offering, price=own, requirements=offering.requirements.with_key(NODEPOOL, pools))
