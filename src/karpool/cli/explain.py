"""`karpool explain`: everything about one node."""

import sys
from typing import Final

import click

from karpool.cli.cluster_source import cluster_from
from karpool.cli.errors import refuse_files, unknown_node
from karpool.cli.options.catalog_options import CatalogOpener, catalog_options
from karpool.cli.options.decision_options import Choices, decision_options
from karpool.cli.options.group_options import group_options
from karpool.cli.options.input_options import READS_LIVE, ClusterInput, cluster_options, output_option
from karpool.cli.progress import progress
from karpool.cluster.node_groups import GroupOptions
from karpool.report.plans.document import to_json

EPILOG: Final = f"""{READS_LIVE}
\b
EXAMPLES
  karpool explain ip-10-0-0-7
  karpool explain ip-10-0-0-7 -f cluster.json
  karpool explain ip-10-0-0-7 -f cluster.json --output json
  karpool explain ip-10-0-0-7 -f cluster.json --at 2026-11-15T22:00:00Z
\b
EXIT STATUS
  0  explained
  1  the cluster does not answer, or does not let its pods and nodes be listed
  2  bad input, or no such node; one line on standard error
"""


@click.command(epilog=EPILOG)
@click.argument("node", metavar="NODE")
@cluster_options
@output_option("table", "json")
@click.option(
    "--plan/--no-plan",
    "with_plan",
    default=True,
    show_default=True,
    help="Say what a whole plan does with the node, which takes as long as `karpool plan`.",
)
@catalog_options
@group_options
@decision_options
def explain(
    *,
    node: str,
    source: ClusterInput,
    output: str,
    with_plan: bool,
    catalog_opener: CatalogOpener,
    groups: GroupOptions,
    choices: Choices,
) -> None:
    """Show what becomes of a node: in a plan, and alone in the cluster of today.

    For today, show its price and use, every rule that keeps it or lets it go, and where each of its pods would land.
    If something keeps it, show what would have to be otherwise, and what that would save.
    """
    if not source.files:
        refuse_files("NODE", [node], "node")
    with progress() as report:
        cluster = cluster_from(source, catalog_opener, choices, report, groups)
        from karpool.disruption.decision_pass import DecisionPass
        from karpool.disruption.explain import explain_node
        from karpool.disruption.plan import Planner
        from karpool.report.plans.assemble import explanation

        context = cluster.context(choices)
        rows = context.snapshot.nodes.rows
        if node not in rows:
            raise unknown_node("NODE", node, rows, cluster.objects.pods)
        planner = Planner(cluster.context(choices), report, afresh=lambda: cluster.context(choices))
        plan = planner.plan() if with_plan else None
        report("Asking what becomes of the node alone", 0, None)
        candidate = context.candidate(rows[node])
        document = explanation(context, explain_node(DecisionPass(context), candidate), plan)
    if output == "json":
        click.echo(to_json(document))
    else:
        from karpool.report.plans.explain_table import print_explanation
        from karpool.report.terminal import Screen

        print_explanation(document, Screen(sys.stdout))
