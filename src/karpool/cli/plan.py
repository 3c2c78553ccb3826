"""`karpool plan`: what Karpool would do, step by step, what that saves, and why every other node stays."""

import sys
from typing import Final

import click

from karpool.cli.catalog_options import CatalogOpener, catalog_options
from karpool.cli.cluster_source import cluster_from
from karpool.cli.decision_options import Choices, decision_options
from karpool.cli.group_options import group_options
from karpool.cli.input_options import READS_LIVE, ClusterInput, cluster_options, output_option
from karpool.cli.progress import progress
from karpool.cluster.node_groups import GroupOptions
from karpool.report.document import Drawing, PlanDocument, to_json

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
  karpool plan -f cluster.json
  karpool plan -f cluster.json --steps 1 --output json
  karpool plan -f cluster.json --ignore-budgets --at 2026-11-15T22:00:00Z
  karpool plan -f cluster.json --effort 3 --eviction-price 0.01
  karpool plan -f cluster.json --output html > plan.html
  karpool plan --suggest-pools      # node groups: what would NodePools cost?
\b
EXIT STATUS
  0  planned, also when nothing is to be done
  1  the cluster does not answer, or does not let its pods and nodes be listed
  2  bad input; one line on standard error names file, object and field
"""


@click.command(epilog=EPILOG)
@cluster_options
@click.option(
    "--steps",
    metavar="N",
    type=click.IntRange(min=0),
    help="Stop after N commands; 1 is what a controller would do next.",
)
@output_option("table", "json", "html", text="Tables for people, a document for programs, or a page for a browser.")
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
@catalog_options
@group_options
@decision_options
def plan(
    *,
    source: ClusterInput,
    steps: int | None,
    output: str,
    bound: bool,
    every_node: bool,
    suggest_pools: bool,
    catalog_opener: CatalogOpener,
    groups: GroupOptions,
    choices: Choices,
) -> None:
    """Show which nodes would go, what would replace them, where every pod would move, and what that saves.

    For every node that stays, say why. Nothing is changed anywhere.
    """
    with progress() as report:
        cluster = cluster_from(source, catalog_opener, choices, report, groups)
        from karpool.cli.group_advice import with_group_advice, with_suggestions
        from karpool.disruption.plan import Planner
        from karpool.report.assemble import draw, plan_document

        context = cluster.context(choices)
        before = draw(context) if output == "html" else ()
        planner = Planner(context, report, afresh=lambda: cluster.context(choices))
        planned = planner.plan(steps, bound=bound)
        written = plan_document(planned, cluster.warnings, cluster.catalog.origins)
        document = with_group_advice(written, cluster, choices, groups)
        if suggest_pools:
            document = with_suggestions(document, planned, cluster, choices)
        drawing = Drawing(before=before, after=draw(planner.context) if output == "html" else ())
    _print(document, output, drawing, every_node=every_node)


def _print(document: PlanDocument, output: str, drawing: Drawing, *, every_node: bool) -> None:
    if output == "json":
        click.echo(to_json(document))
    elif output == "html":
        from karpool.report.plan_page import plan_page

        click.echo(plan_page(document, drawing))
    else:
        from karpool.report.plan_table import print_plan
        from karpool.report.terminal import Screen

        print_plan(document, Screen(sys.stdout), every_node=every_node)
