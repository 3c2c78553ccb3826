"""Nodes that break: a condition of theirs changes, and changes back when they are rebooted or well by themselves."""

from collections.abc import Iterable
from functools import partial

from karpool.model.labels import NODEPOOL
from karpool.model.node import Node
from karpool.model.scheduling import Taint
from karpool.provisioning.instances import NOT_READY
from karpool.virtual.changes import with_condition, with_taints
from karpool.virtual.cloud import VirtualCloud
from karpool.virtual.curves import seconds
from karpool.virtual.scenario import Breakdown, Fault
from karpool.virtual.world import VirtualWorld

_TAINT = Taint(key=NOT_READY, effect="NoSchedule")


class Breakdowns:
    """Breaks nodes as faults say; `broken` has the conditions of those that are."""

    def __init__(self, world: VirtualWorld, cloud: VirtualCloud, faults: Iterable[Fault]) -> None:
        self.world = world
        self.broken: dict[str, Breakdown] = {}
        cloud.on_boot.append(self._booted)
        for fault in faults:
            if isinstance(fault, Breakdown):
                world.queue.at(seconds(fault.start), partial(self._begin, fault))

    def _begin(self, fault: Breakdown) -> None:
        names = sorted(node.name for node in self.world.store.nodes if NODEPOOL in node.metadata.labels)
        for name in [name for name in names if name not in self.broken][: fault.nodes]:
            self.broken[name] = fault
            self._write(name, fault.status, fault)
            if fault.length is not None:
                self.world.queue.after(seconds(fault.length), partial(self._heal, name))

    def _booted(self, name: str) -> None:
        fault = self.broken.get(name)
        if fault is None:
            return
        if fault.survives_reboots:
            # Nobody has seen yet whether it is there again.
            delay = seconds(self.world.timings.reaction)
            self.world.queue.after(delay, partial(self._write, name, fault.status, fault))
        self._heal(name, forget=not fault.survives_reboots)

    def _heal(self, name: str, *, forget: bool = True) -> None:
        fault = self.broken.pop(name, None) if forget else self.broken.get(name)
        if fault is not None:
            self._write(name, "False" if fault.status == "True" else "True", fault)

    def _write(self, name: str, status: str, fault: Breakdown) -> None:
        node = self.world.store.nodes.get(name)
        if node is not None:
            reason = fault.reason if status == fault.status else ""
            changed = with_condition(node, fault.condition, status, self.world.queue.moment, reason=reason)
            self.world.store.nodes.put(_tainted(changed))


def _tainted(node: Node) -> Node:
    """A node with the taint of nodes that are not ready, if it is not, as the node controller has it."""
    others = tuple(taint for taint in node.spec.taints if taint != _TAINT)
    return with_taints(node, others if node.ready else (*others, _TAINT))
