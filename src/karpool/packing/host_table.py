"""Which nodes pods ask for by host name, worked out anew only for nodes that have changed."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from karpool.cluster.arrays import Array, grown
from karpool.cluster.node_table import NodeTable
from karpool.model.labels import HOSTNAME
from karpool.model.requirements import Requirement


class HostTable:
    """A row for each requirement on host names, and a column for each row of the nodes."""

    def __init__(self, requirements: Sequence[Requirement]) -> None:
        self._naming: dict[str, list[int]] = defaultdict(list)
        self._others: list[tuple[int, Requirement]] = []
        for number, allowed in enumerate(requirements):
            if allowed.complement:
                self._others.append((number, allowed))
            else:
                for host in allowed.values:
                    self._naming[host].append(number)
        self._marks: Array = np.zeros((len(requirements), 1), dtype=np.uint8)
        self._hosts: dict[int, str] = {}
        self._seen = -1

    def marked(self, nodes: NodeTable) -> Array:
        """Which nodes, by row, each requirement allows."""
        size = len(nodes.states)
        self._marks = grown(self._marks, (len(self._marks), size))
        for row in np.flatnonzero(nodes.changed[:size] > self._seen).tolist():
            state = nodes.states[row]
            host = None if state is None else state.labels[HOSTNAME]
            if host != self._hosts.get(row):
                self._mark(row, host)
        self._seen = nodes.changes
        return self._marks

    def _mark(self, row: int, host: str | None) -> None:
        self._marks[:, row] = 0
        if host is None:
            del self._hosts[row]
            return
        self._hosts[row] = host
        self._marks[self._naming.get(host, []), row] = 1
        self._marks[[number for number, allowed in self._others if allowed.has(host)], row] = 1
