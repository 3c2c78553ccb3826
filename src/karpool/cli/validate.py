"""`karpool validate`: what was read, counted by kind, and everything that is wrong with it."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain, product
from typing import TYPE_CHECKING, Any, Final, TextIO

import click
import msgspec
from msgspec.structs import replace

from karpool.cli.check_output import CHECK_FORMATS, print_checks
from karpool.cli.errors import BAD_INPUT, say
from karpool.cli.options.catalog_options import CATALOG, CatalogOpener
from karpool.cli.options.input_options import READS, files_option, output_option
from karpool.cli.progress import progress
from karpool.disruption.candidates.costs import unreadable_cost
from karpool.disruption.candidates.pods import ignored_protection
from karpool.model.annotations import AnnotationError, annotation_path
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.reading.loading import Loaded, read
from karpool.model.rules.pools import long_name_flaws, pause_flaws
from karpool.model.validation import validate as find_problems
from karpool.wire.problems import Flaw, Problem, one_line

if TYPE_CHECKING:
    from karpool.report.terminal import Screen

_MOST_SHOWN: Final = 50
_LONGEST_VALUE: Final = 40
EPILOG: Final = f"""{READS}
\b
WHAT IS CHECKED
  Values: quantities, durations, operators, weights, budgets, and all other rules
  that an API server has for NodePools and NodeClaims. Objects: each has a name,
  no two have the same. References: the NodePool of a NodeClaim, the Node of a
  pod. Schedules: budgets whose cron never comes. Unknown fields are warnings, and
  so is what `karpool lint` says of pools by their manifests alone, also what it
  calls an error: a catalogue may not know all instance types that there are.
\b
THE JSON
  {{"kinds": {{"Node": 12}}, "skipped": {{"Service": 3}}, "warnings": [], "problems":
   [{{"file": "", "object": "", "field": "", "rule": "", "message": "", "line": 1}}]}}
\b
EXAMPLES
  karpool validate -f cluster.json
  karpool validate -f nodepools/ -f nodes.yaml.gz --output json
  karpool validate -f nodepools/ --strict -o sarif > karpool.sarif    # in a pipeline
  kubectl get nodes,pods,pdb,nodepools,nodeclaims -A -o json | karpool validate -f -
\b
EXIT STATUS
  0  nothing is wrong; there may be warnings, without --strict
  2  at least one problem: the first is one line on standard error, all of them
     are in the output
