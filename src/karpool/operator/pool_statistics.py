"""Pools in numbers, for metrics: size, cost, use, and how much of it may be disrupted now."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from karpool.catalog.instance_types import Catalog
from karpool.catalog.pricing import node_price
from karpool.cluster.nodes import StateNode
from karpool.controller.store import ClusterStore
from karpool.disruption.budgets import allowed
from karpool.disruption.command import Cause
from karpool.execution.conditions import INSTANCE_TERMINATING
from karpool.model.labels import DISRUPTED_TAINT
from karpool.model.nodepool import NodePool
from karpool.model.pod import Pod
from karpool.model.requests import effective_requests
from karpool.observability.metrics import PoolSample
from karpool.operator.pool_nodes import PoolNodes
from karpool.operator.pool_status import counted
from karpool.wire.objects import condition
from karpool.wire.quantity import NANO, Quantity

Amounts = Mapping[str, Quantity]


class PoolStatistics:
    """Counts pools; between two counts few pods change, so sums are kept and only these looked at."""

    def __init__(self, store: ClusterStore, taint: str = DISRUPTED_TAINT) -> None:
        """`taint` is on nodes that are to go, beside the one that everybody uses for it."""
        self._store = store
        self._taints = frozenset({DISRUPTED_TAINT, taint})
        self._machines = PoolNodes(store)
        self._pods: dict[int, Pod] = {}
        self._requested: dict[str, dict[str, int]] = {}

    def figures(self, catalog: Catalog, now: datetime, *, annotated_budgets: bool = False) -> list[PoolSample]:
        """All pools; at the end, under an empty name, the nodes that no pool has."""
        pools = {pool.name: pool for pool in self._store.pools}
        machines = self._machines.by_pool()
        self._count_pods()
        found = []
        for name, pool in pools.items():
            states = machines.get(name, [])
            permitted = self._permitted(pool, states, now, annotated=annotated_budgets)
            found.append(_figures(name, pool.spec.limits, states, self._requested, catalog, permitted))
        others = [state for name, states in machines.items() if name not in pools for state in states]
        return [*found, _figures("", {}, others, self._requested, catalog, {})] if others else found

    def _permitted(
        self, pool: NodePool, states: Iterable[StateNode], now: datetime, *, annotated: bool
    ) -> dict[str, float]:
        """How many more nodes may go by cause; where no budget limits that, all that are left."""
        counting = [state for state in states if _counts(state)]
        busy = sum(_is_busy(state, self._taints) for state in counting)
        free = len(counting) - busy
        return {
            str(cause): float(min(free, allowed(pool, cause, len(counting), busy, now, annotated=annotated).remaining))
            for cause in Cause
        }

    def _count_pods(self) -> None:
        """Bring up to date what pods request of each node, in billionths."""
        # An object that is held here keeps its id; another state of a pod is another object.
        current = {id(pod): pod for pod in self._store.pods}
        gone = [self._pods[key] for key in self._pods.keys() - current.keys()]
        come = [current[key] for key in current.keys() - self._pods.keys()]
        for pods, sign in ((come, 1), (gone, -1)):
            for pod in pods:
                if pod.spec.node_name and not pod.terminal:
                    _add(self._requested.setdefault(pod.spec.node_name, {}), effective_requests(pod), sign)
        self._requested = {node: total for node, total in self._requested.items() if any(total.values())}
        self._pods = current


def _figures(  # noqa: PLR0917
    name: str,
    limits: Amounts,
    states: Sequence[StateNode],
    requested: Mapping[str, Mapping[str, int]],
    catalog: Catalog,
    permitted: Mapping[str, float],
) -> PoolSample:
    prices = [node_price(catalog, state.labels) for state in states]
    allocatable: dict[str, int] = {}
    taken: dict[str, int] = {}
    for state in states:
        _add(allocatable, state.allocatable)
        for resource, nano in requested.get(state.name, {}).items():
            taken[resource] = taken.get(resource, 0) + nano
    return PoolSample(
        name=name,
        nodes=len(states),
        cost=sum(price for price in prices if price is not None),
        unpriced=prices.count(None),
        limits={resource: amount.nano / NANO for resource, amount in limits.items()},
        usage={resource: amount.nano / NANO for resource, amount in counted(states).items()},
        allocatable={resource: nano / NANO for resource, nano in allocatable.items()},
        requested={resource: nano / NANO for resource, nano in taken.items()},
        allowed=permitted,
    )


def _add(total: dict[str, int], more: Amounts, sign: int = 1) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + sign * amount.nano


def _counts(state: StateNode) -> bool:
    """Whether budgets count a node: it is fully up, ours, and its machine is still there."""
    return state.claim is not None and state.initialized and not state.claim.is_true(INSTANCE_TERMINATING)


def _is_busy(state: StateNode, taints: frozenset[str]) -> bool:
    """Whether a node is on its way out or not ready, so that it uses up a budget."""
    if state.node is None or state.deleting or any(taint.key in taints for taint in state.node.spec.taints):
        return True
    said = condition(state.node.status.conditions, "Ready")
    return said is not None and said.status != "True"
