"""Which PodDisruptionBudgets cover a pod, and whether they would let it go now."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from karpool.compaction.reasons import Code
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.model.wire import condition
from karpool.model.workloads import PodDisruptionBudget

Pair = tuple[str, str, str]


class Pdbs:
    """PodDisruptionBudgets, found by namespace and by one label that they ask for."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        listed = sorted(budgets, key=lambda pdb: pdb.key)
        counts = Counter(pair for pdb in listed for pair in _pairs(pdb))
        self._by_pair: defaultdict[Pair, list[PodDisruptionBudget]] = defaultdict(list)
        self._others: defaultdict[str, list[PodDisruptionBudget]] = defaultdict(list)
        for pdb in listed:
            # The label that fewest budgets ask for keeps the lists short: `app=cart` rather than `tier=backend`.
            pair = min(_pairs(pdb), key=lambda pair: counts[pair], default=None)
            (self._others[pdb.metadata.namespace] if pair is None else self._by_pair[pair]).append(pdb)

    def covering(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The budgets that cover a pod, by name."""
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        near = [*self._others.get(namespace, ())]
        for key, value in labels.items():
            near += self._by_pair.get((namespace, key, value), ())
        return sorted((pdb for pdb in near if pdb.matches(namespace, labels)), key=lambda pdb: pdb.key)

    def refusal(self, pod: Pod) -> Reason | None:
        """Why an eviction of the pod would be refused now, if it would; pods that share a budget leave in turns."""
        if not pod.active:
            return None
        covering = self.covering(pod)
        if len(covering) > 1:
            names = ", ".join(pdb.key for pdb in covering)
            said = f"{len(covering)} PodDisruptionBudgets cover it ({names}), and Kubernetes evicts no such pod"
            return Reason(Code.MULTIPLE_POD_DISRUPTION_BUDGETS, said, f"Pod {pod.key}")
        for pdb in covering:
            if pdb.status.disruptions_allowed <= 0 and not _exempt(pdb, pod):
                healthy, needed = pdb.status.current_healthy, pdb.status.desired_healthy
                said = f"PodDisruptionBudget {pdb.key} allows no disruption now: {healthy} healthy, {needed} needed"
                return Reason(Code.POD_DISRUPTION_BUDGET, said, f"Pod {pod.key}")
        return None


def _pairs(pdb: PodDisruptionBudget) -> list[Pair]:
    """The labels that every covered pod has."""
    wanted = pdb.spec.selector.match_labels if pdb.spec.selector is not None else {}
    return [(pdb.metadata.namespace, key, value) for key, value in wanted.items()]


def _exempt(pdb: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the budget lets pods go that are not ready anyway, and the pod is one."""
    ready = condition(pod.status.conditions, "Ready")
    always = pdb.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
    return always and ready is not None and ready.status == "False"
