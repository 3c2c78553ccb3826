"""`karpool budgets`: what disruption budgets allow in the days to come."""

import sys
from collections.abc import Iterable
from datetime import UTC, timedelta, tzinfo
from difflib import get_close_matches
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import click

from karpool.catalog.instance_types import Catalog
from karpool.cli.errors import refuse_files, say
from karpool.cli.inputs.cluster_source import ReadCluster, read_cluster
from karpool.cli.options.brake_options import PAUSE_OPTION
from karpool.cli.options.decision_options import read_time
from karpool.cli.options.input_options import READS_LIVE, ClusterInput, cluster_options, output_option
from karpool.cli.options.option_types import Days, Whole
from karpool.cli.progress import progress
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import BUDGETS
from karpool.model.nodepool import NodePool
from karpool.packing.options import Options
from karpool.report.plans.document import to_json
from karpool.wire.problems import InputError, suggestion

UTC_NAME: Final = "UTC"
_SUPPOSED: Final = 10
"""Nodes of each pool where the input holds no nodes: a percentage of none would be 0 at any time."""
_NO_NODES: Final = (
    f"there are no nodes in the input, so {_SUPPOSED} are supposed in each pool; --nodes N says another number"
)
EPILOG: Final = f"""{READS_LIVE}
\b
WHAT IS SHOWN
  For each NodePool and each reason (Empty, Drifted, Underutilized, Unhealthy): how
  many of its nodes may be disrupted at once, from when to when, and the budget that
  says so, by the code that decides. `now` counts nodes that are not ready or on their
  way out; the days to come suppose none, and a pool of today's size. Schedules of
  budgets are in UTC; --time-zone shows them in yours.
\b
EXAMPLES
  karpool budgets
  karpool budgets web batch --next 14d --time-zone Europe/Berlin
  karpool budgets -f nodepools/ --nodes 40        # manifests alone, for pools of 40 nodes
  karpool budgets -o html > budgets.html
\b
EXIT STATUS
  0  shown
  1  the cluster does not answer, or does not let its pods and nodes be listed
  2  bad input; one line on standard error
"""


class Zone(click.ParamType[tzinfo]):
    """A time zone by its name in the IANA database."""

    name = "zone"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tzinfo:
        if value == UTC_NAME:  # which needs no database
            return UTC
        try:
            return ZoneInfo(str(value))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            known = available_timezones()
            hint = (
                "; this machine has no database of time zones (Debian: apt-get install tzdata)"
                if not known
                else _zone_hint(str(value), known)
            )
            self.fail(f"there is no time zone {value!r}; write a name such as Europe/Berlin{hint}", param, ctx)


def _zone_hint(name: str, known: Iterable[str]) -> str:
    """The zone that was probably meant: people name cities."""
    cities = {zone.rpartition("/")[2].lower(): zone for zone in sorted(known)}
    close = get_close_matches(name.rpartition("/")[2].lower().replace(" ", "_"), cities, n=1)
    return f"; did you mean {cities[close[0]]}?" if close else ""


@click.command(epilog=EPILOG)
@click.argument("names", metavar="[NODEPOOL]...", nargs=-1)
@cluster_options
@output_option("table", "json", "html", text="A table for people, a document for programs, or a page for a browser.")
@click.option("--next", "length", metavar="DURATION", type=Days(), default="7d", help="How far to look ahead.")
@click.option("--time-zone", metavar="ZONE", type=Zone(), default=UTC_NAME, help="The time zone of tables and pages.")
@click.option("--at", metavar="TIME", help="Begin at this time (RFC 3339) instead of now.")
@click.option("--nodes", metavar="N", type=Whole(0, 10**6), help="Suppose that each pool has so many nodes.")
@click.option(
    "--annotated-budgets",
    is_flag=True,
    help=f"Take budgets from the pools' annotation {BUDGETS}, as `karpool run --provider karpenter` does.",
)
@click.option("--all", "everything", is_flag=True, help="List every stretch of time in the table.")
@PAUSE_OPTION
def budgets(
    *,
    names: tuple[str, ...],
    source: ClusterInput,
    output: str,
    length: timedelta,
    time_zone: tzinfo,
    at: str | None,
    nodes: int | None,
    annotated_budgets: bool,
    everything: bool,
    pause_namespace: str,
) -> None:
    """Show how many nodes of each NodePool may go at once in the days to come, by reason, and which budget says so."""
    if not source.files:
        refuse_files("NODEPOOL", names, "NodePool")
    now = read_time(at)
    with progress() as report:
        read = read_cluster(source, report, pause_namespace=pause_namespace)
        pools = _chosen(read.objects.node_pools, names)
        size = _SUPPOSED if nodes is None and _without_nodes(read) else nodes
        notices = (
            *read.notices,
            *([] if size == nodes else [_NO_NODES]),
            *_unused(pools, annotated=annotated_budgets),
        )
        for notice in notices:
            say(notice, 0)
        from karpool.disruption.plan import context_of
        from karpool.report.calendars.budget_document import budget_calendar

        brakes = BrakeSettings(pause_namespace=pause_namespace)
        settings = DisruptionSettings(annotated_budgets=annotated_budgets, brakes=brakes)
        context = context_of(read.objects, Catalog(()), now=now, settings=settings, options=Options())
        zone = str(time_zone)
        document = budget_calendar(context, pools, length, nodes=size, time_zone=zone, warnings=notices)
    if output == "json":
        click.echo(to_json(document))
    elif output == "html":
        from karpool.report.calendars.budget_page import budget_page

        click.echo(budget_page(document, time_zone))
    else:
        from karpool.report.calendars.budget_table import print_budgets
        from karpool.report.terminal import Screen

        print_budgets(document, time_zone, Screen(sys.stdout), everything=everything)


def _without_nodes(read: ReadCluster) -> bool:
    """Whether the input is manifests alone; an empty list of nodes says that there are none."""
    return read.loaded is not None and not read.objects.nodes and "Node" not in read.loaded.listed


def _chosen(pools: Iterable[NodePool], names: tuple[str, ...]) -> list[NodePool]:
    by_name = {pool.name: pool for pool in sorted(pools, key=lambda pool: pool.name)}
    for name in names:
        if name not in by_name:
            hint = suggestion(name, by_name)
            raise InputError.at(
                "NODEPOOL", f"there is no NodePool {name!r} among the {len(by_name)} that were read{hint}"
            )
    return [by_name[name] for name in dict.fromkeys(names)] if names else list(by_name.values())


def _unused(pools: Iterable[NodePool], *, annotated: bool) -> tuple[str, ...]:
    """A line where the budgets that `karpool run` goes by are others than those shown."""
    others = [pool.name for pool in pools if BUDGETS in pool.metadata.annotations]
    if annotated or not others:
        return ()
    named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")  # noqa: PLR2004
    return (f"NodePools with budgets in their annotation: {named}; --annotated-budgets shows those",)
