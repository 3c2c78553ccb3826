"""Columns that show for a moment what has not happened yet: nodes that go, and others on their way.

What is to be shown may change from one question to the next. Only what differs is changed in the columns then.
"""

from collections.abc import Collection, Iterable

from karpool.cluster.nodes import StateNode
from karpool.cluster.snapshot import Snapshot


class AsIf:
    """What the columns of a snapshot show beside what is there."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._sealed: dict[str, int] = {}
        """By name of a node that takes no pods any more: its row."""
        self._added: dict[str, StateNode] = {}

    def show(self, going: Collection[str], coming: Iterable[StateNode]) -> None:
        """Show these nodes as if they took no pods any more, these others as if they were there; nothing else."""
        snapshot, nodes = self._snapshot, self._snapshot.nodes
        snapshot.reseal()
        states = {state.name: state for state in coming}
        changed = [self._remove(name) for name, state in [*self._added.items()] if states.get(name) != state]
        changed += [nodes.seal(self._sealed.pop(name), sealed=False) for name in self._sealed.keys() - going]
        changed += [self._seal(name) for name in sorted(going) if name in nodes.rows and name not in self._sealed]
        changed += [self._add(state) for name, state in states.items() if name not in nodes.rows]
        snapshot.version += any(changed)

    def _seal(self, name: str) -> bool:
        row = self._snapshot.nodes.rows[name]
        sealed = self._snapshot.nodes.seal(row, sealed=True)
        if sealed:
            self._sealed[name] = row
        return sealed

    def _add(self, state: StateNode) -> bool:
        self._snapshot.put_node(state)
        self._added[state.name] = state
        return True

    def _remove(self, name: str) -> bool:
        self._snapshot.remove_node(name)
        del self._added[name]
        return True
