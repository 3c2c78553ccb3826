"""`karpool lint`: what experienced people would warn about, and what it costs."""

import sys
from typing import Final

import click
from msgspec.structs import replace

from karpool.cli.check_output import CHECK_FORMATS, print_checks
from karpool.cli.errors import CONDITION_MET
from karpool.cli.inputs.cluster_source import LoadedCluster, cluster_from
from karpool.cli.options.catalog_options import CatalogOpener, catalog_options
from karpool.cli.options.decision_options import Choices, decision_options
from karpool.cli.options.group_options import group_options
from karpool.cli.options.input_options import READS_LIVE, ClusterInput, cluster_options, output_option
from karpool.cli.options.option_types import OneOf, Whole
from karpool.cli.progress import ReportProgress, progress
from karpool.cluster.node_groups import GroupOptions
from karpool.lint.cluster import LintedCluster
from karpool.lint.finding import Finding, Rule, Severity
from karpool.lint.rules import RULES, findings
from karpool.model.reading.loading import Origin
from karpool.report.checks.check_results import lint_results
from karpool.report.checks.lint_document import LintDocument, priced
from karpool.report.plans.document import to_json
from karpool.wire.problems import InputError

NEVER: Final = "never"
EPILOG: Final = f"""{READS_LIVE}
\b
WHAT IS FOUND
  Overlapping pools of equal weight, weights on expensive pools, spot pools of few
  types, requirements that no type meets, types that are not known, limits that are
  exceeded, budgets that never open or are too narrow, PodDisruptionBudgets that
  never allow anything, do-not-disrupt without an end, pods without requests, and
  one node per pod.
\b
WHAT IT COSTS
  The price of the fleet that is planned for the cluster as it is, less that of the
  fleet planned as if the finding were put right. `?` is not known.
\b
EXAMPLES
  karpool lint
  karpool lint -f cluster.json
  karpool lint -f nodepools/ --costs 0
  karpool lint -f cluster.json -o sarif > karpool.sarif
  karpool lint -f cluster.json --fail-on warning -o junit > karpool.xml
\b
EXIT STATUS
  0  nothing was found that --fail-on names
  1  the cluster does not answer, or does not let its pods and nodes be listed
  2  bad input; one line on standard error names file, object and field
  3  something was found that --fail-on names
"""


@click.command(epilog=EPILOG)
@cluster_options
@output_option("table", "json", *CHECK_FORMATS, text="A table, JSON, or what CI systems read: SARIF 2.1.0 or JUnit.")
@click.option(
    "--fail-on",
    type=OneOf([*(level.value for level in Severity), NEVER]),
    default=Severity.ERROR.value,
    help="End with exit status 3 if something of this severity, or worse, is found.",
)
@click.option(
    "--costs",
    metavar="N",
    type=Whole(min=0),
    default=20,
    help="Say what the first N findings cost, each with a plan of its own; 0 for none, which is quicker.",
)
@click.option("--all", "everything", is_flag=True, help="List every finding of each rule in the table.")
@catalog_options
@group_options
@decision_options
@click.pass_context
def lint(
    context: click.Context,
    /,
    *,
    source: ClusterInput,
    output: str,
    fail_on: str,
    costs: int,
    everything: bool,
    catalog_opener: CatalogOpener,
    groups: GroupOptions,
    choices: Choices,
) -> None:
    """Warn of what costs money or nerves, say why, what to do, and what it costs a month.

    It reads pools, nodes, pods and PodDisruptionBudgets, from files or live; manifests of NodePools alone are enough
    for the rules about pools.
    """
    with progress() as report:
        cluster = _read(source, catalog_opener, choices, report, groups)
        document = _document(cluster, choices, report, costs)
    if output == "json":
        click.echo(to_json(document))
    elif output in CHECK_FORMATS:
        print_checks(lint_results(document, _failing(fail_on), [rule.code.value for rule in RULES]), output)
    else:
        from karpool.report.checks.lint_table import print_lint
        from karpool.report.terminal import Screen

        print_lint(document, Screen(sys.stdout), everything=everything)
    failing = _failing(fail_on)
    context.exit(CONDITION_MET if any(part.severity in failing for part in document.findings) else 0)


def _read(
    source: ClusterInput, opener: CatalogOpener, choices: Choices, report: ReportProgress, groups: GroupOptions
) -> LoadedCluster:
    try:
        return cluster_from(source, opener, choices, report, groups, nodes_needed=False)
    except InputError as error:
        if not (source.files and error.problem.field and error.problem.file != opener.source):
            raise
        message = f"{error.problem.message}; karpool validate lists all that is wrong"
        raise InputError(replace(error.problem, message=message)) from None


def _document(cluster: LoadedCluster, choices: Choices, report: ReportProgress, most: int) -> LintDocument:
    linted = LintedCluster(cluster.objects, cluster.catalog, choices.now, cluster.settings)
    found = findings(linted)
    prices = _prices(linted, found, choices, report, most)

    def origin_of(finding: Finding) -> Origin | None:
        return None if cluster.loaded is None else cluster.loaded.origins.get((finding.kind, finding.key))

    return LintDocument(
        time=choices.now,
        rules=len(RULES),
        findings=priced(found, lambda finding: prices.get(id(finding)), origin_of),
        warnings=cluster.warnings,
    )


def _prices(
    linted: LintedCluster, found: list[tuple[Rule, Finding]], choices: Choices, report: ReportProgress, most: int
) -> dict[int, float | None]:
    """What findings cost, by their identity: those that a plan prices only up to a number of them."""
    from karpool.lint.costs import Costs

    costs = Costs(linted, choices.options)
    at_once = [finding for _, finding in found if finding.remedy is None]
    planned = [finding for _, finding in found if finding.remedy is not None][:most]
    prices = {id(finding): finding.per_hour for finding in at_once}
    for done, finding in enumerate(planned):
        report("Planning without each finding", done, len(planned))
        prices[id(finding)] = costs.per_hour(finding)
    return prices


def _failing(fail_on: str) -> frozenset[str]:
    """The severities on which the command fails."""
    if fail_on == NEVER:
        return frozenset()
    return frozenset(level.value for level in Severity if level.rank >= Severity(fail_on).rank)
