"""`karpool catalog`: the instance types there are, what they hold and what they cost."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

import click
import msgspec

from karpool.catalog.expressions import parse_expressions, select, unknown_in
from karpool.catalog.instance_types import Amounts, Catalog, InstanceType, Offering, cheapest
from karpool.catalog.machines import GPU
from karpool.catalog.notices import idle_discounts, unpriced_regions
from karpool.catalog.overrides import unknown_types
from karpool.catalog.pricing import cheapest_launch_price
from karpool.cli.errors import say
from karpool.cli.options.catalog_options import CatalogOpener, catalog_options
from karpool.cli.options.input_options import output_option
from karpool.model.labels import ARCH, ON_DEMAND, OS, RESERVED, SPOT
from karpool.report.formatting import amount, amounts, count, evenly, gibibytes, resource
from karpool.report.plans.document import PricesPart
from karpool.report.price_words import prices_parts, prices_words
from karpool.wire.objects import encode_value
from karpool.wire.problems import InputError, suggestion
from karpool.wire.quantity import ZERO, Quantity

EPILOG = """\b
EXPRESSIONS
  arch=arm64                 equal; also `==`
  zone!=us-east-1a           not equal
  'cpu>=8'  'memory<64Gi'    compared as numbers; also `>` and `<=`
  'family in (m6i,m7i)'      one of several; `notin` for none of them
  gpu  '!gpu'                has some; has none
\b
  Several expressions, or several in one with commas between, must all hold.
  Quote those with <, >, ! or parentheses: the shell has its own use for them.
\b
KEYS
  cpu, memory, pods, gpu     what a node has; memory in MiB without a unit
  price                      of an offering, in $/h, the fee included
  type, family, size, category, generation, arch, os,
  zone, region, capacity-type, reservation-id, or a whole label key such as
  karpenter.k8s.aws/instance-family
\b
EXAMPLES
  karpool catalog arch=arm64 'cpu>=8' 'memory>=32Gi'
  karpool catalog 'family in (m6i,m7i)' capacity-type=spot zone=us-east-1b
  karpool catalog --catalog types.json --node-fee 0.03 --output json
  karpool catalog --price m5.large=0.08 --price m5.large:spot=0.03 type=m5.large
  karpool catalog --discount 'm7*=31%' 'family in (m7i,m7g)'
  karpool catalog update --help      today's prices, from the cloud, in a file
\b
EXIT STATUS
  0  listed, also when nothing matches
  2  a bad expression, option or catalogue file; one line on standard error
"""


class _ListsByDefault(click.Group):
    """`karpool catalog EXPRESSION...` lists; `list` need not be written."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args and args[0] in self.list_commands(ctx) else ["list", *args])

    def list_commands(self, _: click.Context) -> list[str]:
        return ["list", "update"]

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        if name == "update":
            from karpool.cli.catalog_update import update

            return update
        return listing if name == "list" else None


@click.group(cls=_ListsByDefault)
def catalog() -> None:
    """List instance types, what they hold and what they cost, or fetch today's prices."""


@click.command(epilog=EPILOG)
@click.argument("expressions", metavar="[EXPRESSION]...", nargs=-1)
@output_option("table", "json", text="A table for people or a document for programs.")
@catalog_options
def listing(expressions: tuple[str, ...], output: str, catalog_opener: CatalogOpener) -> None:
    """List instance types with what they hold and what they cost, those with the lowest of all their prices first.

    `list` need not be written: karpool catalog arch=arm64. Today's prices come with karpool catalog update.

    Prices are US dollars an hour. An unknown price is shown as `?` in the table and as null in JSON; `-` means that
    the type is not offered that way. What a node has is listed next to what it leaves for pods.
    """
    catalog = catalog_opener()
    misspelt = unknown_types(catalog)
    if misspelt:
        hint = suggestion(misspelt[0], catalog.by_name)
        raise InputError.at("--price", f"the catalogue has no type {misspelt[0]}{hint}")
    for notice in (*unpriced_regions(catalog), *idle_discounts(catalog_opener.discounts, catalog.origins)):
        say(notice, 0)
    wanted = parse_expressions(expressions, catalog.by_name)
    types = select(catalog, wanted)
    for unknown in unknown_in(catalog, wanted):
        say(unknown, 0)
    if output == "json":
        click.echo(document(catalog, types), nl=False)
    else:
        show(catalog, types, sys.stdout)


class OfferingDocument(msgspec.Struct, rename="camel", omit_defaults=True):
    zone: str
    capacity_type: str
    price_per_hour: float | None
    available: bool
    reservation_id: str | None = None
    reservation_capacity: int | None = None


class TypeDocument(msgspec.Struct, rename="camel"):
    """An instance type in the JSON: its labels with all values they may have, and its cheapest available price."""

    name: str
    price_per_hour: float | None
    capacity: dict[str, Quantity]
    allocatable: dict[str, Quantity]
    labels: dict[str, list[str]]
    offerings: list[OfferingDocument]


