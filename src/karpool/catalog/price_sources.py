"""Where prices that were used come from: price lists, labels of nodes, or what the user told of groups and types."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from karpool.catalog.instance_types import Catalog, PriceOrigin
from karpool.catalog.pricing import TOLD_PRICE, capacity_type_of, label_of, node_offering, price_on_label
from karpool.model.labels import INSTANCE_TYPE, RESERVED

_LABELS: Final = PriceOrigin("labels of nodes")
_GROUPS: Final = PriceOrigin("--groups")
_PRICES: Final = PriceOrigin("--price")


def used_origins(
    catalog: Catalog, nodes: Iterable[Mapping[str, str]], launched: Iterable[str] = ()
) -> tuple[PriceOrigin, ...]:
    """The sources of the prices of nodes, by their labels, and of machines that are launched.

    Price lists of the catalogue are named if any price is of a list, and always where a list lacks prices.
    """
    found = {*(_of_node(catalog, labels) for labels in nodes), *_of_types(catalog, launched)}
    listed = (origin for origin in catalog.origins if catalog.origins[0] in found or not origin.known)
    return (*listed, *(origin for origin in (_LABELS, _GROUPS, _PRICES) if origin in found))


def _of_node(catalog: Catalog, labels: Mapping[str, str]) -> PriceOrigin | None:
    """The source of a node's price, the catalogue's first standing for all of them; None if it has none."""
    entry, kind = catalog.by_name.get(label_of(labels, INSTANCE_TYPE)), capacity_type_of(labels)
    if entry is not None and node_offering(catalog, labels) is not None:
        if (entry.name, kind) in catalog.price_overrides:
            return _PRICES
        if not entry.observed:
            return next(iter(catalog.origins), None)
    if kind == RESERVED or price_on_label(labels) is None:
        return None
    return _GROUPS if TOLD_PRICE in labels else _LABELS


def _of_types(catalog: Catalog, launched: Iterable[str]) -> Iterator[PriceOrigin]:
    for name in launched:
        entry = catalog.by_name.get(name)
        if entry is not None and not entry.observed and any(offering.price is not None for offering in entry.offerings):
            yield from catalog.origins[:1]
