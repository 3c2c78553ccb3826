"""The room that CapacityBuffers keep: how many pods of which template, and those pods, which exist only in memory.

A pod of headroom takes room as any other and has the rules of its template. Nobody creates, evicts or counts it: it is
only ever expected on a node.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from karpool.model.capacity_buffer import CapacityBuffer, ScalableRef
from karpool.model.objects import Objects
from karpool.model.pod import Pod, PodSpec, PodStatus
from karpool.model.requests import effective_requests
from karpool.model.workloads import PodTemplate, PodTemplateSpec, WorkloadObject
from karpool.wire.objects import Condition, Metadata

RESOLVED: Final = "Resolved"
TEMPLATE_NOT_FOUND: Final = "PodTemplateNotFound"
WORKLOAD_NOT_FOUND: Final = "ScalableRefNotFound"
FAILED: Final = "ResolutionFailed"
SCALABLE: Final = ("Deployment", "StatefulSet", "ReplicaSet")
MOST_PODS: Final = 5_000
"""Of one buffer; a slip of the keyboard must not fill the memory."""
_APPS: Final = ("", "apps")
_LOWEST_PRIORITY: Final = -(2**31)
_UNSCHEDULABLE: Final = PodStatus(
    phase="Pending", conditions=(Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
)


class HeadroomPod(Pod):
    """A pod that stands for room; no input can be read as one."""

    @property
    def is_headroom(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Headroom:
    """What a buffer asks for: its pods, or why it cannot be told what they are."""

    buffer: CapacityBuffer
    reason: str
    message: str
    pods: tuple[HeadroomPod, ...] = ()
    template: PodTemplate | None = None
    """The PodTemplate of the pods, if they are not those of a workload."""

    @property
    def ready(self) -> bool:
        return self.reason == RESOLVED


def with_headroom(objects: Objects) -> Objects:
    """A cluster in which the pods of its buffers wait for room."""
    if not objects.capacity_buffers:
        return objects
    pods = (pod for headroom in headroom_of(objects) for pod in headroom.pods)
    return replace(objects, pods=(*objects.pods, *pods))


def headroom_of(objects: Objects) -> tuple[Headroom, ...]:
    """What each buffer asks for, by key of the buffer."""
    templates = {template.key: template for template in objects.pod_templates}
    workloads = {
        (kind, entry.key): entry
        for kind, entries in zip(
            SCALABLE, (objects.deployments, objects.stateful_sets, objects.replica_sets), strict=True
        )
        for entry in entries
    }
    buffers = sorted(objects.capacity_buffers, key=lambda buffer: buffer.key)
    return tuple(resolve(buffer, templates, workloads) for buffer in buffers if not buffer.terminating)


def resolve(
    buffer: CapacityBuffer,
    templates: Mapping[str, PodTemplate],
    workloads: Mapping[tuple[str, str], WorkloadObject],
) -> Headroom:
    """What a buffer asks for; `templates` by key, `workloads` by kind and key."""
    spec, namespace = buffer.spec, buffer.metadata.namespace
    if buffer.unreadable:
        return Headroom(buffer, FAILED, f"cannot be read: {buffer.unreadable}")
    if spec.pod_template_ref is not None:
        template = templates.get(f"{namespace}/{spec.pod_template_ref.name}")
        if template is None:
            return Headroom(buffer, TEMPLATE_NOT_FOUND, f"there is no PodTemplate {spec.pod_template_ref.name}")
        return _resolved(buffer, template.template, None, template)
    if spec.scalable_ref is None:
        return Headroom(buffer, FAILED, "names neither a podTemplateRef nor a scalableRef")
    if not is_scalable(spec.scalable_ref):
        wanted = f"{spec.scalable_ref.kind}.{spec.scalable_ref.api_group or 'apps'}"
        return Headroom(buffer, FAILED, f"a scalableRef may name one of {', '.join(SCALABLE)}, not a {wanted}")
    workload = workloads.get((spec.scalable_ref.kind, f"{namespace}/{spec.scalable_ref.name}"))
    if workload is None:
        return Headroom(buffer, WORKLOAD_NOT_FOUND, f"there is no {spec.scalable_ref.kind} {spec.scalable_ref.name}")
    replicas = 1 if workload.spec.replicas is None else workload.spec.replicas
    return _resolved(buffer, workload.spec.template, replicas, None)


def is_scalable(ref: ScalableRef) -> bool:
    """Whether a reference names a kind of workload that buffers know."""
    return ref.kind in SCALABLE and ref.api_group in _APPS


def _resolved(
    buffer: CapacityBuffer, spec: PodTemplateSpec, replicas: int | None, template: PodTemplate | None
) -> Headroom:
    example = _pod(buffer, spec, 1)
    wanted = size(buffer, replicas, example)
    pods = tuple(_pod(buffer, spec, number) for number in range(1, min(wanted, MOST_PODS) + 1))
    message = (
        f"room for {wanted} pods" if wanted <= MOST_PODS else f"room for {wanted} pods, of which {MOST_PODS} count"
    )
    return Headroom(buffer, RESOLVED, message, pods, template)


def size(buffer: CapacityBuffer, replicas: int | None, example: Pod) -> int:
    """For how many pods a buffer keeps room; `replicas`: of its workload, if it has one."""
    spec = buffer.spec
    desired = [] if spec.replicas is None else [spec.replicas]
    if spec.percentage is not None and replicas:
        desired.append(math.ceil(replicas * spec.percentage / 100))
    requests = effective_requests(example)
    # What a pod asks nothing of holds any number of them.
    asked = {name: amount.nano for name, amount in requests.items() if amount.nano}
    held = [limit.nano // asked[name] for name, limit in spec.limits.items() if name in asked]
    if not desired:
        return min(held, default=0)
    return min([max(desired), *held])


def _pod(buffer: CapacityBuffer, template: PodTemplateSpec, number: int) -> HeadroomPod:
    meta = buffer.metadata
    return HeadroomPod(
        metadata=Metadata(
            # No object can have this name, so it is never mistaken for one.
            name=f"capacity-buffer:{meta.name}-{number}",
            namespace=meta.namespace,
            uid=f"{meta.uid}-{number}",
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            creation_timestamp=meta.creation_timestamp,
        ),
        spec=_without_volumes(template.spec),
        status=_UNSCHEDULABLE,
    )


def _without_volumes(spec: PodSpec) -> PodSpec:
    """A spec without a node and without volumes that have to be there before the pod."""
    volumes = (v for v in spec.volumes if v.persistent_volume_claim is None and v.ephemeral is None)
    return replace(spec, node_name="", volumes=tuple(volumes), priority=_LOWEST_PRIORITY)
