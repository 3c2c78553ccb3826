"""`karpool plan`: what Karpool would do, step by step, what that saves, and why every other node stays."""

import sys
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource
from msgspec.structs import replace

from karpool.cli.completions import words_or_files
from karpool.cli.errors import FAILED, INTERRUPTED, say
from karpool.cli.fail_if import fail_if_option, judged, metrics_help
from karpool.cli.fleet import FleetWork, Member, members_of, plan_members
from karpool.cli.inputs.cluster_source import cluster_from, cluster_name
from karpool.cli.options.catalog_options import CatalogOpener, catalog_options
from karpool.cli.options.decision_options import Choices, decision_options
from karpool.cli.options.group_options import group_options
from karpool.cli.options.input_options import READS_LIVE, ClusterInput, cluster_options, output_option
from karpool.cli.options.option_types import GroupingOption, Whole
from karpool.cli.options.worker_options import Where, worker_options
from karpool.cli.progress import progress
from karpool.cluster.node_groups import GroupOptions
from karpool.report.plans.condition import Condition
from karpool.report.plans.document import Drawing, PlanDocument, to_json
from karpool.report.plans.plan_metrics import PLAN_METRICS, plan_values
from karpool.wire.problems import InputError

if TYPE_CHECKING:
    from karpool.report.costs.costs import Grouping

EPILOG: Final = f"""{READS_LIVE}
\b
WHAT IS PLANNED
  Nodes that are empty, have drifted, or whose pods have a cheaper place to be; in
  this order, within budgets, and never against a PodDisruptionBudget or an
  annotation, except where a drifted node has a terminationGracePeriod. Each step
  is planned on the cluster that the step before leaves. Prices come from the
  catalogue; amounts are what pods request, not what they use.
\b
EXAMPLES
  karpool plan
  karpool plan --context staging --steps 1
  karpool snapshot -o cluster.json.zst && karpool plan -f cluster.json.zst
  kubectl get nodes,pods,pdb,ds,pvc,pv,sc,csinodes,ns,nodepools,nodeclaims -A -o json > cluster.json
      # without Karpenter leave out nodepools,nodeclaims, which kubectl would refuse
  karpool plan -f cluster.json
  karpool plan -f cluster.json --steps 1 --output json
  karpool plan -f cluster.json --ignore-budgets --at 2026-11-15T22:00:00Z
  karpool plan -f cluster.json --effort 3 --eviction-price 0.01
  karpool plan -f cluster.json --output html > plan.html
  karpool plan --forecast                          # what if kube-scheduler chooses the places?
  karpool plan --by namespace --by label=team      # who pays, before and after?
  karpool plan -f cluster.json --fail-if 'savings>20%' -o markdown    # in a pipeline
  karpool plan --fleet snapshots/                  # what could all our clusters save?
  karpool plan --suggest-pools      # node groups: what would NodePools cost?
\b
WHAT --fail-if SPEAKS OF
{metrics_help(PLAN_METRICS)}
  with > >= < <= == !=, and, or, parentheses: 'savings>300$/month and evictions<50'.
  What is not known cannot be ruled out, and counts as if it held.
\b
EXIT STATUS
  0  planned, also when nothing is to be done
  1  the cluster does not answer, or does not let its pods and nodes be listed; of a
     fleet no cluster could be planned
  2  bad input; one line on standard error names file, object and field
  3  planned, and what --fail-if says holds; one line on standard error says why
"""


