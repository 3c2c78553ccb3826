"""`karpool ui`: the console, a web page over a live cluster, a file, or a directory of snapshots."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from karpool.cli.inputs.cluster_source import read_cluster_of
from karpool.cli.options.catalog_options import CatalogOpener, catalog_options
from karpool.cli.options.decision_options import Choices, decision_options
from karpool.cli.options.group_options import group_options
from karpool.cli.options.input_options import READS_LIVE, ClusterInput, KubeContext, cluster_options
from karpool.cli.options.option_types import Whole
from karpool.cluster.node_groups import GroupOptions
from karpool.model.reading.loading import load
from karpool.wire.problems import InputError
from karpool.wire.sources import STDIN, find_sources

if TYPE_CHECKING:
    import asyncio

    from karpool.web.console import ShownCluster, Source
    from karpool.web.file_source import FileCluster

EPILOG: Final = f"""{READS_LIVE}
\b
WHAT IT SERVES
  A page on localhost, for the browser of this machine: the fleet as it changes, the
  plan step by step, what other settings would save, what blocks the most money, and
  who pays. It shows, and changes nothing anywhere. Ctrl-C ends it.
\b
A DIRECTORY OF SNAPSHOTS
  Where each file of a directory is a cluster of its own, as `karpool snapshot` writes
  it (*.json.zst, *.json.gz), the page lets you choose. Other directories are one cluster.
\b
EXAMPLES
  karpool ui
  karpool ui --context staging
  karpool ui -f cluster.json.zst
  karpool ui -f snapshots/ --port 8090 --no-browser
  karpool ui --journal decisions.jsonl
\b
EXIT STATUS
  0  stopped
  1  the cluster does not answer, or the port is taken
  2  bad input; one line on standard error names file, object and field
