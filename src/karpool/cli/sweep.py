"""`karpool sweep`: many settings of a policy on the virtual cluster; what they cost, and how many pods they disturb."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import yaml

from karpool.cli.completions import words_or_files
from karpool.cli.errors import INTERRUPTED, say
from karpool.cli.inputs.recorded_input import torn_words
from karpool.cli.options.catalog_options import CatalogOpener, catalog_options
from karpool.cli.options.decision_options import search_options
from karpool.cli.options.group_options import group_options
from karpool.cli.options.input_options import output_option
from karpool.cli.options.option_types import OneOf, Seed, Whole
from karpool.cli.options.worker_options import Where, worker_options, workers_at
from karpool.cli.progress import ReportProgress, progress
from karpool.cli.simulate import BUNDLED, SPOT_HISTORY, OpenedScenario, open_scenario, open_text
from karpool.cluster.node_groups import GroupOptions
from karpool.recording.parts import holds_recording
from karpool.virtual.scenario import ScenarioError
from karpool.wire.problems import InputError, suggestion
from karpool.wire.sources import ManifestSource, read_source

if TYPE_CHECKING:
    from karpool.report.simulations.sweep_document import SweepDocument
    from karpool.sweep.dimensions import Dimension
    from karpool.sweep.driver import Sweep
    from karpool.sweep.methods import SearchMethod
    from karpool.sweep.trial import SweepInput

EPILOG: Final = """\b
INPUTS
  A scenario, as `karpool simulate` takes it (a file, or the name of a built-in one), a
  recording (a file of `karpool record` or `karpool import`, or a directory of rotated
  ones), or a snapshot: a file of `karpool snapshot`, of kubectl, or a directory of such.
  Of several inputs the costs and evictions are added up.
\b
WHAT --set SETS
  NAME=V1,V2 tries each value; NAME=LOW..HIGH values between, for random and bayes;
  NAME@POOL is of one NodePool only; the value today leaves it as it is.
    consolidateAfter=30s,5m,1h   gracePeriod=Never,30m    consolidationPolicy=Balanced
    balancedK=1,2,4              budgets=5%,10%,20%       minimumSavings=0,5%
    weight@spot=0,10             onlyTypes=m5.*+c5.*      forbidTypes=today,t3.*
    addTypes=m6i.*               nodeFee=0,0.01           evictionPrice=0..0.05
    spotToSpot=true,false        partition=pool,auto      order=cost,ratio
    weights=prefer,strict
\b
EXAMPLES
  karpool sweep churn --set consolidateAfter=30s,5m,30m --set gracePeriod=Never,30m --seeds 10
  karpool sweep cluster.json.zst --set budgets=5%,10%,20% --length 12h --output html > sweep.html
  karpool sweep churn --set consolidateAfter=30s..2h --method bayes --count 40 --results churn.jsonl
  karpool sweep churn --set consolidateAfter=30s..2h --method bayes --count 40 --results churn.jsonl --choose 7
  karpool sweep mine.yaml --set evictionPrice=0,0.01 --on ray://ray-head:10001
\b
EXIT STATUS
  0    done
  1    the machines on which trials run failed
  2    bad input; one line on standard error names what is wrong
  130  interrupted with Ctrl-C; what was done is printed, and with --results kept
