"""`karpool simulate`: hours or days of a workload on a virtual cluster, under one policy or several."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from click.core import ParameterSource

from karpool.catalog.notices import idle_discounts
from karpool.catalog.sources import catalog_names, check_region, is_catalog_name
from karpool.catalog.spot_history import read_spot_history
from karpool.cli.completions import words_or_files
from karpool.cli.errors import say
from karpool.cli.inputs.recorded_input import check_recording, torn_words
from karpool.cli.inputs.scenario_cluster import InitialCluster, groups_of
from karpool.cli.options.catalog_options import CatalogOpener, catalog_options
from karpool.cli.options.decision_options import search_options
from karpool.cli.options.group_options import group_options
from karpool.cli.options.input_options import output_option
from karpool.cli.options.option_types import Seed, Whole
from karpool.cli.progress import progress
from karpool.cluster.node_groups import NO_OPTIONS, GroupOptions
from karpool.optimization.side_by_side import cores
from karpool.recording.parts import holds_recording
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.compare import Comparison, ReportProgress, ScenarioSource, compare
from karpool.virtual.policy_checks import pool_flaws
from karpool.virtual.scenario import Scenario, ScenarioError, read_scenario
from karpool.virtual.scenario_checks import flaws, instance_type_flaws, names_instance_types
from karpool.wire.duration import parse_duration
from karpool.wire.problems import Flaw, InputError, Problem, suggestion
from karpool.wire.sources import STDIN, display_name, read_source
from karpool.wire.sources import ManifestSource as FileSource

BUNDLED: Final = (
    "off-hours",
    "churn",
    "tenants",
    "fallback",
    "weights",
    "weights-architecture",
    "weights-capacity",
    "weights-gpu",
    "weights-taints",
    "spot",
    "workday",
)
_BUNDLE: Final = Path(str(resources.files("karpool.virtual") / "scenarios"))

EPILOG: Final = """\b
SCENARIOS
  A YAML file with pools, workloads and how many pods they want over the day, faults,
  and policies: named changes to the pools and to decisions. These are built in:
    off-hours  the evening after the peak, every node at 60%
    churn      bursts of pods, without and with a consolidation grace period
    tenants    many tenants' pools, multi-node consolidation in one list or by groups
    fallback   equal pools that stand in for each other, apart or merged
    weights    which pool comes first, and what that costs; also weights-architecture,
               weights-capacity, weights-gpu and weights-taints
    spot       spot nodes replaced by cheaper ones, with and without a floor of types
    workday    a recorded day again, as it was and with a consolidation grace period
\b
WHAT IS RUN
  The decisions and the execution of the controller, on a cluster in memory with a
  clock of its own. Each policy meets the same workload, chance and faults; the same
  seed gives the same output, to the byte.
\b
EXAMPLES
  karpool simulate churn
  karpool simulate churn --seeds 20
  karpool simulate my-cluster.yaml --policy today --policy tomorrow --length 12h
  karpool simulate off-hours --output html > off-hours.html
\b
EXIT STATUS
  0    done
  2    bad input; one line on standard error names file and field
  130  interrupted with Ctrl-C; there is no result
