"""Which pods a ReplicaSet should lose first when it is scaled down: those of nodes that are to go, in their order.

Nodes that are leaving come first. Then come nodes that may be disrupted, the drifted ones before the others and the
most money for the disruption first, as many of each pool as its budgets let go. Pods of all other nodes get no cost.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from karpool.cluster.snapshot import Snapshot
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.command import Cause
from karpool.disruption.context import DecisionContext
from karpool.model.deletion_cost import cost_edit
from karpool.model.labels import DISRUPTED_TAINT, OWN_DELETION_COST
from karpool.model.pod import Pod

LEAVING: Final = -(2**31)
MOST_NODES: Final = 50
"""On how many nodes, apart from those that are leaving, pods are written at once."""
_LEAVES_WITH_NODE: Final = ("ReplicaSet", "Job", "DaemonSet", "Node")
_SYSTEM: Final = "kube-system"


@dataclass(frozen=True, slots=True)
class PodCost:
    """A pod, its node, and the deletion cost that it should have; None: none of Karpool's."""

    key: str
    uid: str
    node: str
    cost: int | None


@dataclass(frozen=True, slots=True)
class CostWrites:
    """What to write, and whether there is more for another time."""

    pods: tuple[PodCost, ...] = ()
    more: bool = False


def node_costs(context: DecisionContext) -> dict[str, int]:
    """By name of a node: the deletion cost of its pods, the leaving nodes first, then in the order of the costs."""
    leaving = [node for node in context.candidates(context.rows()) if _leaves(context, node)]
    gone = {node.row for node in leaving}
    changed, normal = [], []
    for node in _disruptable(context):
        drifted = context.drift(node) is not None
        if node.pool is None or node.row in gone:
            continue
        if drifted and not node.pool.static:
            changed.append(node)
        elif drifted or not node.pool.spec.disruption.consolidate_after.never:
            normal.append(node)
    ranked = [*_within_budgets(context, changed, Cause.DRIFTED), *_within_budgets(context, normal, Cause.UNDERUTILIZED)]
    costs = dict.fromkeys((node.name for node in leaving), LEAVING)
    return costs | {node.name: place - len(ranked) for place, node in enumerate(ranked)}


def cost_writes(snapshot: Snapshot, costs: Mapping[str, int]) -> CostWrites:
    """The pods whose deletion cost is not what it should be: of all nodes that are leaving, and of a few others."""
    leaving = [name for name, cost in costs.items() if cost == LEAVING]
    others = [*(name for name in costs if costs[name] != LEAVING), *sorted(snapshot.nodes.rows.keys() - costs.keys())]
    writes = [write for name in leaving for write in _writes(snapshot, name, LEAVING)]
    nodes = 0
    for name in others:
        found = list(_writes(snapshot, name, costs.get(name)))
        if found and nodes == MOST_NODES:
            return CostWrites(tuple(writes), more=True)
        nodes += bool(found)
        writes += found
    return CostWrites(tuple(writes))


def leftovers(snapshot: Snapshot) -> CostWrites:
    """The pods that have a deletion cost of Karpool, none of which should any more."""
    return cost_writes(snapshot, {})


def _writes(snapshot: Snapshot, node: str, cost: int | None) -> Iterator[PodCost]:
    row = snapshot.nodes.rows.get(node)
    for at in sorted(snapshot.pods_on(row)) if row is not None else ():
        pod = snapshot.pods.get(at)
        wanted = cost if _controller(pod) == "ReplicaSet" else None
        if wanted is None and OWN_DELETION_COST not in pod.metadata.annotations:
            continue
        if pod.active and not pod.unreadable and cost_edit(pod.metadata.annotations, wanted):
            yield PodCost(pod.key, pod.metadata.uid, node, wanted)


def _leaves(context: DecisionContext, node: Candidate) -> bool:
    state = node.state
    tainted = any(taint.key == DISRUPTED_TAINT for taint in state.taints)
    return state.managed and (state.deleting or tainted or node.name in context.policies.in_command)


def _disruptable(context: DecisionContext) -> list[Candidate]:
    """Nodes that no rule and no pod keeps, whose type can be had, and that are empty when ReplicaSets have shrunk."""
    nodes = context.candidates(context.eligible_rows())
    return [node for node in nodes if node.entry is not None and not _pinned(context, node)]


def _pinned(context: DecisionContext, node: Candidate) -> bool:
    """Whether a pod is on a node that no scale-down of a ReplicaSet and no end of a Job takes away."""
    pods = (context.snapshot.pods.get(row) for row in context.snapshot.pods_on(node.row))
    return any(
        pod.metadata.namespace != _SYSTEM and not pod.is_headroom and _controller(pod) not in _LEAVES_WITH_NODE
        for pod in pods
        if not context.expected(pod)
    )


def _controller(pod: Pod) -> str:
    return next((owner.kind for owner in pod.metadata.owner_references if owner.controller), "")


def _within_budgets(context: DecisionContext, nodes: Iterable[Candidate], cause: Cause) -> list[Candidate]:
    """The first nodes of each pool, as many as its budgets let go for a cause."""
    taken, kept = Counter[str](), []
    for node in sorted(nodes, key=attrgetter("by_ratio")):
        if node.pool is not None and taken[node.pool_name] < context.allowance(node.pool, cause).remaining:
            taken[node.pool_name] += 1
            kept.append(node)
    return kept
