"""What machines cost, by what is for sale: a type in a zone, on demand, as spot or reserved."""

from collections.abc import Callable, Iterable, Mapping

from karpool.catalog.pricing import capacity_type_of, label_of
from karpool.model.labels import INSTANCE_TYPE, ZONE
from karpool.model.node import Node

PriceOf = Callable[[Mapping[str, str]], float | None]


def offer_of(labels: Mapping[str, str]) -> str:
    """The key of what a node was bought as: `TYPE/ZONE/CAPACITY_TYPE`."""
    return "/".join((label_of(labels, INSTANCE_TYPE), label_of(labels, ZONE), capacity_type_of(labels)))


def prices_of(nodes: Iterable[Node], price_of: PriceOf) -> dict[str, float]:
    """What nodes cost an hour, as far as it is known."""
    by_offer = {offer_of(node.metadata.labels): node.metadata.labels for node in nodes}
    prices = ((offer, price_of(labels)) for offer, labels in by_offer.items())
    return {offer: price for offer, price in prices if price is not None}
