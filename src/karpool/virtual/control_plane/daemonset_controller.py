"""DaemonSets: one pod on every node that they select and whose taints they tolerate."""

from functools import partial
from typing import Final

from msgspec.structs import replace

from karpool.cluster.daemons import Daemon, daemons
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.model.workloads import DaemonSet, PodTemplateSpec, WorkloadSpec
from karpool.virtual.control_plane.workload_controller import WorkloadController, reference
from karpool.wire.objects import Metadata

TOLERATED: Final = frozenset(
    f"node.kubernetes.io/{name}"
    for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)
"""Taints that the DaemonSet controller makes its pods tolerate."""


class DaemonSetController(WorkloadController):
    daemon: Daemon
    retired = False

    def retire(self) -> None:
        """The DaemonSet was deleted, and its pods go."""
        self.retired = True
        self.world.store.daemon_sets.remove(f"{self.workload.namespace}/{self.workload.name}")
        for key in tuple(self.pods):
            self.api.delete_pod(key)

    def create_daemon_set(self) -> None:
        """Put the DaemonSet into the store, so that decisions reserve room for its pods."""
        self._publish_template()
        self._pod_on: dict[str, str] = {}

    def _publish_template(self) -> None:
        template = PodTemplateSpec(metadata=Metadata(labels=self.labels), spec=self.spec)
        meta = Metadata(name=self.workload.name, namespace=self.workload.namespace)
        daemon_set = self.world.store.daemon_sets.put(DaemonSet(metadata=meta, spec=WorkloadSpec(template=template)))
        self.daemon = daemons((daemon_set,), ())[0]

    def deploy(self) -> None:
        """Renew the pods; each is created again when its own is gone."""
        self._publish_template()
        for key in tuple(self.pods):
            self.api.delete_pod(key)

    def start(self) -> None:
        self.world.store.nodes.watch(self._node_changed)
        for node in self.world.store.nodes:
            self._node_changed(None, node)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            if old is not None:
                self._pod_on.pop(old.name, None)
        elif new.name not in self._pod_on and (
            old is None or old.spec != new.spec or old.metadata.labels != new.metadata.labels
        ):
            self.world.queue.after(0.0, partial(self._create_on, new.name))

    def _create_on(self, name: str) -> None:
        node = self.world.store.nodes.get(name)
        if node is None or name in self._pod_on or self.retired:
            return
        taints = tuple(taint for taint in node.spec.taints if taint.key not in TOLERATED)
        if not self.daemon.runs_on(node.metadata.labels, taints):
            return
        pod = self.next_name(self.workload.name)
        self._pod_on[name] = f"{self.workload.namespace}/{pod}"
        self.create(pod, reference("DaemonSet", self.workload.name), labels=self.labels, node=name)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """A pod that is gone is created again if its node is still eligible."""
        if new is None and old is not None and self._pod_on.get(old.spec.node_name) == old.key:
            del self._pod_on[old.spec.node_name]
            self.world.queue.after(1.0, partial(self._create_on, old.spec.node_name))

    def adopt(self, pod: Pod) -> None:
        """A pod of the initial cluster stays, with the spec of the template, unless its node has one already."""
        if pod.spec.node_name not in self._pod_on:
            self._pod_on[pod.spec.node_name] = pod.key
            super().adopt(replace(pod, spec=replace(self.spec, node_name=pod.spec.node_name)))

    def reconcile(self) -> None:
        """Nothing to do: changes of nodes and pods are handled one by one."""