"""

SPOT_HISTORY: Final = click.option(
    "--spot-history",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Spot prices follow this table of changes, time,zone,type,usd_per_hour, which may be packed; instances are"
    " interrupted when prices jump.",
)


@click.command(epilog=EPILOG)
@click.argument("scenario", metavar="SCENARIO", shell_complete=words_or_files(BUNDLED))
@click.option("--policy", "policies", metavar="NAME", multiple=True, help="Run only this policy. May be repeated.")
@click.option("--seed", metavar="N", type=Seed(), help="The seed of random numbers.  [default: as the scenario says]")
@click.option(
    "--seeds",
    metavar="N",
    type=Whole(min=1),
    default=1,
    help="Run N seeds on all cores; show means with 95% confidence intervals.",
)
@click.option("--length", metavar="DURATION", help="How long to measure, such as 24h.  [default: as the scenario says]")
@output_option("table", "json", "html", text="A table for people, a document for programs, or a page with plots.")
@click.option(
    "--journal",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the decision journal of one policy on one seed, as `karpool run` writes it.",
)
@click.option(
    "--record",
    "recording",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write what happens under one policy on one seed as a recording, as `karpool record` writes it.",
)
@SPOT_HISTORY
@group_options
@search_options
@catalog_options
def simulate(
    *,
    scenario: str,
    policies: tuple[str, ...],
    seed: int | None,
    seeds: int,
    length: str | None,
    output: str,
    journal: Path | None,
    recording: Path | None,
    spot_history: Path | None,
    groups: GroupOptions,
    catalog_opener: CatalogOpener,
    decisions: dict[str, Any],
) -> None:
    """Run a scenario on a virtual cluster and compare policies: what they cost, and how often they disturb pods.

    SCENARIO is a file, - for standard input, the name of a built-in scenario, or a recording, whose demand is replayed.
    """
    with progress() as report:
        report("Reading the scenario", 0, None)
        opened = open_scenario(scenario, catalog_opener, length, decisions, spot_history, groups=groups)
        first = opened.scenario.seed if seed is None else seed
        chosen, seeded = _chosen(opened.scenario, policies), range(first, first + seeds)
        for option, file in (("--journal", journal), ("--record", recording)):
            if file is not None and len(chosen) * seeds > 1:
                raise InputError.at(option, f"is of one run, and there are {len(chosen) * seeds}; name one --policy")
        with _kept(journal, recording) as observe:
            comparison = opened.compare(chosen, seeded, report, observe)
    if words := torn_words(opened.source.demand()):
        say(f"{opened.source.recording}: {words}", 0)
    if comparison.left_out:
        say(comparison.left_out, 0)
    for notice in idle_discounts(catalog_opener.discounts, comparison.origins):
        say(notice, 0)
    _print(comparison, output)


@contextmanager
def _kept(journal: Path | None, recording: Path | None) -> Iterator[Callable[[VirtualCluster], object] | None]:
    """What to do with the cluster of one run before it runs, so that its journal and its history are in files."""
    from karpool.report.journals.simulation_journal import SimulationJournal
    from karpool.virtual.replays.recorded_cluster import RecordedCluster

    keeping: list[Callable[[VirtualCluster], object]] = []
    journals: list[SimulationJournal] = []
    with ExitStack() as stack:
        if journal is not None:
            file = stack.enter_context(journal.open("wb"))
            stack.callback(lambda: file.writelines(line for entry in journals for line in entry.lines))
            keeping.append(lambda cluster: journals.append(SimulationJournal(cluster)))
        if recording is not None:
            keeping.append(lambda cluster: stack.enter_context(RecordedCluster(cluster, recording)))
        yield (lambda cluster: [keep(cluster) for keep in keeping]) if keeping else None


@dataclass(frozen=True)
class OpenedScenario:
    file: str
    source: ScenarioSource
    scenario: Scenario

    def compare(
        self,
        policies: Sequence[str],
        seeds: Sequence[int],
        report: ReportProgress,
        observe: Callable[[VirtualCluster], object] | None = None,
    ) -> Comparison:
        """Run it; several seeds take all cores."""
        workers = cores() if len(seeds) > 1 else 1
        try:
            return compare(self.source, policies, seeds, report, workers=workers, observe=observe)
        except ScenarioError as error:
            raise InputError.at(self.file, str(error), field=error.field) from error


def open_scenario(
    name: str,
    opener: CatalogOpener,
    length: str | None = None,
    decisions: Mapping[str, Any] | None = None,
    spot_history: Path | None = None,
    *,
    groups: GroupOptions = NO_OPTIONS,
) -> OpenedScenario:
    """A scenario by its file or its built-in name; what the command line names replaces its own."""
    file, data, beside = _read(name)
    return open_text(
        file,
        data,
        opener,
        beside=beside,
        length=length,
        decisions=decisions,
        spot_history=spot_history,
        groups=groups,
    )


def open_text(
    file: str,
    data: bytes,
    opener: CatalogOpener,
    *,
    beside: Path,
    length: str | None = None,
    decisions: Mapping[str, Any] | None = None,
    spot_history: Path | None = None,
    groups: GroupOptions = NO_OPTIONS,
) -> OpenedScenario:
    """The scenario of a text; files that it names are in the directory `beside`."""
    if length is not None:
        _check_length(length)
    _refuse_first(flaws(data), file)
    written = read_scenario(data)
    _refuse_first(_missing_files(written, beside), file)
    files = tuple(str(beside / entry) for entry in written.cluster)
    recording = str(beside / written.recording) if written.recording else ""
    own = _with_own_catalog(opener, written, beside)
    initial = InitialCluster(files, recording, groups_of(written, beside, groups))
    chosen = tuple((decisions or {}).items())
    source = ScenarioSource(
        data,
        partial(initial.catalog, own),
        length,
        files,
        recording,
        _history_file(written, beside, spot_history),
        chosen,
        pool_label=initial.groups.pool_label or "",
        group_sizes=tuple(initial.groups.sizes.items()),
    )
    scenario = source.scenario()
    demand = source.demand()
    if demand is not None:
        check_recording(demand, scenario, name=file, option=length is not None)
    if files or recording:
        _refuse_first(pool_flaws(scenario), file)
    if names_instance_types(scenario):
        # Without prices: an option would be blamed for a type that the scenario misspells.
        _refuse_first(instance_type_flaws(scenario, initial.catalog(replace(own, prices=()))), file)
    for notice in initial.notices(own):
        say(notice, 0)
    return OpenedScenario(file, source, scenario)


def _history_file(scenario: Scenario, beside: Path, named: Path | None) -> str:
    """The file with the history of spot prices; it is read now, so that what is wrong with it is told at once."""
    settings = scenario.spot_history
    if settings is None and named is None:
        return ""
    file = named or beside / (settings.file if settings is not None else "")
    history = read_spot_history(file)
    start = None if settings is None else settings.start
    if start is not None and not history.first <= start.timestamp() <= history.last:
        first, last = (datetime.fromtimestamp(time, UTC).date() for time in (history.first, history.last))
        raise InputError.at(str(file), f"is from {first} to {last}, and spotHistory.start is {start.date()}")
    return str(file)


def _refuse_first(flaws_found: Iterable[Flaw], file: str) -> None:
    for flaw in flaws_found:
        raise InputError(Problem.of(flaw, file=file, about=""))


def _missing_files(scenario: Scenario, beside: Path) -> Iterator[Flaw]:
    for number, entry in enumerate(scenario.cluster):
        if not entry or not (beside / entry).exists():
            message = f"there is no file {beside / entry}; name one with a cluster"
            yield Flaw(f"cluster[{number}]", "MissingFile", message)
    if scenario.recording and not holds_recording(beside / scenario.recording):
        message = f"there is no recording {beside / scenario.recording}; `karpool record` writes one"
        yield Flaw("recording", "MissingFile", message)
    if scenario.groups and not (beside / scenario.groups).is_file():
        message = f"there is no file {beside / scenario.groups}; name one with sizes of node groups"
        yield Flaw("groups", "MissingFile", message)
    if scenario.spot_history is not None and not (beside / scenario.spot_history.file).is_file():
        message = f"there is no file {beside / scenario.spot_history.file}; name a table of price changes"
        yield Flaw("spotHistory.file", "MissingFile", message)
    if scenario.catalog is None or _given("catalog_source"):
        return
    if wrong := check_region(scenario.catalog):
        yield Flaw("catalog", "Region", wrong)
    elif not is_catalog_name(scenario.catalog) and not (scenario.catalog and (beside / scenario.catalog).exists()):
        message = (
            f"{scenario.catalog!r} is neither a cloud (aws, aws:REGION), sample or kwok, nor is there a file"
            f" {beside / scenario.catalog}"
        )
        yield Flaw("catalog", "MissingFile", message + suggestion(scenario.catalog, catalog_names()))


def _read(name: str) -> tuple[str, bytes, Path]:
    """What messages call the scenario, its text, and where the files are that it names."""
    if name in BUNDLED and not Path(name).is_file():
        return name, (_BUNDLE / f"{name}.yaml").read_bytes(), _BUNDLE
    if Path(name).name == name != STDIN and not Path(name).suffix and not Path(name).exists():
        raise InputError.at(
            name, f"is neither a file nor built in; there are {', '.join(BUNDLED)}{suggestion(name, BUNDLED)}"
        )
    beside = Path(name).parent
    if holds_recording(Path(name)):
        return name, msgspec.json.encode({"name": Path(name).stem, "recording": Path(name).name}), beside
    if Path(name).is_file() and not Path(name).stat().st_size:
        raise InputError.at(name, "is empty; name a scenario, or a recording of `karpool record`")
    source = FileSource(name)
    return display_name(source), read_source(source, sys.stdin.buffer), beside


def _with_own_catalog(opener: CatalogOpener, scenario: Scenario, beside: Path) -> CatalogOpener:
    """The scenario's catalogue, prices and fee, unless the command line names them."""
    if scenario.catalog is not None and not _given("catalog_source"):
        source = scenario.catalog if is_catalog_name(scenario.catalog) else str(beside / scenario.catalog)
        opener = replace(opener, source=source)
    own = tuple(f"{kind}={price}" for kind, price in scenario.prices.items())
    opener = replace(opener, prices=(*own, *opener.prices))
    if not _given("node_fee"):
        opener = replace(opener, node_fee=scenario.node_fee)
    return opener


