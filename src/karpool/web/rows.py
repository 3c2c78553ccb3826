"""Nodes, pods and pools as rows of the console's documents: short, because there may be hundreds of thousands."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from karpool.catalog.instance_types import Catalog
from karpool.catalog.pricing import capacity_type_of, label_of, node_price
from karpool.cluster.nodes import StateNode
from karpool.model.labels import (
    BUDGETS,
    DISRUPTED_TAINT,
    DO_NOT_DISRUPT,
    HOSTNAME,
    INSTANCE_TYPE,
    NODEPOOL,
    PAUSED,
    ZONE,
)
from karpool.model.managers import ManagerKind, manager_of
from karpool.model.nodepool import Budget, NodePool
from karpool.model.owners import workload_of
from karpool.model.pod import Pod
from karpool.model.requests import effective_requests
from karpool.operator.providers.karpenter import TAINT
from karpool.wire.objects import condition
from karpool.wire.quantity import Quantity

Row = list[Any]
Labels = Mapping[str, str]

NODE_FIELDS: Final = (
    "id",
    "name",
    "pool",
    "type",
    "zone",
    "capacity",
    "price",
    "cpu",
    "memory",
    "status",
    "labels",
    "created",
)
POD_FIELDS: Final = ("id", "name", "node", "cpu", "memory", "workload", "labels", "flags")
DAEMON: Final = 1
UNDISTURBED: Final = 2
LEAVING: Final = 4
_MEBIBYTE: Final = 2**20
# Labels that every pod of a workload has another value of; without them, pods of a workload share their labels.
_OF_ONE_POD: Final = frozenset(
    {
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/controller-uid",
        "controller-uid",
        "controller-revision-hash",
        "pod-template-hash",
        "pod-template-generation",
    }
)
_DISRUPTED: Final = (TAINT, DISRUPTED_TAINT)


class Table:
    """Values that many rows share, each sent once under a number."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, key: Any, value: Any) -> int:
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self.values)
            self.values.append(value)
        return known

    def number_of_labels(self, labels: Labels) -> int:
        return self.number(frozenset(labels.items()), labels)


class Tables:
    """The tables of one cluster's documents."""

    def __init__(self) -> None:
        self.labels = Table()
        self.workloads = Table()

    def sizes(self) -> tuple[int, int]:
        return len(self.labels.values), len(self.workloads.values)

    def since(self, sizes: tuple[int, int]) -> dict[str, Any]:
        """What was added after the tables had these sizes, and where it begins."""
        labels, workloads = sizes
        return {
            "labels": [labels, self.labels.values[labels:]],
            "workloads": [workloads, self.workloads.values[workloads:]],
        }


def node_row(number: int, state: StateNode, catalog: Catalog, tables: Tables) -> Row:
    labels = state.labels
    room = state.allocatable
    created = (state.node or state.claim).metadata.creation_timestamp  # type: ignore[union-attr] # one of them is there
    return [
        number,
        state.name,
        _pool(state),
        label_of(labels, INSTANCE_TYPE),
        label_of(labels, ZONE),
        capacity_type_of(labels),
        node_price(catalog, labels),
        _cores(room.get("cpu")),
        _mebibytes(room.get("memory")),
        _status(state),
        tables.labels.number_of_labels({key: value for key, value in labels.items() if key != HOSTNAME}),
        _seconds(created),
    ]


def _pool(state: StateNode) -> str:
    """The name of the node's pool or group; empty if it has none."""
    if state.node is None:
        return state.labels.get(NODEPOOL, "")
    manager = manager_of(state.node, claimed=state.claim is not None)
    return manager.name if manager.kind in (ManagerKind.NODE_POOL, ManagerKind.NODE_GROUP) else ""


def _status(state: StateNode) -> str:
    """What a node is at, in the words of the page."""
    node = state.node
    if state.deleting:
        return "leaving"
    if node is None:
        return "starting"
    if any(taint.key in _DISRUPTED for taint in node.spec.taints):
        return "leaving"
    ready = condition(node.status.conditions, "Ready")
    if ready is not None and ready.status != "True":
        return "starting" if not state.initialized else "not ready"
    if not state.initialized:
        return "starting"
    return "cordoned" if node.spec.unschedulable else "ready"


def pod_row(number: int, pod: Pod, node: int, tables: Tables) -> Row:
    """A pod; `node`: the number of its node, 0 for one that waits."""
    requests = effective_requests(pod)
    workload = str(workload_of(pod))
    labels = {key: value for key, value in pod.metadata.labels.items() if key not in _OF_ONE_POD}
    return [
        number,
        pod.key,
        node,
        _cores(requests.get("cpu")),
        _mebibytes(requests.get("memory")),
        tables.workloads.number(workload, workload),
        tables.labels.number_of_labels(labels),
        DAEMON * pod.is_daemon + UNDISTURBED * (DO_NOT_DISRUPT in pod.metadata.annotations) + LEAVING * pod.terminating,
    ]


def pool_row(pool: NodePool) -> dict[str, Any]:
    """What people want to know of a pool's rules, in words."""
    disruption = pool.spec.disruption
    grace = disruption.consolidation_grace_period
    requirements = pool.spec.template.spec.requirements
    return {
        "name": pool.name,
        "weight": pool.weight,
        "policy": disruption.consolidation_policy,
        "consolidateAfter": str(disruption.consolidate_after),
        "gracePeriod": None if grace is None else str(grace),
        "budgets": [_budget(budget) for budget in disruption.budgets],
        "ownBudgets": pool.metadata.annotations.get(BUDGETS),
        "limits": {name: str(amount) for name, amount in pool.spec.limits.items()},
        "requirements": [" ".join((entry.key, entry.operator, ", ".join(entry.values))) for entry in requirements],
        "paused": pool.metadata.annotations.get(PAUSED),
        "unreadable": pool.unreadable,
    }


def _budget(budget: Budget) -> str:
    parts = ["1 node" if budget.nodes == "1" else f"{budget.nodes} nodes"]
    if budget.reasons:
        parts.append(f"for {', '.join(budget.reasons)}")
    if budget.schedule:
        parts.append(f"at {budget.schedule}" + (f" for {budget.duration}" if budget.duration is not None else ""))
    return " ".join(parts)


def _cores(amount: Quantity | None) -> float:
    return 0 if amount is None else _short(amount.milli / 1000)


def _mebibytes(amount: Quantity | None) -> float:
    return 0 if amount is None else _short(round(amount.units / _MEBIBYTE, 1))


def _short(value: float) -> float:
    """Without a fraction where there is none: it is written once for each of many pods."""
    return int(value) if value == int(value) else value


def _seconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp())
