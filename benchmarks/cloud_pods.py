"""What makes pods of generated clusters different: volumes, local data, annotations; and who is on other nodes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from random import Random
from typing import Final

from cloud_fleets import Cloud, Fleet
from msgspec.structs import replace
from tests.factories import affinity, host_path_volume, local_volume, pod, pv, pvc, storage_class

from karpool.model.labels import DO_NOT_DISRUPT, HOSTNAME, OS, ZONE
from karpool.model.node import Node
from karpool.model.pod import ClaimVolume, EmptyDir, HostPath, Pod, Volume
from karpool.model.scheduling import NodeExpression, NodeTerm
from karpool.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from karpool.wire.objects import OwnerReference

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
CLASS: Final = "standard"
MIRROR: Final = "kubernetes.io/config.mirror"


@dataclass(frozen=True)
class Work:
    """Pods, and the volumes that they have claims on."""

    pods: tuple[Pod, ...]
    volumes: tuple[PersistentVolume, ...]
    claims: tuple[PersistentVolumeClaim, ...]
    classes: tuple[StorageClass, ...]


def varied(pods: Iterable[Pod], nodes: Mapping[str, Node], cloud: Cloud, random: Random) -> Work:
    """The pods, workload by workload with something of its own now and then."""
    made: list[Pod] = []
    volumes: list[PersistentVolume] = []
    claims: list[PersistentVolumeClaim] = []
    attached: Counter[str] = Counter()
    for _, found in groupby(pods, key=lambda entry: entry.metadata.owner_references[0].name):
        kind, group = _kind(random), list(found)
        wanted = Counter(entry.spec.node_name for entry in group)
        if kind == "volumes" and cloud.driver and max((attached + wanted).values()) <= cloud.attachments:
            attached += wanted
            group = [_stateful(entry, number) for number, entry in enumerate(group)]
            volumes += [_volume(entry, nodes[entry.spec.node_name], cloud) for entry in group]
            claims += [_claim(entry) for entry in group]
        elif kind == "directories":
            group = [_stateful(entry, number) for number, entry in enumerate(group)]
            volumes += [_directory(entry, random) for entry in group]
            claims += [_claim(entry) for entry in group]
        made += [_changed(entry, kind) for entry in group]
    return Work(tuple(made), tuple(volumes), tuple(claims), _classes(cloud))


def _kind(random: Random) -> str:
    draw = random.random()
    for kind, share in _SHARES:
        if draw < share:
            return kind
        draw -= share
    return ""


_SHARES: Final = (
    ("volumes", 0.08),
    ("emptyDir", 0.1),
    ("safe", 0.05),
    ("unsafe", 0.02),
    ("bare", 0.015),
    ("hostPath", 0.01),
    ("directories", 0.01),
    ("selector", 0.005),
    ("field", 0.005),
    ("do-not-disrupt", 0.01),
)


def _changed(entry: Pod, kind: str) -> Pod:
    metadata, spec = entry.metadata, entry.spec
    if kind == "emptyDir":
        return replace(entry, spec=replace(spec, volumes=(Volume(name="scratch", empty_dir=EmptyDir()),)))
    if kind == "hostPath":
        return replace(entry, spec=replace(spec, volumes=(Volume(name="logs", host_path=HostPath()),)))
    if kind == "selector":
        return replace(entry, spec=replace(spec, node_selector={HOSTNAME: spec.node_name}))
    if kind == "field":
        own = NodeTerm(match_fields=(NodeExpression("metadata.name", "In", (spec.node_name,)),))
        return replace(entry, spec=replace(spec, affinity=affinity(terms=[own])))
    if kind == "bare":
        return replace(entry, metadata=replace(metadata, owner_references=()))
    notes = {
        "safe": {SAFE_TO_EVICT: "true"},
        "unsafe": {SAFE_TO_EVICT: "false"},
        "do-not-disrupt": {DO_NOT_DISRUPT: "true"},
    }
    return replace(entry, metadata=replace(metadata, annotations={**metadata.annotations, **notes.get(kind, {})}))


def _stateful(entry: Pod, number: int) -> Pod:
    """A pod of a StatefulSet with a volume of its own."""
    app = entry.metadata.labels["app"]
    name = f"{app}-{number}"
    owner = OwnerReference(kind="StatefulSet", name=app, api_version="apps/v1", controller=True)
    claim = Volume(name="data", persistent_volume_claim=ClaimVolume(claim_name=f"data-{name}"))
    metadata = replace(entry.metadata, name=name, uid=f"pod-{name}", owner_references=(owner,))
    return replace(entry, metadata=metadata, spec=replace(entry.spec, volumes=(claim,)))


def _volume_name(entry: Pod) -> str:
    return f"pvc-{entry.metadata.namespace}-{entry.name}"


def _volume(entry: Pod, node: Node, cloud: Cloud) -> PersistentVolume:
    """A disk in the zone of its pod's node; where there are no zones, a directory of that node."""
    zone = node.metadata.labels.get(ZONE)
    if zone is None:
        return local_volume(_volume_name(entry), node.metadata.labels[HOSTNAME])
    return pv(_volume_name(entry), zones=(zone,), driver=cloud.driver)


def _directory(entry: Pod, random: Random) -> PersistentVolume:
    """A directory of the node that its pod is on, which says so in one of the ways there are."""
    name, node = _volume_name(entry), entry.spec.node_name
    return random.choice((local_volume(name, node), local_volume(name, None), host_path_volume(name)))


def _claim(entry: Pod) -> PersistentVolumeClaim:
    return pvc(
        f"data-{entry.name}", namespace=entry.metadata.namespace, volume=_volume_name(entry), storage_class=CLASS
    )


def _classes(cloud: Cloud) -> tuple[StorageClass, ...]:
    return (storage_class(CLASS, provisioner=cloud.driver),) if cloud.driver else ()


# -- nodes that take no usual workloads ------------------------------------------------------------------------------


def guests_of(node: Node, fleet: Fleet, random: Random) -> Iterator[Pod]:
    """What runs on a node that is there for something else."""
    name = node.name
    if fleet.guests == "gpu":
        devices = node.status.allocatable["nvidia.com/gpu"].units
        for number in range(random.randrange(devices + 1)):
            yield pod(
                f"infer-{name}-{number}",
                node=name,
                cpu="1",
                memory="4Gi",
                requests={"nvidia.com/gpu": 1},
                tolerations=("",),
            )
    elif fleet.guests == "windows":
        yield pod(f"iis-{name}-0", node=name, selector={OS: "windows"}, tolerations=("",))
    elif fleet.guests == "fargate":
        yield pod(f"job-{name}-0", node=name, cpu="250m", memory="512Mi", tolerations=("",))
    elif fleet.guests == "virtual":
        yield pod(f"burst-{name}-0", node=name, selector={"type": "virtual-kubelet"}, tolerations=("",))
    elif fleet.guests == "static":
        for part in ("etcd", "kube-apiserver"):
            yield pod(
                f"{part}-{name}",
                node=name,
                namespace="kube-system",
                owner="Node",
                annotations={MIRROR: "x"},
                tolerations=("",),
            )
