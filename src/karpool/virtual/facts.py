"""What a virtual API server has of nodes now: the objects themselves."""

from collections import defaultdict
from collections.abc import Sequence

from karpool.controller.ports import FactsRead
from karpool.controller.store import ClusterStore
from karpool.execution.fresh_facts import FreshFacts, FreshNode
from karpool.model.pod import Pod


class VirtualFacts:
    """Answers at once: time stands still in a simulation."""

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._pods_on: defaultdict[str, dict[str, Pod]] = defaultdict(dict)
        self._turns: dict[str, int] = {}
        """By key of a pod: its place in the order in which all came."""
        self._last_turn = 0
        for pod in store.pods:
            self._pod_changed(None, pod)
        store.pods.watch(self._pod_changed)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None and old is not None:
            del self._turns[old.key]
        elif new is not None and old is None:
            self._last_turn += 1
            self._turns[new.key] = self._last_turn
        if old is not None and old.bound and (new is None or new.spec.node_name != old.spec.node_name):
            here = self._pods_on[old.spec.node_name]
            del here[old.key]
            if not here:
                del self._pods_on[old.spec.node_name]
        if new is not None and new.bound:
            self._pods_on[new.spec.node_name][new.key] = new

    def pods_on(self, node: str) -> list[Pod]:
        """The pods bound to a node, in the order in which they came to be, whether or not there is such a node."""
        return sorted(self._pods_on.get(node, {}).values(), key=lambda pod: self._turns[pod.key])

    def read(self, nodes: Sequence[str], done: FactsRead) -> None:
        done(self.facts_of(nodes))

    def facts_of(self, nodes: Sequence[str]) -> FreshFacts:
        there = self._pods_on
        return {name: FreshNode(self._store.nodes.get(name), tuple(there.get(name, {}).values())) for name in nodes}
