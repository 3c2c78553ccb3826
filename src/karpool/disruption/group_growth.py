"""Whether a node group would grow for a pod that waits, as its autoscaler would have it."""

from karpool.disruption.context import DecisionContext
from karpool.model.node_group import NodeGroup
from karpool.packing.pool_refusals import group_refusals
from karpool.packing.refusal_messages import RefusalRule
from karpool.packing.refusals import essential_levels


def growth_words(context: DecisionContext, row: int) -> str:
    """What groups would do for a pod of the last run; empty where there are none, or NodePools beside them."""
    pools = context.pools.values()
    if not pools or not all(isinstance(pool, NodeGroup) for pool in pools):
        return ""
    pods = context.snapshot.pods
    levels = essential_levels(context.engine, int(pods.class_of[row]))
    refused = group_refusals(context.engine, levels, int(pods.labels_of[row]))
    holding = [group for group, rule in refused if rule is None]
    if not refused:
        return ""
    if not holding:
        larger = all(rule is RefusalRule.NOT_ENOUGH for _, rule in refused)
        return "it is larger than a node of any group" if larger else "no group has nodes that could take it"
    return _of_holding(sorted(holding, key=lambda group: group.name))


def _of_holding(groups: list[NodeGroup]) -> str:
    """What groups do whose nodes would hold a pod: the first that grows for sure, else the first that may."""
    for group in groups:
        if not group.fixed and group.maximum is not None and group.size < group.maximum:
            return f"{group.subject} would grow for it"
    for group in groups:
        if group.maximum is None:
            return f"{group.subject} could grow for it, its maximum is unknown"
    first = groups[0]
    if first.maximum is not None and first.size >= first.maximum:
        return f"{first.subject} has its maximum of {first.maximum:,} nodes"
    return f"{first.subject} {first.fixed}"
