"""What a plan makes of each node group, and who manages each node."""

from collections import Counter
from collections.abc import Iterable

from karpool.cluster.nodes import StateNode
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.plan import NodeOutcome, Plan
from karpool.model.managers import ManagerKind, manager_of
from karpool.model.node_group import NodeGroup
from karpool.report.plans.document import NodeGroupPart


def managed_by(state: StateNode) -> str:
    """Who manages a node, in the word of documents."""
    if state.group:
        return ManagerKind.NODE_GROUP.value
    if state.managed or state.node is None:
        return ManagerKind.NODE_POOL.value
    return manager_of(state.node, claimed=False).kind.value


def group_parts(plan: Plan) -> tuple[NodeGroupPart, ...]:
    """The node groups of today, by name, with what becomes of them."""
    members: dict[str, list[NodeOutcome]] = {}
    groups: dict[str, NodeGroup] = {}
    for outcome in plan.fates:
        pool = outcome.candidate.pool
        if isinstance(pool, NodeGroup):
            groups[pool.name] = pool
            members.setdefault(pool.name, []).append(outcome)
    added = _added(plan)
    return tuple(_part(group, members[name], added.get(name, [])) for name, group in sorted(groups.items()))


def _added(plan: Plan) -> dict[str, list[float | None]]:
    """The prices of new nodes that are still there after the last step, by pool."""
    gone = Counter(name for step in plan.steps for name in step.command.nodes)
    added: dict[str, list[float | None]] = {}
    for step in plan.steps:
        for name, new in zip(step.replacement_names, step.command.new_nodes, strict=True):
            if name not in gone:
                added.setdefault(new.pool, []).append(new.price)
    return added


def _part(group: NodeGroup, members: list[NodeOutcome], added: list[float | None]) -> NodeGroupPart:
    leaving = sorted(
        (outcome.step.number, outcome.step.command.nodes.index(outcome.candidate.name), outcome.candidate.name)
        for outcome in members
        if outcome.step is not None
    )
    staying = [outcome.candidate for outcome in members if outcome.step is None]
    return NodeGroupPart(
        name=group.name,
        title=group.title,
        label=group.label,
        instance_types=group.instance_types,
        zones=group.zones,
        capacity_types=group.capacity_types,
        minimum=group.minimum,
        maximum=group.maximum,
        sizes_from=group.sizes_from,
        before=len(members),
        after=len(staying) + len(added),
        price_before=_sum(_prices(outcome.candidate for outcome in members)),
        price_after=_sum([*_prices(staying), *added]),
        removed=tuple(name for _, _, name in leaving),
        added=len(added),
    )


def _prices(nodes: Iterable[Candidate]) -> list[float | None]:
    return [node.price for node in nodes]


def _sum(prices: list[float | None]) -> float | None:
    """What all cost together; unknown as soon as one of them is."""
    known = [price for price in prices if price is not None]
    return sum(known) if len(known) == len(prices) else None