@click.command(epilog=EPILOG)
@cluster_options
@click.option(
    "--steps",
    metavar="N",
    type=Whole(min=0),
    help="Stop after N commands; 1 is what a controller would do next.",
)
@output_option(
    "table",
    "json",
    "html",
    "markdown",
    text="Tables for people, a document for programs, a page for a browser, or Markdown for a pull request.",
)
@fail_if_option(PLAN_METRICS, "savings>20% or pending>0")
@click.option(
    "--bound/--no-bound",
    default=True,
    show_default=True,
    help="Prove what no plan can go below, which takes a second for 1,000 nodes.",
)
@click.option("--all", "every_node", is_flag=True, help="List every node in the table, not only counts by reason.")
@click.option(
    "--suggest-pools",
    is_flag=True,
    help="Say which NodePools, or groups of other machines, would hold the pods of node groups for less.",
)
@click.option(
    "--forecast",
    is_flag=True,
    help="Say what comes of the plan once kube-scheduler chooses the places of pods: price, evictions and launches. The"
    " plan is carried out on a virtual cluster.",
)
@click.option(
    "--by",
    "groupings",
    metavar="WHAT",
    type=GroupingOption(),
    multiple=True,
    help="Say who pays, before and after: by `namespace`, `workload`, or `label=KEY` (of pods, or their namespace)."
    " May be repeated.",
)
@click.option(
    "--fleet",
    metavar="WHERE",
    shell_complete=words_or_files(["contexts"]),
    help="Plan many clusters side by side: a directory of snapshots or of folders with cluster.json and catalog.json,"
    " `contexts` for all of the kubeconfig, a snapshot alone, or a file with a line for each.",
)
@worker_options
@catalog_options
@group_options
@decision_options
@click.pass_context
def plan(
    context: click.Context,
    /,
    *,
    source: ClusterInput,
    steps: int | None,
    output: str,
    fail_if: tuple[str, Condition] | None,
    bound: bool,
    every_node: bool,
    suggest_pools: bool,
    forecast: bool,
    groupings: "tuple[Grouping, ...]",
    fleet: str | None,
    where: Where,
    catalog_opener: CatalogOpener,
    groups: GroupOptions,
    choices: Choices,
) -> None:
    """Show which nodes would go, what would replace them, where every pod would move, and what that saves.

    For every node that stays, say why. Nothing is changed anywhere.
    """
    if fleet is not None:
        _refuse_beside_fleet(context, output)
        work = FleetWork(catalog_opener, groups, choices, steps, bound=bound)
        context.exit(_plan_fleet(members_of(fleet, source.kube, where), where, work, output))
    with progress() as report:
        cluster = cluster_from(source, catalog_opener, choices, report, groups)
        from karpool.cli.group_advice import with_group_advice, with_suggestions
        from karpool.disruption.plan import Planner
        from karpool.report.costs.costs import CostTally
        from karpool.report.plans.assemble import draw, plan_document
        from karpool.report.plans.pool_sizes import pool_size_parts

        decided = cluster.context(choices)
        tallies = [CostTally(decided, grouping) for grouping in groupings]
        before = draw(decided) if output == "html" else ()
        planner = Planner(decided, report, afresh=lambda: cluster.context(choices))
        planned = planner.plan(steps, bound=bound)
        report("Writing the plan", 0, None)
        written = plan_document(planned, cluster.warnings, cluster.catalog)
        sizes = pool_size_parts(planned, cluster.objects, cluster.catalog, cluster.settings, decided.snapshot.daemons)
        document = with_group_advice(replace(written, pool_sizes=sizes), cluster, choices, groups)
        if suggest_pools:
            report("Looking for pools that cost less", 0, None)
            document = with_suggestions(document, planned, cluster, choices)
        if forecast:
            from karpool.cli.forecast import with_forecast

            document = with_forecast(document, planned, cluster, choices, report)
        costs = tuple(tally.compare(CostTally(planner.context, tally.grouping)) for tally in tallies)
        document = replace(document, costs=costs)
        drawing = Drawing(before=before, after=())
        if output == "html":
            drawing = Drawing(before=before, after=draw(planner.context), cluster=cluster_name(source))
    _print(document, output, drawing, every_node=every_node)
    context.exit(judged(fail_if, plan_values(document)))


def _plan_fleet(members: list[Member], where: Where, work: FleetWork, output: str) -> int:
    """Plan many clusters; Ctrl-C ends the workers, and what is done is printed."""
    from karpool.report.fleet_document import fleet_document
    from karpool.report.fleet_document import to_json as fleet_json
    from karpool.report.formatting import count

    with progress() as report:
        rows, complete = plan_members(members, where, work, report)
    document = fleet_document(rows, work.choices.now, complete=complete)
    if output == "json":
        click.echo(fleet_json(document))
    else:
        from karpool.report.fleet_table import print_fleet
        from karpool.report.terminal import Screen

        print_fleet(document, Screen(sys.stdout))
    if not complete:
        return say(f"interrupted after {len(rows)} of {len(members)} clusters", INTERRUPTED)
    if not document.planned:
        return say(f"none of {count(document.failed, 'cluster')} could be planned; the rows say why", FAILED)
    return 0


def _refuse_beside_fleet(context: click.Context, output: str) -> None:
    """Options that are about one cluster."""
    names = {"files": "-f", "fail_if": "--fail-if", "groupings": "--by", "suggest_pools": "--suggest-pools"}
    for name, option in {**names, "forecast": "--forecast", "every_node": "--all"}.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError.at(option, "is of one cluster, and --fleet names many; leave one of them out")
    if output not in ("table", "json"):
        raise InputError.at("--output", f"{output} is of one cluster; --fleet has table and json")


def _print(document: PlanDocument, output: str, drawing: Drawing, *, every_node: bool) -> None:
    if output == "json":
        click.echo(to_json(document))
    elif output == "html":
        from karpool.report.plans.plan_page import plan_page

        click.echo(plan_page(document, drawing))
    elif output == "markdown":
        from karpool.report.plans.plan_markdown import plan_markdown

        click.echo(plan_markdown(document))
    else:
        from karpool.report.plans.plan_table import print_plan
        from karpool.report.terminal import Screen

        print_plan(document, Screen(sys.stdout), every_node=every_node)
