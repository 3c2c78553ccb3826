"""`karpool import`: a recording made of what others wrote down."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click

from karpool.cli.completions import files
from karpool.cli.errors import say
from karpool.cli.options.option_types import Length, OneOf
from karpool.cli.progress import ReportProgress, progress
from karpool.recording.imports.imported_file import ImportedFile
from karpool.report.formatting import count
from karpool.wire.problems import InputError

KINDS: Final = ("snapshots", "audit", "openb", "prometheus", "simkube")
EPILOG: Final = """\b
WHAT IS READ
  snapshots   files of karpool snapshot or kubectl, or directories of them; times are
              in their names (20261116T080000Z), or are those of the files. Several
              files of one snapshot are in a folder with the time in its name
  audit       logs of an API server, JSON lines, plain, gzip or zstd; several are
              merged. Level RequestResponse for pods, nodes and workloads has all;
              with Metadata, what pods ask for comes from --cluster
  prometheus  the address of a Prometheus that scrapes kube-state-metrics
  simkube     a trace that sk-tracer exported, formats 2 and 3
  openb       the directory of the public trace, with nodes.csv and pods.csv
\b
  What a source does not say is told, and is in the recording as missing.
\b
EXAMPLES
  karpool import snapshots/ --from snapshots -o week.recording
  karpool import audit.log --from audit --cluster before.json -o day.recording
  karpool import http://localhost:9090 --from prometheus --last 24h -o day.recording
  karpool simulate day.recording
\b
EXIT STATUS
  0  the recording is complete; what the source lacks is told on standard error
  1  Prometheus does not answer
  2  bad input or a wrong option; one line on standard error, and no file
"""
_SHORTEST_STEP: Final = timedelta(seconds=1)


class Matcher(click.ParamType[tuple[str, str]]):
    """A label and its value, such as cluster=prod."""

    name = "matcher"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        label, equals, wanted = str(value).partition("=")
        if not equals or not (label.isascii() and label.isidentifier()):
            self.fail(f"{value!r} is no label and its value; write cluster=prod", param, ctx)
        return label, wanted.strip('"')


@click.command("import", epilog=EPILOG)
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--from", "kind", type=OneOf(KINDS), required=True, help="What SOURCE is.")
@click.option(
    "-o",
    "--output",
    metavar="RECORDING",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The file to write, which must not be there yet. It appears when it is complete.",
)
@click.option(
    "--cluster",
    metavar="PATH",
    shell_complete=files,
    help="audit: what was there when the log begins, as `plan -f` reads it.",
)
@click.option("--at-once", is_flag=True, help="openb: all pods of the trace at the same time, for a day.")
@click.option("--start", metavar="TIME", help="prometheus: from when on, in RFC 3339.")
@click.option("--end", metavar="TIME", help="prometheus: until when.  [default: now]")
@click.option(
    "--last", metavar="DURATION", type=Length(), help="prometheus: so long, instead of --start.  [default: 24h]"
)
@click.option(
    "--step", metavar="DURATION", type=Length(), help="prometheus: how far apart samples are.  [default: 30s]"
)
@click.option(
    "--matcher",
    "matchers",
    metavar="LABEL=VALUE",
    type=Matcher(),
    multiple=True,
    help="prometheus: only series with this label, such as cluster=prod. May be repeated.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="prometheus: a file with the bearer token to send.",
)
def import_(*, sources: tuple[str, ...], kind: str, output: Path, **options: Any) -> None:
    """Make a recording of SOURCE: snapshots, an audit log, a trace, or metrics, for those who did not record.

    Recordings are what simulate and sweep replay.
    """
    _refuse_others(kind, options)
    with progress() as report, ImportedFile(output) as file:
        report("Reading", 0, None)
        _IMPORTS[kind](sources, file, report, options)
    for note in file.notes:
        say(f"{note}", 0)
    size = max(1, output.stat().st_size // 1000)
    length = _length(file)
    click.echo(f"{output}: {count(file.records, 'event')} over {length}, {size:,} kB; karpool simulate {output}")


_OWN: Final = {
    "cluster": "audit",
    "at_once": "openb",
    **dict.fromkeys(("start", "end", "last", "step", "matchers", "token_file"), "prometheus"),
}


def _refuse_others(kind: str, options: dict[str, Any]) -> None:
    """An option of another kind of source means that somebody is mistaken."""
    for name, value in options.items():
        if value not in (None, False, ()) and _OWN[name] != kind:
            option = {"matchers": "--matcher"}.get(name, f"--{name.replace('_', '-')}")
            raise InputError.at(option, f"goes with --from {_OWN[name]}, and this is --from {kind}")


def _length(file: ImportedFile) -> str:
    from karpool.report.formatting import age

    return age(file.length)


def _snapshots(sources: tuple[str, ...], file: ImportedFile, report: ReportProgress, _: dict[str, Any]) -> None:
    from karpool.recording.imports.snapshots import import_snapshots

    import_snapshots(sources, file, report)


def _audit(sources: tuple[str, ...], file: ImportedFile, report: ReportProgress, options: dict[str, Any]) -> None:
    from karpool.model.reading.loading import load
    from karpool.recording.imports.audit import import_audit

    cluster = options["cluster"]
    initial = None if cluster is None else load([cluster], stdin=sys.stdin.buffer).objects
    import_audit(sources, file, report, initial)


def _openb(sources: tuple[str, ...], file: ImportedFile, report: ReportProgress, options: dict[str, Any]) -> None:
    from karpool.recording.imports.openb import import_openb

    import_openb(sources, file, report, at_once=options["at_once"])


def _simkube(sources: tuple[str, ...], file: ImportedFile, report: ReportProgress, _: dict[str, Any]) -> None:
    from karpool.recording.imports.simkube import import_simkube

    import_simkube(sources, file, report)


def _prometheus(sources: tuple[str, ...], file: ImportedFile, report: ReportProgress, options: dict[str, Any]) -> None:
    from karpool.recording.imports.prometheus import Asked, import_prometheus

    end = datetime.now(UTC).replace(microsecond=0) if options["end"] is None else _time("--end", options["end"])
    if options["start"] is not None and options["last"] is not None:
        raise InputError.at("--last", "says how long, and so does --start; leave one of them out")
    if options["last"] is not None and not options["last"]:
        raise InputError.at("--last", "is no time at all; write something like 24h")
    start = (
        end - (options["last"] or timedelta(days=1)) if options["start"] is None else _time("--start", options["start"])
    )
    step = timedelta(seconds=30) if options["step"] is None else options["step"]
    if step < _SHORTEST_STEP:
        raise InputError.at("--step", "is less than a second; write something like 30s")
    asked = Asked(start=start, end=end, step=step, matchers=options["matchers"], token_file=options["token_file"])
    import_prometheus(sources, file, report, asked)


def _time(option: str, text: str) -> datetime:
    from karpool.cli.options.decision_options import read_time

    return read_time(text, option)


_IMPORTS: Final[dict[str, Callable[[tuple[str, ...], ImportedFile, ReportProgress, dict[str, Any]], None]]] = {
    "snapshots": _snapshots,
    "audit": _audit,
    "openb": _openb,
    "prometheus": _prometheus,
    "simkube": _simkube,
}
