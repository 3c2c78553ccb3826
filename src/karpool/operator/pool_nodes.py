"""The machines of a live cluster by their pool, put together anew only where something changed."""

from collections.abc import Mapping, Sequence

from karpool.cluster.nodes import StateNode
from karpool.cluster.pairing import join
from karpool.controller.store import ClusterStore

ByPool = Mapping[str, Sequence[StateNode]]


class PoolNodes:
    """All machines of a store, launched ones without a node among them."""

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._seen = (-1, -1)
        self._states: list[StateNode] = []
        self._by_pool: ByPool = {}

    def by_pool(self) -> ByPool:
        """The machines of each pool, empty for those without one; the same object until a machine changes."""
        nodes, claims = self._store.nodes, self._store.claims
        versions = (nodes.version, claims.version)
        if versions != self._seen:
            self._join(join(nodes, claims))
            self._seen = versions
        return self._by_pool

    def _join(self, states: list[StateNode]) -> None:
        """Keep machines of which nothing changed, because they remember what was worked out for them."""
        known = {_identity(state): state for state in self._states}
        self._states = [known.get(_identity(state), state) for state in states]
        found: dict[str, list[StateNode]] = {}
        for state in self._states:
            found.setdefault(state.pool, []).append(state)
        self._by_pool = found


def _identity(state: StateNode) -> tuple[int, int, str]:
    return (id(state.node), id(state.claim), state.alias)
