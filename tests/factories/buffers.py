"""CapacityBuffers, PodTemplates and Deployments."""

from collections.abc import Mapping
from typing import Any

from karpool.model.capacity_buffer import CapacityBuffer, CapacityBufferSpec, ScalableRef, TemplateRef
from karpool.model.workloads import Deployment, PodTemplate, PodTemplateSpec, WorkloadSpec
from karpool.wire.objects import Metadata
from tests.factories.pods import pod
from tests.factories.values import Amount, amounts, selecting


def pod_template(name: str = "chunk", *, namespace: str = "default", **keywords: Any) -> PodTemplate:
    """A PodTemplate; keywords as of `pod`."""
    meta = Metadata(name=name, namespace=namespace, generation=1, uid=f"template-{name}")
    return PodTemplate(metadata=meta, template=_spec(namespace, **keywords))


def deployment(name: str, replicas: int | None = 1, *, namespace: str = "default", **keywords: Any) -> Deployment:
    """A Deployment; keywords as of `pod`."""
    template = _spec(namespace, **keywords)
    spec = WorkloadSpec(replicas=replicas, selector=selecting(template.metadata.labels), template=template)
    return Deployment(metadata=Metadata(name=name, namespace=namespace, generation=1), spec=spec)


def _spec(namespace: str, **keywords: Any) -> PodTemplateSpec:
    made = pod("chunk-1", namespace=namespace, **keywords)
    return PodTemplateSpec(
        metadata=Metadata(labels=made.metadata.labels, annotations=made.metadata.annotations), spec=made.spec
    )


def capacity_buffer(
    name: str = "spare",
    replicas: int | None = None,
    *,
    template: str | None = None,
    workload: str | None = None,
    percentage: int | None = None,
    limits: Mapping[str, Amount] | None = None,
    namespace: str = "default",
) -> CapacityBuffer:
    """A buffer; `workload` as `Deployment/web`, or `Kind.group/name`."""
    kind, _, workload_name = (workload or "").partition("/")
    kind, _, group = kind.partition(".")
    return CapacityBuffer(
        metadata=Metadata(name=name, namespace=namespace, uid=f"buffer-{name}", generation=1),
        spec=CapacityBufferSpec(
            pod_template_ref=None if template is None else TemplateRef(name=template),
            scalable_ref=None if workload is None else ScalableRef(kind=kind, name=workload_name, api_group=group),
            replicas=replicas,
            percentage=percentage,
            limits=amounts(limits or {}),
        ),
    )
