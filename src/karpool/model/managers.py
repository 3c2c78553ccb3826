"""Who manages a node: a NodePool, a node group that an autoscaler grows and shrinks, or somebody who wants no help.

A cloud, or the tool that made the cluster, says so with labels and annotations on its nodes.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from karpool.model.labels import NODEPOOL, OS
from karpool.model.node import Node


class ManagerKind(StrEnum):
    """The kinds of managers; the values are the words of documents."""

    NODE_POOL = "NodePool"
    NODE_GROUP = "NodeGroup"
    CONTROL_PLANE = "ControlPlane"
    FARGATE = "Fargate"
    VIRTUAL = "VirtualKubelet"
    WINDOWS = "Windows"
    AUTO_MODE = "EKSAutoMode"
    AUTOPILOT = "GKEAutopilot"
    NOBODY = "Nobody"


class GroupSource(NamedTuple):
    """A label or an annotation that names a node's group, and what such a group is called."""

    key: str
    title: str
    annotation: bool = False
    local_storage_stays: bool = True
    """Whether its autoscaler leaves a node alone for the sake of data that a pod keeps there."""


class Manager(NamedTuple):
    """Who manages a node; `name` is that of its pool or group, `source` what said so of a group."""

    kind: ManagerKind
    name: str = ""
    source: GroupSource | None = None


COMPUTE_TYPE: Final = "eks.amazonaws.com/compute-type"
CAPI_KIND: Final = "cluster.x-k8s.io/owner-kind"
CAPI_OWNER: Final = "cluster.x-k8s.io/owner-name"
OPENSHIFT_MACHINE: Final = "machine.openshift.io/machine"
_AUTOPILOT_NAME: Final = "gk3-"
_CONTROL_PLANE: Final = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/controlplane",
)
_VIRTUAL_TAINT: Final = "virtual-kubelet.io/provider"
_MACHINE_SETS: Final = ("MachineSet",)

_AKS: Final = "AKS node pool"
GROUP_SOURCES: Final = (
    GroupSource("eks.amazonaws.com/nodegroup", "EKS managed node group"),
    GroupSource("cloud.google.com/gke-nodepool", "GKE node pool", local_storage_stays=False),
    GroupSource("kubernetes.azure.com/agentpool", _AKS, local_storage_stays=False),
    GroupSource("agentpool", _AKS, local_storage_stays=False),
    GroupSource("alpha.eksctl.io/nodegroup-name", "eksctl node group"),
    GroupSource("kops.k8s.io/instancegroup", "kOps instance group"),
    GroupSource("doks.digitalocean.com/node-pool", "DigitalOcean node pool"),
    GroupSource("k8s.scaleway.com/pool-name", "Scaleway node pool"),
    GroupSource("ibm-cloud.kubernetes.io/worker-pool-name", "IBM Cloud worker pool"),
    GroupSource("worker.gardener.cloud/pool", "Gardener worker pool"),
    GroupSource("cluster.x-k8s.io/deployment-name", "Cluster API MachineDeployment"),
    GroupSource(CAPI_OWNER, "Cluster API MachineSet", annotation=True),
    GroupSource(OPENSHIFT_MACHINE, "OpenShift MachineSet", annotation=True),
)
"""Where the name of a node's group is looked for, in this order."""

_LEFT_ALONE: Final = {
    ManagerKind.CONTROL_PLANE: "is part of the control plane, which is left alone",
    ManagerKind.FARGATE: "is a Fargate node: it comes and goes with its one pod",
    ManagerKind.VIRTUAL: "is a virtual kubelet: there is no machine that could be saved",
    ManagerKind.WINDOWS: "runs Windows, whose licence no price here includes; it is left alone",
    ManagerKind.AUTO_MODE: "EKS Auto Mode manages it by its NodePool, and its NodeClaim is not in the input",
    ManagerKind.AUTOPILOT: "GKE Autopilot manages it: pods are paid for, not nodes",
    ManagerKind.NOBODY: "has neither a NodeClaim nor a label of a node group, so nobody is known who could remove it",
}


def manager_of(node: Node, *, claimed: bool, pool_label: str | None = None) -> Manager:
    """Who manages a node; `claimed`: it has a NodeClaim; `pool_label`: a label that names groups before all others."""
    labels = node.metadata.labels
    if claimed:
        return Manager(ManagerKind.NODE_POOL, labels.get(NODEPOOL, ""))
    special = _special(node)
    if special is not None:
        return Manager(special)
    group = group_of(node, pool_label)
    if group is not None:
        return group
    if NODEPOOL in labels:
        return Manager(ManagerKind.NODE_POOL, labels[NODEPOOL])
    return Manager(ManagerKind.NOBODY)


def group_of(node: Node, pool_label: str | None = None) -> Manager | None:
    """The node group of a node, if a label or an annotation names one."""
    sources = (*(() if pool_label is None else (GroupSource(pool_label, "node group"),)), *GROUP_SOURCES)
    for source in sources:
        name = _name(node, source)
        if name:
            return Manager(ManagerKind.NODE_GROUP, name, source)
    return None


def takes_no_pods(node: Node) -> bool:
    """Whether no pod can be sent to a node: a Fargate node is made for one pod, behind a virtual one is no machine."""
    return _without_machine(node) is not None


def left_alone(kind: ManagerKind) -> str:
    """Why a node that no NodePool and no group manages stays, in a sentence; empty for others."""
    return _LEFT_ALONE.get(kind, "")


def _special(node: Node) -> ManagerKind | None:
    labels = node.metadata.labels
    if any(key in labels for key in _CONTROL_PLANE):
        return ManagerKind.CONTROL_PLANE
    if (kind := _without_machine(node)) is not None:
        return kind
    if labels.get(OS, labels.get("beta.kubernetes.io/os")) == "windows":
        return ManagerKind.WINDOWS
    if labels.get(COMPUTE_TYPE) == "auto":
        return ManagerKind.AUTO_MODE
    return ManagerKind.AUTOPILOT if node.name.startswith(_AUTOPILOT_NAME) else None


def _without_machine(node: Node) -> ManagerKind | None:
    if node.metadata.labels.get(COMPUTE_TYPE) == "fargate":
        return ManagerKind.FARGATE
    virtual = any(taint.key == _VIRTUAL_TAINT for taint in node.spec.taints)
    return ManagerKind.VIRTUAL if virtual or node.metadata.labels.get("type") == "virtual-kubelet" else None


def _name(node: Node, source: GroupSource) -> str:
    if not source.annotation:
        return node.metadata.labels.get(source.key, "")
    written = node.metadata.annotations.get(source.key, "")
    if source.key == OPENSHIFT_MACHINE:
        # A Machine is called as its MachineSet, and a few letters.
        return written.rpartition("/")[2].rpartition("-")[0]
    owner = node.metadata.annotations.get(CAPI_KIND, "")
    return written if owner in _MACHINE_SETS else ""
