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

    def read(self, nodes: Sequence[str], done: FactsRead) -> None:
        done(self.facts_of(nodes))

    def facts_of(self, nodes: Sequence[str]) -> FreshFacts:
        wanted = set(nodes)
        pods: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in self._store.pods:
            if pod.spec.node_name in wanted:
                pods[pod.spec.node_name].append(pod)
        return {name: FreshNode(self._store.nodes.get(name), tuple(pods[name])) for name in nodes}
