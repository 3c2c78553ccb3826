"""Which PodDisruptionBudgets cover a pod, and whether they let it go.

Pods are tested one by one: a budget that allows one disruption blocks nobody. Pods that share it leave in waves.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from karpool.disruption.pods import disruptable, evictable
from karpool.disruption.reasons import Code
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.model.selectors import LabelSelector
from karpool.model.wire import condition
from karpool.model.workloads import BudgetStatus, PodDisruptionBudget

Pair = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Waves:
    """Pods of one command that share a PodDisruptionBudget, and in how many goes they leave; None: never."""

    pods: int
    allowed: int
    waves: int | None


class Pdbs:
    """PodDisruptionBudgets, found by namespace and by one label that a pod must have to be covered."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        listed = sorted(budgets, key=lambda pdb: pdb.key)
        counts = Counter(pair for pdb in listed for handle in _handles(pdb) for pair in handle)
        self._by_pair: defaultdict[Pair, list[PodDisruptionBudget]] = defaultdict(list)
        self._by_namespace: defaultdict[str, list[PodDisruptionBudget]] = defaultdict(list)
        for pdb in listed:
            # The label that fewest budgets ask for keeps the lists short: `app=cart` rather than `tier=backend`.
            handle = min(_handles(pdb), key=lambda pairs: sum(counts[pair] for pair in pairs), default=None)
            if handle is None:
                self._by_namespace[pdb.metadata.namespace].append(pdb)
            for pair in handle or ():
                self._by_pair[pair].append(pdb)

    def matching(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The budgets that cover a pod, by name."""
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        found = [pdb for pdb in self._by_namespace.get(namespace, ()) if pdb.matches(namespace, labels)]
        for key, value in labels.items():
            nearby = self._by_pair.get((namespace, key, value), ())
            found += [pdb for pdb in nearby if pdb.matches(namespace, labels)]
        return sorted(found, key=lambda pdb: pdb.key) if len(found) > 1 else found

    def eviction_blocked(self, pod: Pod, now: datetime) -> Reason | None:
        """Why an eviction of the pod would be refused now, if it would; a status that lags behind is not trusted."""
        covering = self._tested(pod, now)
        if len(covering) > 1:
            return _several(pod, covering)
        for pdb in covering:
            if _exempt(pdb, pod):
                continue
            if pdb.status.disruptions_allowed <= 0:
                return Reason(Code.POD_DISRUPTION_BUDGET, _allows_nothing(pdb), f"Pod {pod.key}")
            if pdb.fully_blocking:
                return _never_allows(pod, pdb)
        return None

    def fully_blocked(self, pod: Pod, now: datetime) -> Reason | None:
        """Why an eviction of the pod would always be refused, whatever the state of its neighbours, if it would."""
        covering = self._tested(pod, now)
        if len(covering) > 1:
            return _several(pod, covering)
        for pdb in covering:
            if not _exempt(pdb, pod) and pdb.fully_blocking:
                return _never_allows(pod, pdb)
        return None

    def waves(self, pods: Iterable[Pod], now: datetime) -> dict[str, Waves]:
        """In how many goes pods that leave together get past each budget that covers them, by the budget's key."""
        sharing: Counter[str] = Counter()
        allowed: dict[str, int] = {}
        for pod in pods:
            for pdb in self._tested(pod, now):
                if not _exempt(pdb, pod):
                    sharing[pdb.key] += 1
                    allowed[pdb.key] = max(0, pdb.status.disruptions_allowed)
        return {
            key: Waves(count, allowed[key], -(-count // allowed[key]) if allowed[key] else None)
            for key, count in sorted(sharing.items())
        }

    def _tested(self, pod: Pod, now: datetime) -> list[PodDisruptionBudget]:
        covering = self.matching(pod)
        return covering if covering and evictable(pod, now) else []


def currently_reschedulable(pod: Pod, pdbs: Pdbs, now: datetime) -> bool:
    """Whether the pod needs another place when its node goes, and nothing keeps it where it is."""
    return pod.reschedulable and disruptable(pod, now) and pdbs.fully_blocked(pod, now) is None


def _handles(pdb: PodDisruptionBudget) -> Iterator[tuple[Pair, ...]]:
    """Sets of labels of which a covered pod has one."""
    selector = pdb.spec.selector or LabelSelector()
    namespace = pdb.metadata.namespace
    for key, value in selector.match_labels.items():
        yield ((namespace, key, value),)
    for expression in selector.match_expressions:
        if expression.operator == "In":
            yield tuple((namespace, expression.key, value) for value in sorted(set(expression.values)))


def _exempt(pdb: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the budget lets pods go that are not ready anyway, and the pod is one."""
    if pdb.spec.unhealthy_pod_eviction_policy != "AlwaysAllow":
        return False
    ready = condition(pod.status.conditions, "Ready")
    return ready is not None and ready.status == "False"


def _several(pod: Pod, covering: list[PodDisruptionBudget]) -> Reason:
    names = ", ".join(pdb.key for pdb in covering)
    said = f"{len(covering)} PodDisruptionBudgets cover it ({names}), and Kubernetes evicts no such pod"
    return Reason(Code.MULTIPLE_POD_DISRUPTION_BUDGETS, said, f"Pod {pod.key}")


def _never_allows(pod: Pod, pdb: PodDisruptionBudget) -> Reason:
    said = f"PodDisruptionBudget {pdb.key} is written so that it never allows a disruption"
    return Reason(Code.POD_DISRUPTION_BUDGET, said, f"Pod {pod.key}")


def _allows_nothing(pdb: PodDisruptionBudget) -> str:
    status = pdb.status
    if status == BudgetStatus():
        return f"PodDisruptionBudget {pdb.key} has no status yet, so it counts as allowing no disruption"
    return (
        f"PodDisruptionBudget {pdb.key} allows no disruption now: "
        f"{status.current_healthy} healthy, {status.desired_healthy} needed"
    )