class CatalogDocument(msgspec.Struct, rename="camel"):
    """What `--output json` prints."""

    api_version: str
    kind: str
    node_fee: float
    prices: tuple[PricesPart, ...]
    instance_types: list[TypeDocument]


def document(catalog: Catalog, types: Sequence[InstanceType]) -> bytes:
    """The types as JSON, prices with the fee."""
    listed = [
        TypeDocument(
            name=entry.name,
            price_per_hour=cheapest_launch_price(entry, catalog=catalog),
            capacity=dict(entry.capacity),
            allocatable=entry.allocatable,
            labels={
                key: sorted(allowed.values) for key, allowed in sorted(entry.requirements.items()) if allowed.values
            },
            offerings=[_offering(offering, catalog) for offering in entry.offerings],
        )
        for entry in types
    ]
    whole = CatalogDocument("karpool.sh/v1", "Catalog", catalog.node_fee, prices_parts(catalog.origins), listed)
    return msgspec.json.format(msgspec.json.encode(whole, enc_hook=encode_value), indent=2) + b"\n"


def _offering(offering: Offering, catalog: Catalog) -> OfferingDocument:
    return OfferingDocument(
        zone=offering.zone,
        capacity_type=offering.capacity_type,
        price_per_hour=catalog.price(offering),
        available=offering.available,
        reservation_id=offering.reservation_id,
        reservation_capacity=offering.reservation_capacity if offering.reserved else None,
    )


def show(catalog: Catalog, types: Sequence[InstanceType], file: TextIO) -> None:
    from karpool.report.table_layout import TableColumn
    from karpool.report.terminal import Screen, right

    screen = Screen(file)
    reserved = any(offering.reserved for entry in types for offering in entry.offerings)
    kinds = [ON_DEMAND, SPOT] + [RESERVED] * reserved
    sizes = (right("cpu"), right("memory"), right("gpu", spare=3), right("pods", spare=4))
    left_for_pods = (right("cpu for pods", spare=5), right("memory for pods", spare=5))
    prices = (right(f"{kind} $/h") for kind in kinds)
    if types:
        columns = (*_machines(types), *(_prices(catalog, types, kind) for kind in kinds), map(_zones, types))
        rows = list(zip(*columns, strict=True))
        os, zones = TableColumn("os", spare=7), TableColumn("zones", wraps=True, spare=6)
        screen.table(("type", TableColumn("arch", spare=2), os, *sizes, *left_for_pods, *prices, zones), rows)
    fee = f", {amount(catalog.node_fee)} $/h of it a fee for the node" if catalog.node_fee else ""
    order = ", by the lowest of their prices, spot included" if len(types) > 1 else ""
    screen.line(f"{count(len(types), 'instance type')}{order}. Prices are the cheapest of the zones{fee}.")
    if words := prices_words(prices_parts(catalog.origins)):
        screen.line(words)


def _machines(types: Sequence[InstanceType]) -> Iterator[Iterable[str]]:
    """The columns that say what machines are."""
    yield (entry.name for entry in types)
    yield (_values(entry, ARCH) for entry in types)
    yield (_values(entry, OS) for entry in types)
    yield _cores([entry.capacity for entry in types])
    yield gibibytes(entry.capacity.get("memory", ZERO) for entry in types)
    yield (resource(GPU, entry.capacity[GPU]) if GPU in entry.capacity else "" for entry in types)
    yield (resource("pods", entry.capacity.get("pods", ZERO)) for entry in types)
    yield _cores([entry.allocatable for entry in types])
    yield gibibytes(entry.allocatable.get("memory", ZERO) for entry in types)


def _cores(amounts: Sequence[Amounts]) -> list[str]:
    return evenly((of.get("cpu", ZERO).milli / 1000 for of in amounts), 2)


def _zones(entry: InstanceType) -> str:
    return _short_zones(sorted({offering.zone for offering in entry.offerings if offering.zone}))


def _values(entry: InstanceType, key: str) -> str:
    allowed = entry.requirements.get(key)
    return "?" if allowed is None else ",".join(sorted(allowed.values))


def _prices(catalog: Catalog, types: Sequence[InstanceType], kind: str) -> list[str]:
    """What types cost as one kind of capacity; `-` for those that are not sold so."""
    offered = [[one for one in entry.offerings if one.launchable and one.capacity_type == kind] for entry in types]
    sold = iter(amounts(cheapest(catalog.price(offering) for offering in some) for some in offered if some))
    return [next(sold) if some else "-" for some in offered]


def _short_zones(zones: Sequence[str]) -> str:
    """Zone names with the part that they share written once: `us-east-1(a,b)`."""
    shared = zones[0][:-1] if len(zones) > 1 else ""
    if not shared or not all(zone.startswith(shared) for zone in zones):
        return ",".join(zones)
    return f"{shared}({','.join(zone.removeprefix(shared) for zone in zones)})"
