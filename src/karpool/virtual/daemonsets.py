"""DaemonSets: one pod on every node that suits."""

from functools import partial
from typing import Final

from msgspec.structs import replace

from karpool.cluster.daemons import Daemon, daemons
from karpool.model.labels import UNREGISTERED_TAINT
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.model.scheduling import Taint
from karpool.model.workloads import DaemonSet, PodTemplate, WorkloadSpec
from karpool.virtual.owners import Owner, reference
from karpool.wire.objects import Metadata

TOLERATED: Final = frozenset(
    f"node.kubernetes.io/{name}"
    for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)
"""Taints that the DaemonSet controller lets its pods tolerate."""


class DaemonSetOwner(Owner):
    """Keeps a pod on every node whose labels and taints suit."""

    daemon: Daemon

    def declare(self) -> None:
        """Put the DaemonSet itself into the store, so that decisions count on its pods."""
        template = PodTemplate(metadata=Metadata(labels=self.labels), spec=self.spec)
        meta = Metadata(name=self.workload.name, namespace=self.workload.namespace)
        made = self.world.store.daemon_sets.put(DaemonSet(metadata=meta, spec=WorkloadSpec(template=template)))
        self.daemon = daemons((made,), ())[0]
        self._on: dict[str, str] = {}

    def start(self) -> None:
        """Look after the nodes that are there, and those that come."""
        self.world.store.nodes.watch(self._node)
        for node in self.world.store.nodes:
            self._node(None, node)

    def _node(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            if old is not None:
                self._on.pop(old.name, None)
        elif new.name not in self._on and (
            old is None or old.spec != new.spec or old.metadata.labels != new.metadata.labels
        ):
            self.world.queue.after(0.0, partial(self._put_on, new.name))

    def _put_on(self, name: str) -> None:
        node = self.world.store.nodes.get(name)
        if node is None or name in self._on or not self.daemon.runs_on(node.metadata.labels, _minded(node)):
            return
        pod = self.next_name(self.workload.name)
        self._on[name] = f"{self.workload.namespace}/{pod}"
        self.create(pod, reference("DaemonSet", self.workload.name), labels=self.labels, node=name)

    def notice(self, old: Pod | None, new: Pod | None) -> None:
        """A pod that is gone is made anew if its node still suits."""
        if new is None and old is not None and self._on.get(old.spec.node_name) == old.key:
            del self._on[old.spec.node_name]
            self.world.queue.after(1.0, partial(self._put_on, old.spec.node_name))

    def adopt(self, pod: Pod) -> None:
        """A pod that was there before stays, unless its node has one already; it asks for what all of them ask for."""
        if pod.spec.node_name not in self._on:
            self._on[pod.spec.node_name] = pod.key
            super().adopt(replace(pod, spec=replace(self.spec, node_name=pod.spec.node_name)))

    def reconcile(self) -> None:
        """Nothing to do: every node is looked after by itself."""


def _minded(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.spec.taints if taint.key not in TOLERATED or taint.key == UNREGISTERED_TAINT)
