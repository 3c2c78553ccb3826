"""Node shapes: nodes whose labels and taints are the same to every rule are evaluated once.

Only labels that some rule mentions count, so that a serial number among a node's labels does not make it unique.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final

import numpy as np
import numpy.typing as npt

from karpool.cluster.arrays import Array, ColumnTable, column
from karpool.cluster.daemons import Daemon
from karpool.cluster.groups import NodeFilter, hard
from karpool.cluster.nodes import StateNode
from karpool.cluster.pod_classes import Signature
from karpool.model.labels import HOSTNAME, OS
from karpool.model.operating_systems import WINDOWS, needs_windows
from karpool.model.requirements import Requirement, Requirements
from karpool.model.scheduling import Taint, Toleration, untolerated

Mask = npt.NDArray[np.uint8]
ABSENT, UNSEEN = 0, -1
_FEW: Final = 4
"""So few shapes are judged one by one: those of new nodes, mostly."""


class ShapeTable(ColumnTable):
    """Shapes in columns, and which signatures, filters and daemons they suit."""

    columns: Annotated[Array, column(np.int32, "shapes", "label_keys")]
    taints: Annotated[Array, column(np.int32, "shapes")]
    suits: Annotated[Array, column(np.uint8, "signatures", "shapes")]
    seen_by: Annotated[Array, column(np.uint8, "filters", "shapes")]

    def __init__(self) -> None:
        super().__init__()
        # No pod has to mention the system for it to matter.
        self.keys: dict[str, int] = {OS: 0}
        self.values: list[dict[str, int]] = [{}]
        self._names: list[list[str]] = [[]]
        """By number less one, the values of each key."""
        self.ids: dict[tuple[tuple[int, ...], int], int] = {}
        self.taint_sets: dict[tuple[Taint, ...], int] = {}
        self._judged = self._signatures = self._filters = 0

    @property
    def size(self) -> int:
        """The number of shapes."""
        return len(self.ids)

    def learn(self, requirements: Iterable[Requirements], *, hosts: bool) -> bool:
        """Take note of the label keys that rules mention; whether any is new.

        `hosts`: a hostname among them counts like any label, which gives every node a shape of its own.
        """
        before = len(self.keys)
        for terms in requirements:
            for key in terms:
                if key not in self.keys and (hosts or key != HOSTNAME):
                    self.keys[key] = len(self.keys)
                    self.values.append({})
                    self._names.append([])
        return len(self.keys) > before

    def forget(self) -> None:
        """Drop all shapes, keeping the rules; every node must be shaped anew."""
        self.ids.clear()
        self.fit(label_keys=len(self.keys))
        self._judged = 0

    def shape(self, node: StateNode) -> int:
        """The number of a node's shape, made if need be."""
        labels = node.labels
        values = tuple(self._value(column, labels.get(key)) for key, column in self.keys.items())
        taints = self.taint_sets.setdefault(node.taints, len(self.taint_sets))
        shape = self.ids.get((values, taints))
        if shape is None:
            shape = self.ids[values, taints] = len(self.ids)
            self.fit(shapes=shape + 1, label_keys=len(self.keys))
            self.columns[shape, : len(values)] = values
            self.taints[shape] = taints
        return shape

    def _value(self, column: int, value: str | None) -> int:
        if value is None:
            return ABSENT
        known = self.values[column]
        if value not in known:
            known[value] = len(known) + 1
            self._names[column].append(value)
        return known[value]

    def judge(self, signatures: list[Signature], filters: list[NodeFilter]) -> None:
        """Work out what is not known yet about which shapes suit which rules."""
        self.fit(signatures=len(signatures), filters=len(filters), shapes=self.size)
        for number, signature in enumerate(signatures):
            first = self._judged if number < self._signatures else 0
            if first < self.size:
                self.suits[number, first : self.size] = self._suits(signature, first)
        for number, nodes in enumerate(filters):
            first = self._judged if number < self._filters else 0
            if first < self.size:
                self.seen_by[number, first : self.size] = self._seen_by(nodes, first)
        self._judged, self._signatures, self._filters = self.size, len(signatures), len(filters)

    def is_current(self, signatures: list[Signature], filters: list[NodeFilter]) -> bool:
        """Whether all rules were judged."""
        return self._signatures == len(signatures) and self._filters == len(filters)

    def _suits(self, signature: Signature, first: int) -> Mask:
        mask = self._meets(signature.requirements, first) & self._tolerates(signature.tolerations, first)
        if signature.volumes:
            mask &= self._meets_any(signature.volumes, first)
        if not needs_windows(signature.requirements):
            mask &= self.columns[first : self.size, self.keys[OS]] != self.values[self.keys[OS]].get(WINDOWS, UNSEEN)
        return mask

    def _seen_by(self, nodes: NodeFilter, first: int) -> Mask:
        mask = self._meets_any(nodes.alternatives, first) if nodes.alternatives else self._ones(first)
        if nodes.tolerations is not None:
            mask &= self._tolerates(nodes.tolerations, first, hard_only=True)
        return mask

    def runs(self, daemon: Daemon) -> Mask:
        """The shapes of nodes that a daemon runs on."""
        table = [daemon.tolerates(taints) for taints in self.taint_sets] or [True]
        return self._meets_any(daemon.alternatives, 0) & np.array(table, dtype=np.uint8)[self.taints[: self.size]]

    def _ones(self, first: int) -> Mask:
        return np.ones(self.size - first, dtype=np.uint8)

    def _meets_any(self, alternatives: Iterable[Requirements], first: int) -> Mask:
        mask = np.zeros(self.size - first, dtype=np.uint8)
        for requirements in alternatives:
            mask |= self._meets(requirements, first)
        return mask

    def _meets(self, requirements: Requirements, first: int) -> Mask:
        mask = self._ones(first)
        for key, allowed in requirements.items():
            # Hostnames that pods ask for are evaluated node by node, unless some other rule mentions hostnames.
            if key in self.keys:
                column = self.keys[key]
                mask &= _allowed(allowed, self._names[column], self.columns[first : self.size, column])
        return mask

    def _tolerates(self, tolerations: tuple[Toleration, ...], first: int, *, hard_only: bool = False) -> Mask:
        table = [untolerated(hard(taints) if hard_only else taints, tolerations) is None for taints in self.taint_sets]
        return np.array(table or [True], dtype=np.uint8)[self.taints[first : self.size]]


def _allowed(allowed: Requirement, names: Sequence[str], numbers: Array) -> Mask:
    """Which of some values, by their numbers, are allowed; each is looked at once, and no others are."""
    if len(numbers) <= _FEW:
        return np.array([_has(allowed, names, number) for number in numbers.tolist()], dtype=np.uint8)
    table = np.zeros(len(names) + 1, dtype=np.uint8)
    for number in np.unique(numbers).tolist():
        table[number] = _has(allowed, names, number)
    return table[numbers]


def _has(allowed: Requirement, names: Sequence[str], number: int) -> bool:
    return allowed.absent if number == ABSENT else allowed.has(names[number - 1])
