"""The resources of the Kubernetes API that Karpool asks for: where each is served, and how its objects are read."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Generic, TypeVar, cast
from urllib.parse import quote

import msgspec

from karpool.live import objects as own
from karpool.live.errors import UNDECODABLE
from karpool.model import node, nodepool, pod, storage, workloads
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.manifests.kinds import KARPENTER, KINDS, Kind
from karpool.model.manifests.reading import Raw, Reading, read_claim, read_object, read_pool
from karpool.model.problems import one_line
from karpool.model.selectors import LabelSelector
from karpool.model.wire import Metadata, Object

T = TypeVar("T", bound=Object)

_READERS: Final = {"NodePool": read_pool, "NodeClaim": read_claim}


@dataclass(frozen=True)
class Resource(Generic[T]):
    """One kind of object as the API serves it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    type: type[T]

    @property
    def api_version(self) -> str:
        """Group and version as objects write them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def collection(self) -> str:
        """The field of `Objects` that holds this kind; empty for kinds that decisions do not need."""
        return self._read_as.collection

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Where the API serves an object, or all of them."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        within = f"/namespaces/{_quoted(namespace)}" if namespace and self.namespaced else ""
        return f"{root}{within}/{self.plural}{_part(name)}{_part(subresource)}"

    def read(self, raw: Raw) -> "T | Unreadable":
        """An object from its JSON, or why it cannot be used."""
        reader = _READERS.get(self.kind)
        try:
            reading: Reading = reader(raw, self.api_version) if reader else read_object(raw, self._read_as)
        except UNDECODABLE as error:
            return Unreadable(self, _identity(raw), one_line(f"is not an object: {error}"), bytes(raw))
        if reading.object is None or reading.refused:
            flaw = reading.refused[0]
            problem = one_line(f"{flaw.field}: {flaw.message}" if flaw.field else flaw.message)
            return Unreadable(self, _identity(raw), problem, bytes(raw))
        return cast("T", reading.object)

    def bare(self, metadata: Metadata) -> T:
        """An object of which nothing but the metadata is known."""
        return self.type(metadata=metadata)

    @cached_property
    def _read_as(self) -> Kind:
        known = KINDS.get(self.kind)
        if known is not None and known.struct is self.type:
            return known
        return Kind(self.type, "", (self.group,), self.namespaced)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that was left out, because it cannot be decoded or breaks a rule that decisions rely on."""

    resource: Resource[Any]
    metadata: Metadata
    problem: str
    raw: bytes

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone."""
        return Object(metadata=self.metadata).key

    @property
    def stand_in(self) -> Object | None:
        """What to reckon with instead, so that nobody decides as if the object were not there."""
        if self.resource.kind == "Pod":
            return _careful_pod(self)
        if self.resource.kind == "PodDisruptionBudget":
            # Whom it covers is unknown: everybody in its namespace. Without a status it lets nobody go.
            spec = workloads.BudgetSpec(selector=LabelSelector())
            return workloads.PodDisruptionBudget(metadata=self.metadata, spec=spec)
        return None

    def __repr__(self) -> str:
        return f"Unreadable({self})"

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.key}: {self.problem}"


class _Place(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Placed(msgspec.Struct):
    spec: _Place = msgspec.field(default_factory=_Place)


def _careful_pod(found: Unreadable) -> pod.Pod:
    """A pod of which only the place is known: it must not be disturbed."""
    try:
        place = msgspec.json.decode(found.raw, type=_Placed).spec
    except msgspec.ValidationError:
        place = _Place()
    metadata = msgspec.structs.replace(found.metadata, annotations={DO_NOT_DISRUPT: "true"})
    spec, status = pod.PodSpec(node_name=place.node_name), pod.PodStatus(phase="Running")
    return pod.Pod(metadata=metadata, spec=spec, status=status)


class _Named(msgspec.Struct, rename="camel", frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identified(msgspec.Struct):
    metadata: _Named = _Named()


def _identity(raw: Raw) -> Metadata:
    """Who an object is, as far as that can be read."""
    try:
        found = msgspec.json.decode(raw, type=_Identified).metadata
    except UNDECODABLE:
        return Metadata()
    return Metadata(found.name, found.namespace, found.uid, resource_version=found.resource_version)


def _quoted(part: str) -> str:
    return quote(part, safe=":")


def _part(part: str) -> str:
    return f"/{_quoted(part)}" if part else ""


_STORAGE: Final = "storage.k8s.io"


def _within_namespaces(group: str, plural: str, struct: type[T]) -> Resource[T]:
    return Resource(group, "v1", plural, struct.__name__, namespaced=True, type=struct)


def _cluster_wide(group: str, plural: str, struct: type[T]) -> Resource[T]:
    return Resource(group, "v1", plural, struct.__name__, namespaced=False, type=struct)


PODS: Final = _within_namespaces("", "pods", pod.Pod)
NODES: Final = _cluster_wide("", "nodes", node.Node)
NODE_POOLS: Final = _cluster_wide(KARPENTER, "nodepools", nodepool.NodePool)
NODE_CLAIMS: Final = _cluster_wide(KARPENTER, "nodeclaims", nodepool.NodeClaim)
POD_DISRUPTION_BUDGETS: Final = _within_namespaces("policy", "poddisruptionbudgets", workloads.PodDisruptionBudget)
DAEMON_SETS: Final = _within_namespaces("apps", "daemonsets", workloads.DaemonSet)
DEPLOYMENTS: Final = _within_namespaces("apps", "deployments", workloads.Deployment)
REPLICA_SETS: Final = _within_namespaces("apps", "replicasets", workloads.ReplicaSet)
REPLICATION_CONTROLLERS: Final = _within_namespaces("", "replicationcontrollers", workloads.ReplicationController)
STATEFUL_SETS: Final = _within_namespaces("apps", "statefulsets", workloads.StatefulSet)
JOBS: Final = _within_namespaces("batch", "jobs", workloads.Job)
CRON_JOBS: Final = _within_namespaces("batch", "cronjobs", workloads.CronJob)
PERSISTENT_VOLUME_CLAIMS: Final = _within_namespaces("", "persistentvolumeclaims", storage.PersistentVolumeClaim)
PERSISTENT_VOLUMES: Final = _cluster_wide("", "persistentvolumes", storage.PersistentVolume)
STORAGE_CLASSES: Final = _cluster_wide(_STORAGE, "storageclasses", storage.StorageClass)
CSI_NODES: Final = _cluster_wide(_STORAGE, "csinodes", node.CSINode)
VOLUME_ATTACHMENTS: Final = _cluster_wide(_STORAGE, "volumeattachments", storage.VolumeAttachment)
NAMESPACES: Final = _cluster_wide("", "namespaces", workloads.Namespace)
PRIORITY_CLASSES: Final = _cluster_wide("scheduling.k8s.io", "priorityclasses", workloads.PriorityClass)

LEASES: Final = _within_namespaces("coordination.k8s.io", "leases", own.Lease)
EVENTS: Final = _within_namespaces("", "events", own.Event)
CONFIG_MAPS: Final = _within_namespaces("", "configmaps", own.ConfigMap)
CUSTOM_RESOURCE_DEFINITIONS: Final = _cluster_wide(
    "apiextensions.k8s.io", "customresourcedefinitions", own.CustomResourceDefinition
)

# Everything that decisions read: one resource for each field of `Objects`.
WATCHED: Final[tuple[Resource[Any], ...]] = (
    PODS,
    NODES,
    NODE_POOLS,
    NODE_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    JOBS,
    CRON_JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    CSI_NODES,
    NAMESPACES,
    PRIORITY_CLASSES,
    VOLUME_ATTACHMENTS,
)
