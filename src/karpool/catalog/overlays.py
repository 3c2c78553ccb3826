"""NodeOverlays applied to a catalogue.

For each offering the price comes from the heaviest overlay that has one, of equals from the last by name; each resource
likewise. An overlay that contradicts another one of the same weight is left out whole, as is one that cannot be applied
to instance types as such.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.model.labels import HOSTNAME, NODEPOOL
from karpool.model.node_overlay import NodeOverlay
from karpool.model.nodepool import as_requirements
from karpool.model.requirements import Requirements
from karpool.wire.quantity import Quantity

_Place = tuple[str, int]
"""The name of a type, and the number of one of its offerings."""


@dataclass(frozen=True, slots=True)
class Overlaid:
    """A catalogue with overlays, and by name why some of them were left out."""

    catalog: Catalog
    left_out: Mapping[str, str] = field(default_factory=dict)


def with_overlays(catalog: Catalog, overlays: Iterable[NodeOverlay]) -> Overlaid:
    """The catalogue as overlays change it; the same where there are none."""
    overlays = tuple(overlays)
    if not overlays:
        return Overlaid(catalog)
    left_out: dict[str, str] = {}
    prices: dict[_Place, tuple[NodeOverlay, float]] = {}
    capacities: dict[str, dict[str, tuple[NodeOverlay, Quantity]]] = {}
    for overlay in _ordered(overlays):
        reason = _unusable(overlay, catalog)
        if reason:
            left_out[overlay.name] = reason
            continue
        wanted = as_requirements(overlay.spec.requirements)
        priced = _priced(catalog.types, overlay, wanted)
        held = {
            entry.name: overlay.spec.capacity
            for entry in catalog.types
            if overlay.spec.capacity and any(_meets(entry, offering, wanted) for offering in entry.offerings)
        }
        rival = _rival(overlay, priced, prices) or _holds_otherwise(overlay, held, capacities)
        if rival is not None:
            left_out[overlay.name] = f"contradicts NodeOverlay {rival.name}, which has the same weight"
            continue
        for place, price in priced.items():
            prices.setdefault(place, (overlay, price))
        for name, amounts in held.items():
            kept = capacities.setdefault(name, {})
            for resource, amount in amounts.items():
                kept.setdefault(resource, (overlay, amount))
    types = tuple(_changed(entry, prices, capacities.get(entry.name, {})) for entry in catalog.types)
    return Overlaid(replace(catalog, types=types), left_out)


def _ordered(overlays: Iterable[NodeOverlay]) -> list[NodeOverlay]:
    by_name = sorted(overlays, key=lambda overlay: overlay.name, reverse=True)
    return sorted(by_name, key=lambda overlay: -overlay.spec.weight)


def _unusable(overlay: NodeOverlay, catalog: Catalog) -> str:
    """Why an overlay cannot be applied to types, if it cannot."""
    if overlay.unreadable:
        return f"cannot be read: {overlay.unreadable}"
    keys = [entry.key for entry in overlay.spec.requirements]
    unknown = next((key for key in keys if key not in catalog.well_known or key in (NODEPOOL, HOSTNAME)), None)
    if unknown is not None:
        return f"requires {unknown}, which instance types do not have: prices that differ between pools are not known"
    return ""


def _meets(entry: InstanceType, offering: Offering, wanted: Requirements) -> bool:
    own = entry.requirements.intersect(offering.requirements)
    return own.meets(wanted) and all(key in own or rule.absent for key, rule in wanted.items())


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


def _rival(
    overlay: NodeOverlay, priced: Mapping[_Place, float], known: Mapping[_Place, tuple[NodeOverlay, float]]
) -> NodeOverlay | None:
    """An overlay of the same weight that has another price for the same."""
    for place, price in priced.items():
        other, theirs = known.get(place, (overlay, price))
        if other.spec.weight == overlay.spec.weight and theirs != price:
            return other
    return None


def _holds_otherwise(
    overlay: NodeOverlay,
    held: Mapping[str, Mapping[str, Quantity]],
    known: Mapping[str, Mapping[str, tuple[NodeOverlay, Quantity]]],
) -> NodeOverlay | None:
    """An overlay of the same weight that has another amount of the same."""
    for name, amounts in held.items():
        for resource, amount in amounts.items():
            other, theirs = known.get(name, {}).get(resource, (overlay, amount))
            if other.spec.weight == overlay.spec.weight and theirs != amount:
                return other
    return None


def _changed(
    entry: InstanceType,
    prices: Mapping[_Place, tuple[NodeOverlay, float]],
    held: Mapping[str, tuple[NodeOverlay, Quantity]],
) -> InstanceType:
    offerings = tuple(
        replace(offering, price=prices[entry.name, number][1]) if (entry.name, number) in prices else offering
        for number, offering in enumerate(entry.offerings)
    )
    # Resources are added; what a machine has anyway stays.
    more = {name: amount for name, (_, amount) in held.items() if name not in entry.capacity}
    if offerings == entry.offerings and not more:
        return entry
    return replace(entry, offerings=offerings, capacity={**entry.capacity, **more})
