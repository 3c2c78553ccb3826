"""`karpool record`: the history of a live cluster in one growing file."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from karpool.catalog.pricing import node_price
from karpool.cli.errors import FAILED
from karpool.cli.options.catalog_options import CatalogOpener, catalog_options
from karpool.cli.options.input_options import KubeContext, kube_options
from karpool.cli.options.option_types import Days
from karpool.cli.progress import ReportProgress, progress
from karpool.model.objects import Objects
from karpool.recording.prices import prices_of
from karpool.report.formatting import count
from karpool.wire.duration import parse_duration
from karpool.wire.problems import InputError

if TYPE_CHECKING:
    import asyncio

    from karpool.kube.target import Target
    from karpool.recording.tape import Rotation, Tape

EPILOG: Final = """\b
WHAT IS WRITTEN
  Births, moves and deaths of pods and why they left, what they request; nodes,
  NodeClaims, NodePools, PodDisruptionBudgets, Deployments, StatefulSets, DaemonSets,
  volumes and what else decisions read; prices; how karpool run is set, from its Lease.
  Never what karpool snapshot leaves out: environments, arguments, commands, images,
  Secrets, ConfigMaps, addresses. The cluster is only listed and watched; kinds that
  may not be are named in the log and the file.
\b
THE FILE
  It only grows: a crash costs at most the last minute, and the same command goes on
  with it, as after a watch that was cut for long: that nothing was seen is written
  down as a gap. With --rotate, FILE is what is being written, and the ones before are
  FILE.20261116T080000Z, after their starts; each stands alone.
\b
EXAMPLES
  karpool record week.recording --for 7d
  karpool record /var/lib/karpool/cluster.recording --rotate 24h --rotate 100MB
  karpool simulate week.recording
\b
EXIT STATUS
  0  stopped by Ctrl-C or SIGTERM, or after --for; everything is in the file
  1  the cluster does not answer, or does not let its pods and nodes be listed
  2  a wrong option, or a file that is no recording; one line on standard error
"""
_SHUTDOWN: Final = timedelta(seconds=20)
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?([kMG])(i?)B", re.IGNORECASE)
_POWERS: Final = {"k": 1, "m": 2, "g": 3}
_SHORTEST: Final = timedelta(minutes=1)


class RotationLimit(click.ParamType["int | timedelta"]):
    """A size such as 100MB, or a length of time such as 24h."""

    name = "limit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | timedelta:
        size = _SIZE.fullmatch(str(value))
        if size is not None:
            number, prefix, binary = size.groups()
            return int(float(number) * (1024 if binary else 1000) ** _POWERS[prefix.lower()])
        try:
            length = parse_duration(str(value)).delta
        except ValueError:
            length = None
        if length is None:
            self.fail(f"{value!r} is neither a size nor a length of time; write 100MB or 24h", param, ctx)
        if length < _SHORTEST:
            self.fail(f"{value!r} is less than a minute; write something like 24h", param, ctx)
        return length


@click.command(epilog=EPILOG)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--for", "length", metavar="DURATION", type=Days(), help="Stop after this long.  [default: never]")
@click.option(
    "--rotate",
    "limits",
    metavar="SIZE|DURATION",
    type=RotationLimit(),
    multiple=True,
    help="Begin another file when this one is so large (100MB) or so old (24h). May be given twice, one of each.",
)
@click.option(
    "--lease-name", metavar="NAME", default="karpool", help="The Lease of `karpool run`, which says how that is set."
)
@click.option("--lease-namespace", metavar="NAMESPACE", default="karpool", help="Where that Lease is.")
@kube_options
@catalog_options
def record(
    *,
    file: Path,
    length: timedelta | None,
    limits: tuple[int | timedelta, ...],
    lease_name: str,
    lease_namespace: str,
    kube: KubeContext,
    catalog_opener: CatalogOpener,
) -> int:
    """Follow a live cluster and write its history to FILE, which simulate and sweep replay.

    The cluster is only listed and watched: that of the current kube context, or in a pod its own.
    """
    import asyncio

    from karpool.cli.inputs.live_cluster import target_of
    from karpool.kube.errors import ApiError
    from karpool.live.process import run_until_signalled
    from karpool.observability.logs import LogFormat, setup_logs

    target = target_of(kube)
    lease = (lease_namespace, lease_name)
    recorder = _Recorder(target, file, _rotation(limits), length, partial(_prices, catalog_opener), lease)
    with progress() as report:
        setup_logs(LogFormat.TEXT if sys.stderr.isatty() else LogFormat.JSON)
        try:
            ended = asyncio.run(run_until_signalled(partial(recorder.follow, report), _SHUTDOWN))
        except ApiError as error:
            where = f"context {target.context}" if target.context else "the cluster"
            error.about = f"{where}: {error.about}" if error.about else where
            raise
    return 0 if ended else FAILED


def _rotation(limits: tuple[int | timedelta, ...]) -> "Rotation":
    from karpool.recording.tape import Rotation

    sizes = [limit for limit in limits if isinstance(limit, int)]
    ages = [limit for limit in limits if isinstance(limit, timedelta)]
    if len(sizes) > 1 or len(ages) > 1:
        raise InputError.at("--rotate", "is given twice for the same; one size and one length of time go together")
    return Rotation(next(iter(sizes), None), next(iter(ages), None))


def _prices(opener: CatalogOpener, objects: Objects) -> dict[str, float]:
    catalog = opener.for_cluster(objects.nodes, objects.node_claims, objects.node_pools)
    return prices_of(objects.nodes, lambda labels: node_price(catalog, labels))


@dataclass(frozen=True, slots=True)
class _Recorder:
    target: "Target"
    file: Path
    rotation: "Rotation"
    length: timedelta | None
    prices: Callable[[Objects], dict[str, float]]
    lease: tuple[str, str]

    async def follow(self, report: ReportProgress, stop: "asyncio.Event") -> None:
        from karpool.kube.client import Client
        from karpool.kube.clock import utc_now
        from karpool.kube.server_time import ServerTime
        from karpool.live import USER_AGENT
        from karpool.live.caches import log_unreadable
        from karpool.live.process import background
        from karpool.live.time_keeper import keep_time
        from karpool.recording.follower import Follower
        from karpool.recording.lease import LeaseReader
        from karpool.recording.tape import Tape

        now, agent = ServerTime(utc_now), f"{USER_AGENT} record"
        client = Client(self.target, user_agent=agent, on_date=now.observe, on_unreadable=log_unreadable)
        report("Reading the cluster", 0, None)
        async with client:
            with Tape(self.file, now(), self.rotation) as tape:
                lease = LeaseReader(client, namespace=self.lease[0], name=self.lease[1])
                follower = Follower(
                    client,
                    tape,
                    now,
                    self.prices,
                    on_look=lambda: _show(tape, report),
                    settings_of=lambda: lease.settings(now()),
                )
                async with background(keep_time(client, now)):
                    await follower.run(stop, self.length)


def _show(tape: "Tape", report: ReportProgress) -> None:
    size = f"{tape.size / 1e6:,.1f} MB"
    report(f"Recording: {tape.records:,} events, {size}, {count(tape.gaps, 'gap')}", 0, None)
