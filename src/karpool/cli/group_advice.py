"""What a plan says of node groups beyond its steps: what the compactor would do, and what to have instead."""

from msgspec.structs import replace

from karpool.cli.inputs.cluster_source import LoadedCluster
from karpool.cli.options.decision_options import Choices
from karpool.cluster.node_groups import GroupOptions
from karpool.compaction.end_state import end_state
from karpool.compaction.pools import default_config, known_sizes
from karpool.compaction.settings import CompactionSettings
from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import Plan, context_of
from karpool.disruption.suggestions import suggestions
from karpool.model.objects import Objects
from karpool.report.groups.suggestion_parts import suggestions_part
from karpool.report.plans.document import PlanDocument


def with_group_advice(
    document: PlanDocument, cluster: LoadedCluster, choices: Choices, options: GroupOptions
) -> PlanDocument:
    """The document with what the compactor would drain, where there are groups."""
    if not document.groups:
        return document
    settings = CompactionSettings(pool_label=options.pool_label, sizes=options.sizes)
    sizes = known_sizes(cluster.objects, options.sizes, options.pool_label)
    config = default_config(cluster.objects, sizes, options.pool_label)
    end = end_state(cluster.objects, config, choices.now, settings)
    return replace(document, drains=tuple(drain.node for drain in end.drains))


def with_suggestions(document: PlanDocument, planned: Plan, cluster: LoadedCluster, choices: Choices) -> PlanDocument:
    """The document with what would hold the pods of groups for less."""

    def context(objects: Objects) -> DecisionContext:
        settings, options = cluster.settings, choices.options
        return context_of(objects, cluster.catalog, now=choices.now, settings=settings, options=options)

    prices = {outcome.candidate.name: outcome.candidate.price for outcome in planned.fates}
    after = {group.name: group.price_after for group in document.groups}
    found = suggestions(cluster.objects, cluster.catalog, prices, context)
    return replace(document, suggestions=suggestions_part(found, after))
