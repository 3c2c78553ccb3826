"""`karpool blockers`: what keeps the most money where it is, and what lifting it is worth."""

import sys
from typing import TYPE_CHECKING, Final

import click

from karpool.cli.inputs.cluster_source import cluster_from
from karpool.cli.options.catalog_options import CatalogOpener, catalog_options
from karpool.cli.options.decision_options import Choices, decision_options
from karpool.cli.options.group_options import group_options
from karpool.cli.options.input_options import READS_LIVE, ClusterInput, cluster_options, output_option
from karpool.cli.options.option_types import GroupingOption, Whole
from karpool.cli.progress import progress
from karpool.cluster.node_groups import GroupOptions
from karpool.wire.problems import InputError

if TYPE_CHECKING:
    from karpool.report.costs.costs import Grouping

EPILOG: Final = f"""{READS_LIVE}
\b
WHAT IS COMPUTED
  Today's plan is followed to its end. For each pod marked do-not-disrupt (by its
  workload), PodDisruptionBudget, budget, window and other rule that holds nodes
  there, the engine plans again as if that alone were lifted. Those that can be
  worth most come first; of the rest it is said what they are worth at most.
  Without --search and --effort a quick search is used, and the output names it.
  Above 500 nodes most are looked for in haste only, and are worth at least what
  that finds; --refine says for how many the search is a longer one.
\b
EXAMPLES
  karpool blockers
  karpool blockers -f cluster.json --by namespace
  karpool blockers -f cluster.json --by label=team --output csv > blockers.csv
  karpool blockers -f cluster.json --top 100 --refine 30 --all
  karpool blockers --output json | jq '.blockers[0]'
\b
EXIT STATUS
  0  computed, also when nothing blocks
  1  the cluster does not answer, or does not let its pods and nodes be listed
  2  bad input; one line on standard error names file, object and field
"""


@click.command(epilog=EPILOG)
@cluster_options
@output_option("table", "json", "csv", text="A table for people, a document for programs, or lines for a spreadsheet.")
@click.option("--top", metavar="N", type=Whole(0, 10_000), default=20, help="Compute so many blockers.")
@click.option(
    "--refine",
    "refined",
    metavar="N",
    type=Whole(0, 10_000),
    default=20,
    help="Above 500 nodes: look longer for so many of them.",
)
@click.option(
    "--by",
    "grouping",
    metavar="WHAT",
    type=GroupingOption(),
    help="Lift all blockers of an owner together: of a `namespace`, a `workload`, or a `label=KEY` such as a team.",
)
@click.option("--all", "everything", is_flag=True, help="List every blocker in the table, also those worth nothing.")
@catalog_options
@group_options
@decision_options
def blockers(
    *,
    source: ClusterInput,
    output: str,
    top: int,
    refined: int,
    grouping: "Grouping | None",
    everything: bool,
    catalog_opener: CatalogOpener,
    groups: GroupOptions,
    choices: Choices,
) -> None:
    """Show what keeps the most money where it is, and what lifting it alone would save.

    Nothing is changed anywhere.
    """
    if _chosen("search", "effort") and _chosen("refined"):
        raise InputError.at("--refine", "is of the quick look; --search and --effort look as long for every blocker")
    with progress() as report:
        cluster = cluster_from(source, catalog_opener, choices, report, groups)
        from karpool.disruption.what_if.answer import WhatIf, plan_and_walk
        from karpool.disruption.what_if.blockers import Blocker, blockers_of
        from karpool.disruption.what_if.question import Question
        from karpool.disruption.what_if.quick import SOON
        from karpool.report.plans.document import to_json
        from karpool.report.what_if.what_if_document import blockers_document, owner_of

        question = Question(cluster.objects, cluster.catalog, cluster.settings, choices.options, choices.now)
        if _chosen("search", "effort"):
            what_if = longer = WhatIf(question, global_up_to=None, progress=report)
        else:
            today = plan_and_walk(question, report)
            longer = WhatIf(question, global_up_to=len(cluster.objects.nodes), thorough=True, planned=today)
            what_if = WhatIf(question, global_up_to=SOON, planned=today)
        namespaces = {entry.name: entry for entry in cluster.objects.namespaces}

        def owner(blocker: Blocker) -> str:
            return "" if grouping is None else owner_of(blocker, grouping, namespaces)

        found = blockers_of(what_if, top, owner=owner, longer=longer, refined=refined, progress=report)
        document = blockers_document(what_if, found, grouping, cluster.warnings)
    if output == "json":
        click.echo(to_json(document))
        return
    from karpool.report.terminal import Screen
    from karpool.report.what_if.blockers_table import blockers_csv, print_blockers

    if output == "csv":
        click.echo(blockers_csv(document), nl=False)
    else:
        print_blockers(document, Screen(sys.stdout), everything=everything)


def _chosen(*options: str) -> bool:
    """Whether the user has chosen one of these options, in whatever way."""
    context = click.get_current_context()
    default = (click.core.ParameterSource.DEFAULT, click.core.ParameterSource.DEFAULT_MAP)
    return any(context.get_parameter_source(name) not in default for name in options)
