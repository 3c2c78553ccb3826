"""The options for instance types and their prices; the same for every command that has them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, TypeVar

import click

from karpool.catalog.builtin import KubeletSettings, kubelets_of
from karpool.catalog.discounts import parse_discounts
from karpool.catalog.instance_types import Catalog
from karpool.catalog.learned import with_learned_labels
from karpool.catalog.observed import with_observed
from karpool.catalog.overrides import parse_prices, unknown_types
from karpool.catalog.places import KWOK, CloudRegion, places_of_cluster
from karpool.catalog.price_data import AWS, CLOUDS
from karpool.catalog.sources import SAMPLE, open_catalog
from karpool.cli.completions import words_or_files
from karpool.cli.options.input_options import with_options
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.wire.problems import InputError, suggestion

R = TypeVar("R")
KWOK_GROUP: Final = "karpenter.kwok.sh"

CATALOG: Final = click.option(
    "--catalog",
    "catalog_source",
    metavar="SOURCE",
    shell_complete=words_or_files(["aws", "azure", "gcp", "kwok", "sample"]),
    help="Instance types and prices: `aws`, `gcp` or `azure`, with `:REGION` for another region than that of the"
    " nodes (built in), `sample` (a small table for examples), `kwok` (the types that Karpenter's KWOK provider"
    " generates), a JSON file in that provider's format, plain or packed with gzip or zstd, or a name that an"
    " installed package offers."
    "  [default: the clouds and regions of nodes and node classes; aws where nothing names one]",
)
_OPTIONS: Final = (
    CATALOG,
    click.option(
        "--node-fee", metavar="PRICE", type=float, default=0.0, help="Add a fee, in $/h, to the price of every node."
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
        help="Multiply the prices of the source: 0.9 for a discount of 10 %.",
    ),
    click.option(
        "--discount",
        "discounts",
        metavar="TYPES=PERCENT%",
        multiple=True,
        help="What you pay less than the prices of the source, on demand: 'm7*=31%' for a savings plan or committed"
        " use; 'm7*:spot=5%' for spot; 'eu-west-1/m7*=31%' or 'aws/*=5%' in a region or a cloud. May be repeated; the"
        " last one that matches a type counts.",
    ),
    click.option(
        "--spot-fraction",
        metavar="FRACTION",
        type=float,
        help="Price spot capacity at this share of the on-demand price.  [default: 0.4 for sample, 0.7 for kwok, as"
        " price lists and files say]",
    ),
)


def catalog_options(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the catalogue options; it gets a function that opens the catalogue, as `catalog_opener`."""

    @wraps(command)
    def with_opener(*args: Any, catalog_source: str | None, **given: Any) -> R:
        prices = {
            name: given.pop(name) for name in ("node_fee", "prices", "price_factor", "discounts", "spot_fraction")
        }
        # A slip is told before anything is read or connected to.
        parse_prices(prices["prices"])
        parse_discounts(prices["discounts"])
        opener = CatalogOpener(catalog_source, **prices)
        return command(*args, catalog_opener=opener, **given)

    return with_options(with_opener, _OPTIONS)


@dataclass(frozen=True, slots=True)
class CatalogOpener:
    source: str | None = None
    """The source that is named; without one it is found for each cluster."""
    node_fee: float = 0.0
    prices: tuple[str, ...] = ()
    price_factor: float = 1.0
    discounts: tuple[str, ...] = ()
    spot_fraction: float | None = None

    def __call__(
        self,
        source: str | None = None,
        places: tuple[CloudRegion, ...] = (),
        kubelets: KubeletSettings = KubeletSettings(),  # noqa: B008 - it is immutable
    ) -> Catalog:
        """Open the source of the options, or another one at the same prices and fees."""
        return open_catalog(
            source or self.source,
            places=places,
            kubelets=kubelets,
            node_fee=self.node_fee,
            overrides=parse_prices(self.prices),
            factor=self.price_factor,
            discounts=self.discounts,
            spot_fraction=self.spot_fraction,
        )

    def complete(self, *, kwok: bool) -> bool:
        """Whether the source lists all types that there are: a file does for the KWOK provider, which reads it."""
        name = (self.source or AWS).partition(":")[0]
        return kwok and name not in (*CLOUDS, KWOK, SAMPLE)

    def for_cluster(
        self, nodes: Sequence[Node], claims: Sequence[NodeClaim], pools: Sequence[NodePool] = ()
    ) -> Catalog:
        """The catalogue for a cluster: of its clouds and regions, and with types that only its nodes have."""
        source = self.source
        if source is None and of_kwok(claims, pools):
            source = KWOK
        catalog = self(source, places_of_cluster(nodes, claims, pools), kubelets_of(nodes))
        catalog = with_learned_labels(with_observed(catalog, nodes, claims), nodes, pools)
        if misspelt := unknown_types(catalog):
            hint = suggestion(misspelt[0], catalog.by_name)
            raise InputError.at("--price", f"no type is called {misspelt[0]}{hint}")
        return catalog


def of_kwok(claims: Iterable[NodeClaim], pools: Iterable[NodePool]) -> bool:
    """Whether the KWOK provider launches nodes of a cluster."""
    specs = (*(claim.spec for claim in claims), *(pool.spec.template.spec for pool in pools))
    return any(spec.node_class_ref.group == KWOK_GROUP for spec in specs)