def _given(parameter: str) -> bool:
    source = click.get_current_context().get_parameter_source(parameter)
    return source not in (None, ParameterSource.DEFAULT)


def _check_length(length: str) -> None:
    try:
        nanos = parse_duration(length).nanos
    except ValueError as error:
        raise InputError.at("--length", str(error)) from None
    if nanos is None or nanos <= 0:
        raise InputError.at("--length", f"{length!r} is no length of time; write one such as 24h")


def _chosen(scenario: Scenario, policies: tuple[str, ...]) -> list[str]:
    """The policies to run, each once, in the order in which they were asked for."""
    for name in policies:
        if name not in scenario.policies:
            known = f"there are {', '.join(scenario.policies)}{suggestion(name, scenario.policies)}"
            raise InputError.at("--policy", f"there is no policy {name!r}; {known}")
    return list(dict.fromkeys(policies or scenario.policies))


def _print(comparison: Comparison, output: str) -> None:
    from karpool.report.simulations.simulation_document import simulation_document, to_json

    document = simulation_document(comparison)
    if output == "json":
        click.echo(to_json(document))
    elif output == "html":
        from karpool.report.simulations.simulation_page import simulation_page

        click.echo(simulation_page(document, comparison))
    else:
        from karpool.report.simulations.simulation_table import print_simulation
        from karpool.report.terminal import Screen

        print_simulation(document, Screen(sys.stdout))
