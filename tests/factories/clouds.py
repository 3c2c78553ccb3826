"""Clusters as clouds and tools make them: nodes with the labels and taints that each documents, as `kubectl` prints."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

Manifest = dict[str, Any]
CREATED: Final = "2026-08-01T00:00:00Z"
UUID: Final = "d2c4a1b0-9f3e-4c55-8a77-0123456789ab"


def node(
    name: str,
    labels: Mapping[str, str],
    *,
    type: str = "",  # noqa: A002 - the word everybody uses for it
    zone: str = "",
    cpu: str = "1930m",
    memory: str = "7Gi",
    taints: Sequence[Manifest] = (),
    annotations: Mapping[str, str] | None = None,
    provider: str = "",
    os: str = "linux",
    arch: str = "amd64",
    capacity: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    created: str = CREATED,
) -> Manifest:
    """A node that is ready; the labels that every cloud sets are added, and amounts go before `cpu` and `memory`."""
    region = zone.rpartition("-")[0] if zone[-2:-1] == "-" else zone[:-1]
    common = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": arch,
        "kubernetes.io/os": os,
        **({"node.kubernetes.io/instance-type": type} if type else {}),
        **({"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": region} if zone else {}),
    }
    amounts = {"cpu": cpu, "memory": memory, "pods": "58", "ephemeral-storage": "90Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": name,
            "creationTimestamp": created,
            "labels": {**common, **labels},
            "annotations": dict(annotations or {}),
        },
        "spec": {"providerID": provider or f"cloud:///{name}", "taints": list(taints)},
        "status": {
            "capacity": dict(capacity or allocatable or amounts),
            "allocatable": dict(allocatable or amounts),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(
    name: str,
    node: str,
    *,
    cpu: str = "400m",
    memory: str = "1Gi",
    namespace: str = "shop",
    owner: str | None = "ReplicaSet",
    annotations: Mapping[str, str] | None = None,
    selector: Mapping[str, str] | None = None,
    volumes: Sequence[Manifest] = (),
    tolerations: Sequence[Manifest] = (),
) -> Manifest:
    """A running pod."""
    owners = [] if owner is None else [{"kind": owner, "name": f"{name}-owner", "controller": True}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}/{name}",
            "labels": {"app": name.rpartition("-")[0] or name},
            "annotations": dict(annotations or {}),
            "ownerReferences": owners,
            "creationTimestamp": CREATED,
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}],
            "nodeSelector": dict(selector or {}),
            "volumes": list(volumes),
            "tolerations": list(tolerations),
        },
        "status": {
            "phase": "Running",
            "startTime": CREATED,
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}],
        },
    }


def one_pod_each(nodes: Sequence[Manifest], **rest: Any) -> list[Manifest]:
    """The nodes, and a pod on each that takes a fifth of it."""
    return [*nodes, *(pod(f"web-{at}", entry["metadata"]["name"], **rest) for at, entry in enumerate(nodes))]


def autoscaler_status(text: str, namespace: str = "kube-system") -> Manifest:
    metadata = {"name": "cluster-autoscaler-status", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"status": text}}


def status_text(groups: Mapping[str, tuple[int, int]]) -> str:
    """The status as Cluster Autoscaler wrote it before 1.30."""
    head = (
        "Cluster-autoscaler status at 2023-11-29 13:34:29.001925665 +0000 UTC:\n"
        "Cluster-wide:\n"
        "  Health:      Healthy (ready=1 unready=0 (resourceUnready=0) notStarted=0 registered=1)\n"
        "               LastProbeTime:      2023-11-29 13:34:28.808043334 +0000 UTC m=+1081389.23\n"
        "  ScaleDown:   NoCandidates (candidates=0)\n\nNodeGroups:\n"
    )
    parts = (
        f"  Name:        {name}\n"
        "  Health:      Healthy (ready=1 unready=0 (resourceUnready=0) notStarted=0 longNotStarted=0 registered=1 "
        f"longUnregistered=0 cloudProviderTarget=1 (minSize={least}, maxSize={most}))\n"
        "               LastProbeTime:      2023-11-29 13:34:28.808043334 +0000 UTC m=+1081389.23\n"
        "  ScaleUp:     NoActivity (ready=1 cloudProviderTarget=1)\n"
        for name, (least, most) in groups.items()
    )
    return head + "\n".join(parts)


def status_yaml(groups: Mapping[str, tuple[int, int]]) -> str:
    """The status as Cluster Autoscaler writes it since 1.30."""
    head = "time: 2026-08-01 10:00:00.1 +0000 UTC\nautoscalerStatus: Running\nclusterWide:\n  health:\n"
    head += "    status: Healthy\n    nodeCounts:\n      registered:\n        total: 3\n        ready: 3\nnodeGroups:\n"
    parts = (
        f"- name: {name}\n  health:\n    status: Healthy\n    nodeCounts:\n      registered:\n        total: 3\n"
        f"    cloudProviderTarget: 3\n    minSize: {least}\n    maxSize: {most}\n"
        '    lastProbeTime: "2026-08-01T10:00:00Z"\n  scaleUp:\n    status: NoActivity\n'
        for name, (least, most) in groups.items()
    )
    return head + "".join(parts)


# -- what makes whose nodes ----------------------------------------------------------------------------------------


def eks_node(name: str, group: str, *, spot: bool = False, **rest: Any) -> Manifest:
    labels = {
        "eks.amazonaws.com/nodegroup": group,
        "eks.amazonaws.com/capacityType": "SPOT" if spot else "ON_DEMAND",
        "eks.amazonaws.com/nodegroup-image": "ami-0123456789abcdef0",
        "topology.k8s.aws/zone-id": "use1-az1",
    }
    settings = {"type": "m5.large", "zone": "us-east-1a", **rest}
    return node(name, {**labels, **settings.pop("labels", {})}, **settings)


def gke_node(name: str, pool: str, *, spot: bool = False, **rest: Any) -> Manifest:
    labels = {
        "cloud.google.com/gke-nodepool": pool,
        "cloud.google.com/gke-os-distribution": "cos",
        "cloud.google.com/machine-family": "e2",
        **({"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-provisioning": "spot"} if spot else {}),
    }
    settings = {"type": "e2-standard-2", "zone": "us-central1-a", **rest}
    return node(name, {**labels, **settings.pop("labels", {})}, **settings)


def aks_node(name: str, pool: str, *, mode: str = "user", spot: bool = False, **rest: Any) -> Manifest:
    labels = {
        "agentpool": pool,
        "kubernetes.azure.com/agentpool": pool,
        "kubernetes.azure.com/mode": mode,
        "kubernetes.azure.com/cluster": "MC_shop_shop_westeurope",
        **({"kubernetes.azure.com/scalesetpriority": "spot"} if spot else {}),
    }
    taint = {"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"}
    settings = {"type": "Standard_D2s_v3", "zone": "westeurope-1", **rest}
    settings["taints"] = [*([taint] if spot else []), *settings.get("taints", ())]
    return node(name, {**labels, **settings.pop("labels", {})}, **settings)


def openshift_node(name: str, machine_set: str, *, role: str = "worker", **rest: Any) -> Manifest:
    labels = {f"node-role.kubernetes.io/{role}": "", "node.openshift.io/os_id": "rhel"}
    annotations = {"machine.openshift.io/machine": f"openshift-machine-api/{machine_set}-x7k2p"}
    settings = {"type": "m5.large", "zone": "us-east-1a", "annotations": annotations, **rest}
    return node(name, {**labels, **settings.pop("labels", {})}, **settings)


def control_plane_taint(role: str = "control-plane") -> Manifest:
    return {"key": f"node-role.kubernetes.io/{role}", "effect": "NoSchedule"}
