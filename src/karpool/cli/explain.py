"""`karpool explain`: everything about one node, or about one pod."""

import sys
from typing import TYPE_CHECKING, Final

import click

from karpool.cli.errors import refuse_files, unknown_node_or_pod
from karpool.cli.inputs.cluster_source import LoadedCluster, cluster_from
from karpool.cli.options.catalog_options import CatalogOpener, catalog_options
from karpool.cli.options.decision_options import Choices, decision_options
from karpool.cli.options.group_options import group_options
from karpool.cli.options.input_options import READS_LIVE, ClusterInput, cluster_options, output_option
from karpool.cli.progress import ReportProgress, progress
from karpool.cluster.node_groups import GroupOptions
from karpool.report.plans.document import ExplanationDocument, to_json
from karpool.wire.problems import InputError

if TYPE_CHECKING:
    from karpool.disruption.candidates.candidate import Candidate
    from karpool.disruption.context import DecisionContext
    from karpool.report.plans.pod_document import PodDocument

EPILOG: Final = f"""{READS_LIVE}
\b
EXAMPLES
  karpool explain ip-10-0-0-7
  karpool explain ip-10-0-0-7 -f cluster.json
  karpool explain ip-10-0-0-7 -f cluster.json --output json
  karpool explain ip-10-0-0-7 -f cluster.json --at 2026-11-15T22:00:00Z
  karpool explain shop/cart-0 -f cluster.json
\b
EXIT STATUS
  0  explained
  1  the cluster does not answer, or does not let its pods and nodes be listed
  2  bad input, or no such node or pod; one line on standard error
"""


@click.command(epilog=EPILOG)
@click.argument("name", metavar="NODE|[NAMESPACE/]POD")
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
    name: str,
    source: ClusterInput,
    output: str,
    with_plan: bool,
    catalog_opener: CatalogOpener,
    groups: GroupOptions,
    choices: Choices,
) -> None:
    """Show what becomes of a node: in a plan, and alone in the cluster of today. Or show why a pod is where it is.

    For today, show its price and use, every rule that keeps it or lets it go, and where each of its pods would land.
    If something keeps it, show what would have to be otherwise, and what that would save.

    Of a pod, show why it is on its node or waits, where it would go if it were placed now, and why not elsewhere.
    """
    if not source.files:
        refuse_files("NODE", [name], "node", pods=True)
    with progress() as report:
        cluster = cluster_from(source, catalog_opener, choices, report, groups)
        context = cluster.context(choices)
        rows = context.snapshot.nodes.rows
        document = (
            _of_node(context.candidate(rows[name]), context, cluster, choices, report, with_plan=with_plan)
            if name in rows
            else _of_pod(name, context)
        )
    if output == "json":
        click.echo(to_json(document))
        return
    from karpool.report.terminal import Screen

    if isinstance(document, ExplanationDocument):
        from karpool.report.plans.explain_table import print_explanation

        print_explanation(document, Screen(sys.stdout))
    else:
        from karpool.report.plans.pod_table import print_pod

        print_pod(document, Screen(sys.stdout))


def _of_node(
    candidate: "Candidate",
    context: "DecisionContext",
    cluster: LoadedCluster,
    choices: Choices,
    report: ReportProgress,
    *,
    with_plan: bool,
) -> ExplanationDocument:
    from karpool.disruption.decision_pass import DecisionPass
    from karpool.disruption.explain import explain_node
    from karpool.disruption.plan import Planner
    from karpool.report.plans.assemble import explanation

    planner = Planner(cluster.context(choices), report, afresh=lambda: cluster.context(choices))
    plan = planner.plan() if with_plan else None
    report("Asking what becomes of the node alone", 0, None)
    return explanation(context, explain_node(DecisionPass(context), candidate), plan)


def _of_pod(name: str, context: "DecisionContext") -> "PodDocument":
    """A pod by its namespace and name, or by its name alone if no other pod has it."""
    from karpool.report.plans.pod_document import pod_document

    pods = context.snapshot.pods.rows
    meant = [key for key in pods if key == name or key.partition("/")[2] == name]
    if len(meant) > 1:
        namespaces = ", ".join(sorted(key.partition("/")[0] for key in meant))
        raise InputError.at("NODE", f"pods {name!r} are in several namespaces, {namespaces}; write NAMESPACE/POD")
    document = pod_document(context, meant[0]) if meant else None
    if document is None:
        raise unknown_node_or_pod("NODE", name, context.snapshot.nodes.rows, pods)
    return document
