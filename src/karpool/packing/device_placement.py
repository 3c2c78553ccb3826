"""Places for pods with claims on devices: the kernels look for a node, and only where the claims can be fulfilled.

Kernels know nothing of devices. The queue is cut where such a pod is in it: those before it are placed together, then
it alone, while all nodes are closed on which its claims could not be fulfilled now. If no existing node takes it, it is
sent to open claims and to new nodes of each pool, with the types alone that will have the devices it asks for.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.devices.ledger import DeviceLedger
from karpool.cluster.pod_classes import NO_CLASS
from karpool.packing.directions import Directions, follow
from karpool.packing.kernels import columns as c
from karpool.packing.kernels.place import place
from karpool.packing.new_node_devices import NewNodes

if TYPE_CHECKING:
    from karpool.packing.engine import Engine


def place_among_devices(
    engine: "Engine", ledger: DeviceLedger, rows: Array, exempt: Array, directions: Directions | None
) -> tuple[Sequence[int], dict[int, tuple[str, ...]]]:
    """Place a queue that has just been filled.

    Returns the claim of each new node of the directions, as `follow` has it, and by claim the drivers of its devices.
    """
    users = engine.snapshot.pods.device_rows
    claims: Sequence[int] = ()
    wishes: dict[int, int] = {}
    if directions is not None:
        wishes = {row: target for row, target in directions.targets.items() if row in users}
        others = {row: target for row, target in directions.targets.items() if row not in users}
        claims = follow(engine, rows, exempt, Directions(directions.new_nodes, others, directions.every_level))
    queue = _Queue(engine, ledger, rows, wishes)
    queue.run()
    return claims, queue.new_nodes.drivers()


class _Queue:
    def __init__(self, engine: "Engine", ledger: DeviceLedger, rows: Array, wishes: dict[int, int]) -> None:
        self.engine, self.ledger = engine, ledger
        self.rows: list[int] = rows.tolist()
        self.wishes = wishes
        self.users = engine.snapshot.pods.device_rows
        self.new_nodes = NewNodes(engine, ledger)

    def run(self) -> None:
        """Go through the queue until a whole round places no pod."""
        target = self.engine.memory["target"]
        waiting = np.flatnonzero(target[: len(self.rows)] == c.UNPLACED).tolist()
        while True:
            for with_claims, items in groupby(waiting, lambda item: self.rows[item] in self.users):
                if with_claims:
                    for item in items:
                        self._place_alone(item)
                else:
                    self._place(list(items))
            left = [item for item in waiting if target[item] == c.UNPLACED]
            if len(left) == len(waiting) or not left:
                return
            waiting = left

    def _place(self, items: list[int]) -> None:
        """Let the kernel place some pods."""
        memory = self.engine.memory
        memory["queue"][: len(items)] = items
        memory["last_length"][items] = c.UNSET
        memory["state"][c.HEAD], memory["state"][c.WAITING] = 0, len(items)
        self.engine.run(place)

    def _place_alone(self, item: int) -> None:
        """Place a pod with claims on an existing node where they can be fulfilled, on the one it is sent to if any."""
        row = self.rows[item]
        possible = self._possible(item)
        wish = self.wishes.get(row, c.UNPLACED)
        for choice in ([wish], possible) if wish in possible else (possible,):
            node = self._on_one_of(item, choice)
            if node != c.UNPLACED:
                self.ledger.assign(row, self.ledger.grants(row, node))
                return
        if not self.engine.memory["state"][c.EXISTING_ONLY]:
            self.new_nodes.place(item, row, len(self.rows))

    def _possible(self, item: int) -> list[int]:
        """The nodes that are open to a pod and on which its claims can be fulfilled."""
        memory, row = self.engine.memory, self.rows[item]
        shut = memory["closed"] if not memory["exempt"][item] else np.zeros_like(memory["closed"])
        order = self.engine.snapshot.nodes.order
        return self.ledger.nodes_for(row, order[shut[order] == 0].tolist())

    def _on_one_of(self, item: int, nodes: list[int]) -> int:
        """The node of some on which the kernel puts a pod, or c.UNPLACED."""
        if not nodes:
            return c.UNPLACED
        memory, state = self.engine.memory, self.engine.memory["state"]
        closed, exempt, existing_only = memory["closed"], int(memory["exempt"][item]), int(state[c.EXISTING_ONLY])
        others: Array = np.ones_like(closed)
        others[nodes] = 0
        memory.put(closed=others)
        memory["exempt"][item], state[c.EXISTING_ONLY] = 0, 1
        self._forget_refusals(self.rows[item])
        self._place([item])
        memory.put(closed=closed)
        memory["exempt"][item], state[c.EXISTING_ONLY] = exempt, existing_only
        return int(memory["target"][item])

    def _forget_refusals(self, row: int) -> None:
        """Let the kernel look at all nodes again: which of them are closed has changed since an equal pod."""
        snapshot, memory = self.engine.snapshot, self.engine.memory
        number = int(snapshot.pods.class_of[row])
        while number != NO_CLASS:
            memory["hint"][:, number] = 0
            number = int(snapshot.classes.next[number])
        memory["batch_class"][:] = c.UNSET