"""
_SNAPSHOT: Final = re.compile(
    rb"\s*(\{\s*\"(apiVersion|kind|items|metadata)\"|\[|(---\s*\n)?(#[^\n]*\n)*(apiVersion|kind):)"
)
_HEAD: Final = 4096
_EFFORT: Final = {"policies": {"default": {"decisions": {"effort": 0}}}}
"""Of a snapshot, which says nothing about it: days of many settings have to be affordable."""


@click.command(epilog=EPILOG)
@click.argument("names", metavar="INPUT...", shell_complete=words_or_files(BUNDLED), nargs=-1, required=True)
@click.option(
    "--set",
    "sets",
    metavar="NAME=VALUES",
    multiple=True,
    required=True,
    help="What to try; see below. May be repeated.",
)
@click.option("--policy", metavar="NAME", help="The policy of a scenario that settings change.  [default: its first]")
@click.option("--seed", metavar="N", type=Seed(), default=1, help="The first seed of random numbers.")
@click.option("--seeds", metavar="N", type=Whole(min=1), default=3, help="On how many seeds each setting is tried.")
@click.option("--length", metavar="DURATION", help="How long to measure, such as 24h.  [default: as the input says]")
@click.option(
    "--method",
    type=OneOf(["grid", "random", "bayes"]),
    default="grid",
    help="Try all combinations, some by chance, or those that Optuna thinks best.",
)
@click.option(
    "--count",
    metavar="N",
    type=Whole(min=1, max=100_000),
    default=30,
    help="How many settings random and bayes try.",
)
@click.option("--run-all", is_flag=True, help="Try every seed also of settings that are hopeless.")
@worker_options
@click.option(
    "--results",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep each result in this file, and do not repeat those that are there.",
)
@click.option(
    "--choose",
    metavar="NO",
    type=Whole(min=1),
    help="Print the NodePool patches of this setting instead, and the options of `karpool run`.",
)
@output_option("table", "json", "html", text="A table for people, a document for programs, or a page with a plot.")
@SPOT_HISTORY
@group_options
@search_options
@catalog_options
@click.pass_context
def sweep(
    context: click.Context,
    /,
    *,
    names: tuple[str, ...],
    sets: tuple[str, ...],
    policy: str | None,
    seed: int,
    seeds: int,
    length: str | None,
    method: str,
    count: int,
    run_all: bool,
    where: Where,
    results: Path | None,
    choose: int | None,
    output: str,
    spot_history: Path | None,
    groups: GroupOptions,
    catalog_opener: CatalogOpener,
    decisions: dict[str, Any],
) -> None:
    """Try settings of a policy on a virtual cluster: what they cost, and how many pods they disturb.

    INPUT is a scenario, a recording or a snapshot. No other setting is as cheap and evicts as few pods as one on the
    front.
    """
    from karpool.report.simulations.sweep_document import sweep_document
    from karpool.sweep.dimensions import read_dimension
    from karpool.sweep.trial import run_trial

    if twice := next((name for number, name in enumerate(names) if name in names[:number]), ""):
        raise InputError.at(twice, "is there twice; name each input once, and try it on more --seeds")
    dimensions = [read_dimension(text) for text in sets]
    asked = _method(method, dimensions, count, seed)
    with progress() as report, ExitStack() as stack:
        report("Reading", 0, None)
        opens = partial(
            _opened, opener=catalog_opener, length=length, decisions=decisions, spot_history=spot_history, groups=groups
        )
        inputs = tuple(_input(name, policy, opens(name)) for name in names)
        _check(inputs, dimensions)
        running = stack.enter_context(
            _swept(inputs, range(seed, seed + seeds), report, results=results, stops_hopeless=not run_all)
        )
        complete = _run(running, asked, partial(workers_at, where, partial(run_trial, inputs)))
    for entry in inputs:
        if words := torn_words(entry.inputs.demand):
            say(f"{entry.name}: {words}", 0)
    document = sweep_document(running, method, complete=complete)
    if choose is None:
        _print(document, output)
    else:
        _print_patches(running, choose)
    if not complete:
        kept = "" if results is None else f"; the same command goes on from {results}"
        say(f"interrupted after {len(running.results)} trials{kept}", 0)
        context.exit(INTERRUPTED)


def _method(name: str, dimensions: "Sequence[Dimension]", count: int, seed: int) -> "SearchMethod":
    from karpool.sweep.methods import Bayesian, Grid, RandomSettings

    repeated = next(
        (one.name for number, one in enumerate(dimensions) if one.name in [two.name for two in dimensions[:number]]),
        None,
    )
    if repeated is not None:
        raise InputError.at("--set", f"{repeated} is there twice; list all its values in one")
    if name == "grid":
        return Grid(dimensions)
    return RandomSettings(dimensions, count, seed) if name == "random" else Bayesian(dimensions, count, seed)


def _input(name: str, policy: str | None, opened: OpenedScenario) -> "SweepInput":
    from karpool.sweep.trial import SweepInput

    inputs = opened.source.inputs()
    known = inputs.scenario.policies
    if policy is not None and policy not in known:
        there = f"there are {', '.join(known)}{suggestion(policy, known)}"
        raise InputError.at("--policy", f"{name} has no policy {policy!r}; {there}")
    return SweepInput(name, inputs, policy or next(iter(known)))


def _opened(
    name: str,
    *,
    opener: CatalogOpener,
    length: str | None,
    decisions: dict[str, Any],
    spot_history: Path | None,
    groups: GroupOptions,
) -> OpenedScenario:
    """A scenario, a recording, or a scenario that is nothing but a snapshot."""
    path = Path(name)
    if name in BUNDLED or not path.exists() or holds_recording(path) or not (path.is_dir() or _is_snapshot(name)):
        return open_scenario(name, opener, length, decisions, spot_history, groups=groups)
    text = yaml.safe_dump({"name": path.name, "cluster": [path.name], **_EFFORT}).encode()
    return open_text(
        name,
        text,
        opener,
        beside=path.parent,
        length=length,
        decisions=decisions,
        spot_history=spot_history,
        groups=groups,
    )


def _is_snapshot(name: str) -> bool:
    return _SNAPSHOT.match(read_source(ManifestSource(name), sys.stdin.buffer)[:_HEAD]) is not None


def _check(inputs: "Sequence[SweepInput]", dimensions: "Sequence[Dimension]") -> None:
    """Every value fits every input, before anything runs."""
    for entry in inputs:
        for dimension in dimensions:
            span = dimension.span
            ends = dimension.values if span is None else (span.write(span.low), span.write(span.high))
            for value in ends:
                entry.under(((dimension.name, value),))


@contextmanager
def _swept(
    inputs: "tuple[SweepInput, ...]",
    seeds: Sequence[int],
    report: ReportProgress,
    *,
    results: Path | None,
    stops_hopeless: bool,
) -> "Iterator[Sweep]":
    from karpool.sweep.driver import Sweep
    from karpool.sweep.fingerprint import fingerprint
    from karpool.sweep.results_file import results_file

    if results is None:
        yield Sweep(inputs, seeds, report=report, stops_hopeless=stops_hopeless)
        return
    with results_file(results, [fingerprint(entry) for entry in inputs]) as file:
        yield Sweep(inputs, seeds, report=report, file=file, stops_hopeless=stops_hopeless)


def _run(running: "Sweep", method: "SearchMethod", workers: Any) -> bool:
    """Whether it came to its end; Ctrl-C ends the workers and keeps what is done."""
    try:
        with workers() as hands:
            running.run(method, hands)
    except KeyboardInterrupt:
        return False
    except ScenarioError as error:
        raise InputError.at(", ".join(entry.name for entry in running.inputs), str(error), field=error.field) from error
    return True


def _print(document: "SweepDocument", output: str) -> None:
    if output == "json":
        from karpool.report.simulations.sweep_document import to_json

        click.echo(to_json(document))
    elif output == "html":
        from karpool.report.simulations.sweep_page import sweep_page

        click.echo(sweep_page(document))
    else:
        from karpool.report.simulations.sweep_table import print_sweep
        from karpool.report.terminal import Screen

        print_sweep(document, Screen(sys.stdout))


def _print_patches(running: "Sweep", number: int) -> None:
    from karpool.report.what_if.what_if_yaml import changes_text
    from karpool.sweep.dimensions import knobs_of
    from karpool.sweep.trial import written

    settings = list(running.settings)
    if number > len(settings):
        raise InputError.at("--choose", f"there are {len(settings)} settings, and no number {number}")
    knobs = knobs_of(settings[number - 1])
    for entry in running.inputs:
        click.echo(f"# {entry.name}: {written(settings[number - 1])}")
        click.echo(changes_text(entry.question(), knobs))
