"""The kinds that a recorder follows on a live cluster, and under which group and version they may be served."""

from dataclasses import replace
from typing import Any, Final

from karpool.kube.client import Client
from karpool.kube.errors import ForbiddenError, NotFoundError
from karpool.kube.resources import Resource
from karpool.live import resources as known
from karpool.live.gang_objects import VERSIONS
from karpool.live.reading import KEPT, REQUIRED, CannotReadError
from karpool.model import nodepool_v1beta1
from karpool.recording.history import RECORDED

NOT_SERVED: Final = "the cluster does not have this kind"
_OLDER: Final = nodepool_v1beta1.API_VERSION.partition("/")[2]
_GANGS: Final = tuple(one for versions in VERSIONS.values() for one in versions if one.kind == known.POD_GROUPS.kind)


def _variants(resource: Resource[Any]) -> tuple[Resource[Any], ...]:
    if resource is known.POD_GROUPS:
        return _GANGS
    if resource in (known.NODE_POOLS, known.NODE_CLAIMS):
        return resource, replace(resource, version=_OLDER)
    return (resource,)


FOLLOWED: Final = tuple(_variants(resource) for resource in KEPT if resource.kind in RECORDED or resource is known.PODS)
"""For each kind where it may be found, the best first; of gangs, those of one scheduler are followed."""


async def served(client: Client, variants: tuple[Resource[Any], ...]) -> Resource[Any] | str:
    """The first of these that the cluster lists, or why it lists none; pods and nodes are needed."""
    refusal: Exception | None = None
    for resource in variants:
        try:
            await client.raw("GET", resource.path(), params={"limit": "1"})
        except NotFoundError as error:
            refusal = refusal or error
        except ForbiddenError as error:
            refusal = error
        else:
            return resource
    if variants[0] in REQUIRED and isinstance(refusal, ForbiddenError | NotFoundError):
        raise CannotReadError(variants[0], refusal, "recorded") from refusal
    return refusal.message if isinstance(refusal, ForbiddenError) else NOT_SERVED