"""


class Validation(msgspec.Struct):
    """What `--output json` prints."""

    kinds: Mapping[str, int]
    skipped: Mapping[str, int]
    warnings: tuple[Problem, ...]
    problems: tuple[Problem, ...]


@click.command(epilog=EPILOG)
@files_option(required=True)
@output_option("table", "json", *CHECK_FORMATS, text="A table, JSON, or what CI systems read: SARIF 2.1.0 or JUnit.")
@click.option("--strict", is_flag=True, help="Treat warnings as problems, and end with exit status 2.")
@CATALOG
@click.pass_context
def validate(
    context: click.Context, files: tuple[str, ...], output: str, catalog_source: str | None, *, strict: bool
) -> None:
    """Read manifests, count them by kind, and list every object that breaks a rule.

    Other commands refuse input that cannot be read. This one also finds what only a controller would refuse: a
    NodeClaim whose NodePool does not exist, a pod on a node that does not exist, a schedule that never comes.
    """
    with progress() as report:
        loaded = read(files, stdin=sys.stdin.buffer, progress=report)
        report("Checking", 0, None)
        validation = Validation(
            loaded.kinds, loaded.skipped, warnings_about(loaded, catalog_source), problems_of(loaded)
        )
    if strict:
        problems = (*validation.problems, *validation.warnings)
        validation = replace(validation, problems=problems, warnings=())
    if validation.problems:
        say(str(validation.problems[0]), BAD_INPUT)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(validation), indent=2))
    elif output in CHECK_FORMATS:
        from karpool.report.checks.check_results import validation_results

        print_checks(validation_results(validation.problems, validation.warnings), output)
    else:
        show(validation, sys.stdout)
    context.exit(BAD_INPUT if validation.problems else 0)


def warnings_about(loaded: Loaded, catalog_source: str | None = None) -> tuple[Problem, ...]:
    return (
        *loaded.warnings,
        *_slips_of_pools(loaded),
        *_stray_settings(loaded),
        *_lint(loaded, catalog_source),
        *_ignored_protection(loaded),
        *_ignored_costs(loaded),
        *_missing_kinds(loaded),
    )


def problems_of(loaded: Loaded) -> tuple[Problem, ...]:
    """Everything that is wrong, also what Karpool itself wrote and cannot read any more."""
    return (*find_problems(loaded), *_unreadable_notes(loaded))


def _unreadable_notes(loaded: Loaded) -> Iterator[Problem]:
    """Annotations in which Karpool keeps what it did: decisions about their pool stop where they cannot be read."""
    from karpool.disruption.brakes.failures import failed_command
    from karpool.disruption.brakes.harm import harm_of
    from karpool.disruption.brakes.launch_failures import failed_launch
    from karpool.disruption.brakes.ledger import ledger_of

    objects = loaded.all_objects
    pools = product(("NodePool",), objects.node_pools, (ledger_of, harm_of))
    claims = product(("NodeClaim",), objects.node_claims, (failed_command, failed_launch))
    notes: Iterable[tuple[str, Any, Callable[[Any], object]]] = chain(pools, claims)
    for kind, entry, read_note in notes:
        try:
            read_note(entry)
        except AnnotationError as error:
            for flaw in error.flaws:
                yield loaded.problem(flaw, kind, entry.key)


def _stray_settings(loaded: Loaded) -> Iterator[Problem]:
    from karpool.execution.stray_annotations import stray_settings

    for kind, key, flaw in stray_settings(loaded.all_objects):
        yield loaded.problem(flaw, kind, key)


def _slips_of_pools(loaded: Loaded) -> Iterator[Problem]:
    for pool in loaded.all_objects.node_pools:
        for flaw in (*pause_flaws(pool), *long_name_flaws(pool)):
            yield loaded.problem(flaw, "NodePool", pool.key)


def _ignored_protection(loaded: Loaded) -> Iterator[Problem]:
    for pod in loaded.all_objects.pods:
        if (reason := ignored_protection(pod)) is not None:
            flaw = Flaw(annotation_path(DO_NOT_DISRUPT), str(reason.code), reason.message)
            yield loaded.problem(flaw, "Pod", pod.key, reason.object)


def _ignored_costs(loaded: Loaded) -> Iterator[Problem]:
    for pod in loaded.all_objects.pods:
        annotation = unreadable_cost(pod)
        if annotation is not None:
            value = one_line(pod.metadata.annotations[annotation][:_LONGEST_VALUE])
            flaw = Flaw(annotation_path(annotation), "CostIgnored", f"{value!r} is no 32-bit number, so it counts as 0")
            yield loaded.problem(flaw, "Pod", pod.key)


def _missing_kinds(loaded: Loaded) -> Iterator[Problem]:
    """What the snapshot of a cluster lacks, as `plan` says it; manifests without nodes are none."""
    from karpool.cluster.absences import NO_PODS, absence_notice, absences, lacks_pods

    objects = loaded.objects
    if not objects.nodes:
        return
    missing = list(absences(objects, loaded.listed))
    lacking = [NO_PODS] if lacks_pods(objects, loaded.listed) else []
    for text in (*lacking, *([absence_notice(missing)] if missing else [])):
        yield replace(loaded.problem(Flaw("", "MissingKind", text), "Node", objects.nodes[0].key), object="")


def _lint(loaded: Loaded, catalog_source: str | None) -> Iterator[Problem]:
    """What `lint` finds in manifests of pools alone, with the instance types and prices of a catalogue."""
    refused = {problem.object for problem in (*loaded.problems, *loaded.omissions)}
    pools = tuple(pool for pool in loaded.objects.node_pools if f"NodePool {pool.name}" not in refused)
    if not pools:
        return
    from karpool.disruption.settings import DisruptionSettings
    from karpool.lint.cluster import LintedCluster
    from karpool.lint.rules import findings

    objects = replace(loaded.objects, node_pools=pools)
    catalog = CatalogOpener(catalog_source).for_cluster(objects.nodes, objects.node_claims, pools)
    linted = LintedCluster(objects, catalog, datetime.now(UTC), DisruptionSettings())
    for rule, finding in findings(linted, manifests=True):
        flaw = Flaw(finding.field, rule.code.value, f"{finding.message}. {rule.why} {rule.action}")
        yield loaded.problem(flaw, finding.kind, finding.key, finding.object)


def show(validation: Validation, file: TextIO) -> None:
    from karpool.report.formatting import count
    from karpool.report.terminal import Screen, right

    screen = Screen(file)
    if validation.kinds:
        rows = [(kind, f"{number:,}") for kind, number in validation.kinds.items()]
        screen.table(["kind", right("objects")], rows)
    elif not validation.problems:
        screen.line("Nothing of what was read is needed.")
    if validation.skipped:
        listed = ", ".join(f"{number:,} {kind}" for kind, number in validation.skipped.items())
        screen.line(f"Skipped, not needed: {listed}")
    _show_problems(screen, "Warnings", validation.warnings)
    _show_problems(screen, "Problems", validation.problems)
    if not validation.problems:
        number = len(validation.warnings)
        more = f", {count(number, 'warning')}; --strict makes warnings problems" if number else ""
        screen.line(f"No problems{more}.")


def _show_problems(screen: "Screen", title: str, problems: tuple[Problem, ...]) -> None:
    if not problems:
        return
    screen.heading(f"{title}: {len(problems):,}")
    for problem in problems[:_MOST_SHOWN]:
        screen.line(f"  {problem}")
    if len(problems) > _MOST_SHOWN:
        screen.line(f"  … and {len(problems) - _MOST_SHOWN:,} more; --output json lists all")