"""
_SHUTDOWN: Final = timedelta(seconds=5)
_SNAPSHOTS: Final = (".json.zst", ".json.gz")
_LARGEST_PORT: Final = 65535


@click.command(epilog=EPILOG)
@cluster_options
@click.option(
    "--port",
    metavar="N",
    type=Whole(0, _LARGEST_PORT),
    default=8088,
    show_default=True,
    help="The port on localhost; 0 takes any free one.",
)
@click.option(
    "--journal",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The decision journal of `karpool run` or of `karpool simulate`, for the timeline.",
)
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open the page in the browser.")
@catalog_options
@group_options
@decision_options
def ui(
    *,
    source: ClusterInput,
    port: int,
    journal: Path | None,
    browser: bool,
    catalog_opener: CatalogOpener,
    groups: GroupOptions,
    choices: Choices,
) -> None:
    """Serve a page on localhost: the fleet live, the plan, what other settings would save, and who pays.

    Nothing is changed anywhere.
    """
    import asyncio

    from karpool.live.process import run_until_signalled
    from karpool.observability.logs import LogFormat, LogLevel, setup_logs

    setup_logs(LogFormat.TEXT, LogLevel.ERROR)
    at_given = _at_given()
    sources = (
        _file_sources(source.files, catalog_opener, groups, choices, journal)
        if source.files
        else [_live_source(source.kube, catalog_opener, groups, choices, journal, moves=not at_given)]
    )
    work = partial(_serve, sources, port, browser=browser, at_once=not source.files)
    asyncio.run(run_until_signalled(work, _SHUTDOWN))


def _at_given() -> bool:
    return click.get_current_context().get_parameter_source("at") is click.core.ParameterSource.COMMANDLINE


async def _serve(
    sources: "Sequence[Source]", port: int, stop: "asyncio.Event", *, browser: bool, at_once: bool
) -> None:
    """Serve until stopped; a cluster that cannot be read at all ends it at once.

    `at_once`: the address is told before the cluster is read, which may take long.
    """
    import asyncio

    from karpool.observability.serving import Address, serving
    from karpool.web.console import Console
    from karpool.web.pages import console_pages

    console = Console(sources)
    opening = asyncio.create_task(console.cluster())
    try:
        async with serving(console_pages(console, Address("127.0.0.1", port))) as bound:
            stopped = asyncio.create_task(stop.wait())
            if not at_once:
                await _opened(opening, stopped)
            if not stopped.done():
                await _announce(f"http://{bound['/']}/", browser=browser)
            await _opened(opening, stopped)
            await stopped
    finally:
        opening.cancel()
        await console.close()


async def _opened(opening: "asyncio.Task[ShownCluster]", stopped: "asyncio.Task[Any]") -> None:
    """Wait until the cluster can be shown, or nobody wants it any more; raises what is wrong with it."""
    import asyncio

    await asyncio.wait((opening, stopped), return_when=asyncio.FIRST_COMPLETED)
    if opening.done():
        opening.result()


async def _announce(url: str, *, browser: bool) -> None:
    import asyncio

    click.echo(f"The console is at {url} and ends with Ctrl-C")
    sys.stdout.flush()
    if browser:
        await asyncio.to_thread(_open_browser, url)


def _open_browser(url: str) -> None:
    """Open the page where there is a browser; in a terminal of a server there is none."""
    import webbrowser

    with suppress(webbrowser.Error):
        found = webbrowser.get()
        # A browser in the terminal would take it over.
        if not isinstance(found, webbrowser.GenericBrowser) or isinstance(found, webbrowser.BackgroundBrowser):
            found.open(url)


def _live_source(
    kube: KubeContext,
    opener: CatalogOpener,
    groups: GroupOptions,
    choices: Choices,
    journal: Path | None,
    *,
    moves: bool,
) -> "Source":
    from karpool.cli.console_decider import ConsoleDecider
    from karpool.cli.inputs.live_cluster import target_of
    from karpool.kube.kubeconfig import IN_CLUSTER
    from karpool.web.live_source import LiveSource

    target = target_of(kube)
    # The current context may be another one by the time a command with these options is run.
    named = kube if target.context in ("", IN_CLUSTER) else replace(kube, context=target.context)
    return LiveSource(
        target,
        ConsoleDecider(opener, choices, groups, moves=moves, source=named.options),
        opener.for_cluster,
        pause_namespace=choices.settings.brakes.pause_namespace,
        node_overlays=choices.settings.node_overlays,
        devices=not choices.options.ignore_dra_requests,
        spread=bool(choices.options.default_spread),
        journal=journal,
    )


def _file_sources(
    files: tuple[str, ...], opener: CatalogOpener, groups: GroupOptions, choices: Choices, journal: Path | None
) -> "list[Source]":
    from karpool.web.file_source import FileSource

    def source(name: str, paths: tuple[str, ...]) -> "Source":
        return FileSource(name, ", ".join(paths), _reader(paths, opener, groups, choices), opener.for_cluster, journal)

    snapshots = _snapshots(files)
    if snapshots:
        return [source(name, (str(path),)) for name, path in snapshots.items()]
    if STDIN in files:
        # Standard input can be read once only, and whoever writes to it expects that to happen now.
        read = _reader(files, opener, groups, choices)()
        return [FileSource("standard input", ", ".join(files), lambda: read, opener.for_cluster, journal)]
    name = _name(Path(files[0])) + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    return [source(name, files)]


def _reader(
    paths: tuple[str, ...], opener: CatalogOpener, groups: GroupOptions, choices: Choices
) -> "Callable[[], FileCluster]":
    """Reads files as `karpool plan` does, with the same errors and notices."""

    def read() -> Any:
        from karpool.cli.console_decider import ConsoleDecider
        from karpool.web.file_source import FileCluster

        found = read_cluster_of(load(paths, stdin=sys.stdin.buffer))
        source = tuple(word for path in paths for word in ("-f", path))
        decider = ConsoleDecider(opener, choices, groups, moves=False, notices=found.notices, source=source)
        return FileCluster(found.objects, decider, decider(found.objects).warnings)

    return read


def _snapshots(files: tuple[str, ...]) -> dict[str, Path]:
    """The snapshots in a directory that holds nothing else, by name; none for everything else."""
    if len(files) != 1 or not Path(files[0]).is_dir():
        return {}
    paths = [Path(found.name) for found in find_sources(files)]
    if len(paths) < 2 or not all(path.name.endswith(_SNAPSHOTS) for path in paths):  # noqa: PLR2004 - one is one cluster
        return {}
    named = {_name(path): path for path in sorted(paths)}
    if len(named) < len(paths):
        raise InputError.at("-f", "names a directory in which two snapshots have the same name; rename one")
    return named


def _name(path: Path) -> str:
    """The name of a file without its endings."""
    name = path.resolve().name
    for ending in (*_SNAPSHOTS, ".json", ".yaml", ".yml"):
        name = name.removesuffix(ending)
    return name
