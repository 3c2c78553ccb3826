"""The options that say which machines there are and what they cost; the same for every command that asks."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

import click

from karpool.catalog.overrides import parse_prices
from karpool.catalog.sources import open_catalog

R = TypeVar("R")

_OPTIONS: Final = (
    click.option(
        "--catalog",
        "catalog_source",
        metavar="SOURCE",
        default="aws",
        show_default=True,
        help="Instance types and prices: `aws` or `aws:REGION` (built in), `kwok` (the types that Karpenter's KWOK"
        " provider generates), or a JSON file in that provider's format, plain or packed with gzip or zstd.",
    ),
    click.option(
        "--node-fee",
        metavar="PRICE",
        type=float,
        default=0.0,
        show_default=True,
        help="Add a fee, in $/h, to the price of every node.",
    ),
    click.option(
        "--price",
        "prices",
        metavar="TYPE=PRICE",
        multiple=True,
        help="Set the price of a type in $/h, except for spot and reserved capacity, or with TYPE:CAPACITY_TYPE=PRICE"
        " for one capacity type. May be repeated.",
    ),
    click.option(
        "--price-factor",
        metavar="FACTOR",
        type=float,
        default=1.0,
        show_default=True,
        help="Multiply the prices of the source: 0.9 for a discount of 10 %.",
    ),
    click.option(
        "--spot-fraction",
        metavar="FRACTION",
        type=float,
        help="Price spot capacity at this share of the on-demand price.  [default: 0.4 for aws, 0.7 for kwok, as"
        " written in a file]",
    ),
)


def catalog_options(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the catalogue options; it gets what they open as `catalog`."""

    @wraps(command)
    def with_catalog(
        *args: Any,
        catalog_source: str,
        node_fee: float,
        prices: tuple[str, ...],
        price_factor: float,
        spot_fraction: float | None,
        **rest: Any,
    ) -> R:
        catalog = open_catalog(
            catalog_source,
            node_fee=node_fee,
            overrides=parse_prices(prices),
            factor=price_factor,
            spot_fraction=spot_fraction,
        )
        return command(*args, catalog=catalog, **rest)

    made: Callable[..., R] = with_catalog
    for option in reversed(_OPTIONS):
        made = option(made)
    return made
