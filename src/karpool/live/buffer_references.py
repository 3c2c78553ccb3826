"""What CapacityBuffers refer to: their PodTemplates and workloads, read one by one, because there are few."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from karpool.kube.client import Client
from karpool.kube.errors import ApiError, NotFoundError
from karpool.kube.resources import Resource
from karpool.live import resources as known
from karpool.live.resources import collection_of
from karpool.model.capacity_buffer import CapacityBuffer
from karpool.model.headroom import is_scalable
from karpool.wire.objects import Object

_WORKLOADS: Final[dict[str, Resource[Any]]] = {
    resource.kind: resource for resource in (known.DEPLOYMENTS, known.STATEFUL_SETS, known.REPLICA_SETS)
}
_AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True)
class BufferReferences:
    """The objects that were found, by the field of `Objects` for them; and a line for each that cannot be read."""

    found: dict[str, tuple[Object, ...]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


async def read_references(client: Client, buffers: Iterable[CapacityBuffer]) -> BufferReferences:
    """Read what buffers refer to; what does not exist is not there."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def read(resource: Resource[Any], namespace: str, name: str) -> Object | str | None:
        async with slots:
            try:
                answer: Object = await client.get(resource, name, namespace=namespace)
            except NotFoundError:
                return None
            except ApiError as error:
                return f"{resource.kind} {namespace}/{name} of a CapacityBuffer cannot be read: {error.message}"
            return answer

    wanted = sorted(set(filter(None, map(_reference, buffers))), key=lambda ref: (ref[0].kind, *ref[1:]))
    answers = await asyncio.gather(*(read(*reference) for reference in wanted))
    found: dict[str, tuple[Object, ...]] = {}
    for (resource, *_), answer in zip(wanted, answers, strict=True):
        if isinstance(answer, Object):
            field_of = collection_of(resource)
            found[field_of] = (*found.get(field_of, ()), answer)
    return BufferReferences(found, tuple(answer for answer in answers if isinstance(answer, str)))


def _reference(buffer: CapacityBuffer) -> tuple[Resource[Any], str, str] | None:
    spec, namespace = buffer.spec, buffer.metadata.namespace
    if spec.pod_template_ref is not None:
        return known.POD_TEMPLATES, namespace, spec.pod_template_ref.name
    if spec.scalable_ref is not None and is_scalable(spec.scalable_ref):
        return _WORKLOADS[spec.scalable_ref.kind], namespace, spec.scalable_ref.name
    return None
