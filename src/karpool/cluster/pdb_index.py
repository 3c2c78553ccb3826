"""PodDisruptionBudgets by the pods they cover, without matching every budget."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from karpool.model.pod import Pod
from karpool.model.reading.unreadable import UNKNOWN, unreadable_reason
from karpool.model.reasons import Reason
from karpool.model.selectors import LabelSelector
from karpool.model.workloads import PodDisruptionBudget

Pair = tuple[str, str, str]


class PdbIndex:
    """PodDisruptionBudgets by namespace and by a label that a pod must have to be covered."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        listed = sorted(budgets, key=lambda pdb: pdb.key)
        self._rules = tuple((pdb.key, pdb.spec, pdb.unreadable) for pdb in listed)
        self.unreadable = [pdb for pdb in listed if pdb.unreadable]
        """Budgets of which nobody knows what they cover: perhaps every pod of their namespace."""
        listed = [pdb for pdb in listed if not pdb.unreadable]
        self._by_key = {pdb.key: pdb for pdb in listed}
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

    @property
    def rules(self) -> tuple[object, ...]:
        """What budgets say whatever their status is: an equal value for budgets that differ in nothing else."""
        return self._rules

    def readable(self, key: str) -> PodDisruptionBudget | None:
        """The budget with a key, unless it cannot be read."""
        return self._by_key.get(key)

    def unreadable_over(self, pod: Pod) -> Reason | None:
        """The budget that may cover a pod and cannot be read, as a reason."""
        for pdb in self.unreadable:
            if pdb.metadata.namespace in (pod.metadata.namespace, UNKNOWN):
                return unreadable_reason("PodDisruptionBudget", pdb)
        return None

    def matching(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The budgets that cover a pod, by name."""
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        covering = [pdb for pdb in self._by_namespace.get(namespace, ()) if pdb.matches(namespace, labels)]
        for key, value in labels.items():
            nearby = self._by_pair.get((namespace, key, value), ())
            covering += [pdb for pdb in nearby if pdb.matches(namespace, labels)]
        return sorted(covering, key=lambda pdb: pdb.key) if len(covering) > 1 else covering


def _handles(pdb: PodDisruptionBudget) -> Iterator[tuple[Pair, ...]]:
    """Sets of labels of which a covered pod has one."""
    selector = pdb.spec.selector or LabelSelector()
    namespace = pdb.metadata.namespace
    for key, value in selector.match_labels.items():
        yield ((namespace, key, value),)
    for expression in selector.match_expressions:
        if expression.operator == "In":
            yield tuple((namespace, expression.key, value) for value in sorted(set(expression.values)))
