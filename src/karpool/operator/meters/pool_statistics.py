"""Samples of pools for metrics: size, cost, requests, and how many nodes may be disrupted now."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
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
from karpool.operator.pool_status import total_resources
from karpool.wire.objects import condition
from karpool.wire.quantity import NANO, Quantity


class PoolStatistics:
    """Computes samples; requests per node are kept and updated by the pods that changed."""

    def __init__(self, store: ClusterStore, nodes: PoolNodes, taint: str) -> None:
        """`taint` marks disrupted nodes, besides Karpenter's own taint."""
        self._store = store
        self._taints = frozenset({DISRUPTED_TAINT, taint})
        self._nodes = nodes
        self._pods: dict[int, Pod] = {}
        self._requested: dict[str, dict[str, int]] = {}

    def samples(self, catalog: Catalog, now: datetime, *, annotated_budgets: bool) -> list[PoolSample]:
        """All pools; at the end, under an empty name, the nodes without a pool."""
        pools = {pool.name: pool for pool in self._store.pools}
        nodes = self._nodes.by_pool()
        self._count_pods()
        samples = []
        for name, pool in pools.items():
            states = nodes.get(name, [])
            sample = self._sample(name, states, catalog, pool.spec.limits)
            permitted, busy = self._budgets(pool, states, now, annotated=annotated_budgets)
            samples.append(replace(sample, allowed=permitted, busy=busy))
        others = [state for name, states in nodes.items() if name not in pools for state in states]
        return [*samples, self._sample("", others, catalog, {})] if others else samples

    def _budgets(
        self, pool: NodePool, states: Iterable[StateNode], now: datetime, *, annotated: bool
    ) -> tuple[dict[str, float], dict[str, float]]:
        """By reason: how many more nodes may be disrupted (without a budget all that are left), how many count now."""
        managed = [state for state in states if _is_managed(state)]
        disrupted = sum(_is_disrupted(state, self._taints) for state in managed)
        busy = disrupted + sum(_is_unready(state) and not _is_disrupted(state, self._taints) for state in managed)

        # A node that is not ready is what repair is for.
        taken = {cause: disrupted if cause is Cause.UNHEALTHY else busy for cause in Cause}
        left = {
            cause: allowed(pool, cause, len(managed), count, now, annotated=annotated).remaining
            for cause, count in taken.items()
        }
        return (
            {cause.lower(): float(min(len(managed) - taken[cause], left[cause])) for cause in Cause},
            {cause.lower(): float(count) for cause, count in taken.items()},
        )

    def _count_pods(self) -> None:
        """Update the requests of each node, in billionths."""
        # Objects kept here keep their ids; a changed pod is another object.
        current = {id(pod): pod for pod in self._store.pods}
        gone = [self._pods[key] for key in self._pods.keys() - current.keys()]
        added = [current[key] for key in current.keys() - self._pods.keys()]
        for pods, sign in ((added, 1), (gone, -1)):
            for pod in pods:
                if pod.spec.node_name and not pod.terminal:
                    _add(self._requested.setdefault(pod.spec.node_name, {}), effective_requests(pod), sign)
        self._requested = {node: total for node, total in self._requested.items() if any(total.values())}
        self._pods = current

    def _sample(
        self,
        name: str,
        states: Sequence[StateNode],
        catalog: Catalog,
        limits: Mapping[str, Quantity],
    ) -> PoolSample:
        prices = [node_price(catalog, state.labels) for state in states]
        allocatable: Counter[tuple[str, str]] = Counter()
        requests: Counter[tuple[str, str]] = Counter()
        for state in states:
            managed = str(state.managed).lower()
            allocatable.update({(managed, name): amount.nano for name, amount in state.allocatable.items()})
            requests.update({(managed, name): nano for name, nano in self._requested.get(state.name, {}).items()})
        return PoolSample(
            name=name,
            nodes=len(states),
            cost=sum(price for price in prices if price is not None),
            unpriced=prices.count(None),
            limits={resource: amount.nano / NANO for resource, amount in limits.items()},
            usage={resource: amount.nano / NANO for resource, amount in total_resources(states).items()},
            allocatable={key: nano / NANO for key, nano in allocatable.items()},
            requested={key: nano / NANO for key, nano in requests.items()},
        )


def _add(total: dict[str, int], more: Mapping[str, Quantity], sign: int = 1) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + sign * amount.nano


def _is_managed(state: StateNode) -> bool:
    """Whether budgets count a node: it has a claim, is initialized or about to be again, and its instance exists."""
    up = state.initialized or state.rebooting
    return state.claim is not None and up and not state.claim.is_true(INSTANCE_TERMINATING)


def _is_disrupted(state: StateNode, taints: frozenset[str]) -> bool:
    """Whether a node uses up every budget, because it is being disrupted."""
    leaving = state.node is None or state.deleting or state.rebooting
    return leaving or (state.node is not None and any(taint.key in taints for taint in state.node.spec.taints))


def _is_unready(state: StateNode) -> bool:
    ready = condition(state.node.status.conditions, "Ready") if state.node is not None else None
    return ready is not None and ready.status != "True"
