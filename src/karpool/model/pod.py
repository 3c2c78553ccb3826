"""Pods."""

from typing import Literal

from msgspec import field

from karpool.model.scheduling import Affinity, SpreadConstraint, Toleration
from karpool.wire.objects import Condition, Object, Timestamp, Wire
from karpool.wire.quantity import Quantity

Amounts = dict[str, Quantity]


class ContainerPort(Wire):
    """A port of a container; only ports of the host matter here."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = "TCP"


class Resources(Wire):
    requests: Amounts = {}
    limits: Amounts = {}
    claims: tuple[dict[str, str], ...] = ()


class Container(Wire):
    name: str = ""
    resources: Resources = Resources()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class ClaimVolume(Wire):
    claim_name: str


class EphemeralVolume(Wire):
    """A volume with a claim that lives as long as its pod; the claim's template is not read."""


class EmptyDir(Wire):
    medium: str = ""


class HostPath(Wire):
    path: str = ""


class DiskOfCloud(Wire):
    """A disk that a pod names itself, as clouds had it before CSI; the driver of the cloud attaches it today."""

    volume_id: str = field(name="volumeID", default="")
    pd_name: str = ""
    disk_name: str = ""

    @property
    def id(self) -> str:
        return self.volume_id or self.pd_name or self.disk_name


class Volume(Wire):
    """A volume of a pod; only the kinds that bind a pod to a node or are attached to it are told apart."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    empty_dir: EmptyDir | None = None
    host_path: HostPath | None = None
    aws_elastic_block_store: DiskOfCloud | None = None
    gce_persistent_disk: DiskOfCloud | None = None
    azure_disk: DiskOfCloud | None = None


class PodResourceClaim(Wire):
    """A claim on devices: one that is there, or one that is made for the pod from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodResourceClaimStatus(Wire):
    """The claim that was made for a pod; without a name it needs none."""

    name: str = ""
    resource_claim_name: str | None = None


class SchedulingGate(Wire):
    """What has to be lifted before a scheduler looks at the pod."""

    name: str = ""


class SchedulingGroup(Wire):
    """The PodGroup that a pod is scheduled with."""

    pod_group_name: str = ""


class WorkloadReference(Wire):
    """The group of a Workload that a pod is scheduled with, in Kubernetes 1.35."""

    name: str
    pod_group: str
    pod_group_replica_key: str = ""


class PodSystem(Wire):
    name: str = ""


class PodSpec(Wire):
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Amounts = {}
    os: PodSystem | None = None
    resources: Resources = Resources()
    priority: int | None = None
    priority_class_name: str = ""
    termination_grace_period_seconds: int | None = None
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduler_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None


class Waiting(Wire):
    reason: str = ""


class ContainerState(Wire):
    waiting: Waiting | None = None


class ContainerStatus(Wire):
    """What a container waits for, how often it restarted, and what it was given, while it is being resized in place."""

    name: str = ""
    state: ContainerState = ContainerState()
    restart_count: int = 0
    allocated_resources: Amounts = {}
    resources: Resources = Resources()

    @property
    def waits_for(self) -> str:
        """Why the container does not run; empty if it does, or nobody knows."""
        return "" if self.state.waiting is None else self.state.waiting.reason


class PodStatus(Wire):
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown", ""] = ""
    conditions: tuple[Condition, ...] = ()
    start_time: Timestamp | None = None
    nominated_node_name: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    allocated_resources: Amounts = {}
    """What the pod as a whole was given, while it is being resized in place."""
    resources: Resources = Resources()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class Pod(Object):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def terminal(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def active(self) -> bool:
        return self.metadata.deletion_timestamp is None and self.status.phase not in ("Succeeded", "Failed")

    @property
    def bound(self) -> bool:
        return bool(self.spec.node_name)

    def owned_by(self, kind: str) -> bool:
        for owner in self.metadata.owner_references:  # noqa: SIM110 - asked of every pod again and again
            if owner.kind == kind:
                return True
        return False

    @property
    def is_daemon(self) -> bool:
        return self.owned_by("DaemonSet")

    @property
    def is_mirror(self) -> bool:
        """Whether the pod is a static pod's mirror, owned by its node."""
        return self.owned_by("Node")

    @property
    def is_headroom(self) -> bool:
        """Whether the pod only stands for room that a CapacityBuffer keeps."""
        return False

    @property
    def reschedulable(self) -> bool:
        """Whether the pod needs another node when its own goes."""
        stays = self.active or (self.terminating and not self.terminal and self.owned_by("StatefulSet"))
        return stays and not self.is_daemon and not self.is_mirror

    @property
    def waits_for_node(self) -> bool:
        """Whether the pod will get a node as soon as one has room; a gated pod will not."""
        known = not self.unreadable
        return known and self.active and not self.bound and not self.is_daemon and not self.is_mirror and not self.gated

    @property
    def gated(self) -> bool:
        """Whether no scheduler looks at the pod yet."""
        conditions = self.status.conditions
        said = any(c.type == "PodScheduled" and c.reason == "SchedulingGated" for c in conditions)
        return bool(self.spec.scheduling_gates) or said

    @property
    def provisionable(self) -> bool:
        """Whether the scheduler found no node for the pod."""
        return (
            not self.unreadable
            and not self.spec.node_name
            and not self.status.nominated_node_name
            and not self.is_daemon
            and not self.is_mirror
            and any(c.type == "PodScheduled" and c.reason == "Unschedulable" for c in self.status.conditions)
        )
