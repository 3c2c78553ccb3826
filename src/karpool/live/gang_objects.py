"""How many pods gangs need, from the PodGroups and Workloads of those schedulers that a cluster's pods name."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from karpool.kube.client import Client
from karpool.kube.errors import ForbiddenError, NotFoundError
from karpool.kube.resources import Resource
from karpool.live.resources import POD_GROUPS, WORKLOADS, collection_of
from karpool.model.gangs import COSCHEDULING, NATIVE, VOLCANO, gang_of
from karpool.model.pod import Pod
from karpool.wire.objects import Object

VERSIONS: Final[dict[tuple[str, bool], tuple[Resource[Any], ...]]] = {
    (COSCHEDULING, False): (POD_GROUPS,),
    (VOLCANO, False): (replace(POD_GROUPS, group=VOLCANO, version="v1beta1"),),
    (NATIVE, False): tuple(
        replace(POD_GROUPS, group=NATIVE, version=version) for version in ("v1beta1", "v1alpha3", "v1alpha2")
    ),
    (NATIVE, True): (WORKLOADS,),
}
"""By scheduler, and whether it reads Workloads: where the objects are, the newest version first."""


@dataclass(frozen=True, slots=True)
class GangObjects:
    """The objects that were found, by the field of `Objects` for them; and a line for each kind that was refused."""

    found: dict[str, tuple[Object, ...]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


async def read_gang_objects(client: Client, pods: Iterable[Pod]) -> GangObjects:
    """Read what says how many pods gangs need, if pods wait as gangs; kinds that do not exist have no objects."""
    waiting = (pod for pod in pods if pod.waits_for_node)
    kinds = {(gang.scheduler, gang.in_workload) for pod in waiting if (gang := gang_of(pod)) is not None}
    found: dict[str, tuple[Object, ...]] = {}
    problems = []
    for kind in sorted(kinds & VERSIONS.keys()):
        try:
            items = await _first_version(client, VERSIONS[kind])
        except ForbiddenError as error:
            resource = VERSIONS[kind][0]
            problems.append(
                f"{resource.plural}.{resource.group} cannot be listed, so all waiting pods of a gang count as needed"
                f" at once: {error.message}"
            )
        else:
            collection = collection_of(VERSIONS[kind][0])
            found[collection] = (*found.get(collection, ()), *items)
    return GangObjects(found, tuple(problems))


async def _first_version(client: Client, versions: tuple[Resource[Any], ...]) -> tuple[Object, ...]:
    for resource in versions:
        try:
            return (await client.list(resource)).items
        except NotFoundError:
            continue
    return ()
