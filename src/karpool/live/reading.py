"""Reads a live cluster once: all kinds that decisions need, with the verb list only."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from karpool.kube.client import Client
from karpool.kube.errors import ApiError, ForbiddenError, NotFoundError, UnreadableError
from karpool.kube.list_watch import Listed
from karpool.kube.resources import Resource, Unreadable
from karpool.live import resources as known
from karpool.live.buffer_references import read_references
from karpool.live.gang_objects import read_gang_objects
from karpool.live.resources import collection_of
from karpool.model import nodepool_v1beta1
from karpool.model.group_sizes import STATUS_NAMESPACE
from karpool.model.labels import PAUSE_MAP, STATUS_MAP
from karpool.model.objects import Objects
from karpool.model.reading.kinds import AUTOSCALING, KARPENTER, KINDS
from karpool.model.reading.unreadable import stand_in
from karpool.model.workloads import ConfigMap
from karpool.wire.objects import Metadata, Object

Progress = Callable[[str, int, int | None], None]
Kinds = tuple[Resource[Any], ...]

REQUIRED: Final[Kinds] = (known.NODES, known.PODS)
_SELECTING: Final[Kinds] = (known.SERVICES, known.REPLICA_SETS, known.REPLICATION_CONTROLLERS)
# What decisions assume if a kind may not be listed.
_LOSSES: Final[dict[Resource[Any], str]] = {
    known.NODE_POOLS: "nodes of pools count as nodes without a pool, and nothing is replaced",
    known.NODE_CLAIMS: "nodes of pools count as nodes without a pool, and stay",
    known.POD_DISRUPTION_BUDGETS: "every pod counts as protected, and nodes with pods stay",
    known.DAEMON_SETS: "nobody knows what they take of nodes, and all nodes stay",
    known.PERSISTENT_VOLUME_CLAIMS: "pods with claims count as unable to move",
    known.PERSISTENT_VOLUMES: "pods with bound claims count as unable to move",
    known.STORAGE_CLASSES: "pods with unbound claims count as unable to move",
    known.CSI_NODES: "nobody knows how many volumes nodes can attach, and all nodes stay",
    known.NAMESPACES: "nobody knows whom affinities select, and all nodes stay",
    known.NODE_OVERLAYS: "they change no prices",
    known.CAPACITY_BUFFERS: "the room that they keep counts as free",
    known.STATEFUL_SETS: "a simulation gives them as many replicas as they have pods",
    **dict.fromkeys(_SELECTING, "their pods are not spread as the scheduler spreads them"),
}
DEVICES: Final[Kinds] = (
    known.RESOURCE_CLAIMS,
    known.RESOURCE_CLAIM_TEMPLATES,
    known.RESOURCE_SLICES,
    known.DEVICE_CLASSES,
)
"""The kinds that are read besides where pods have claims on devices."""
_WITHOUT_DEVICES: Final = "pods with dynamic resource claims count as unable to move"
_UNKNOWN_WITHOUT: Final = (
    known.POD_DISRUPTION_BUDGETS,
    known.DAEMON_SETS,
    known.CSI_NODES,
    known.NAMESPACES,
    known.RESOURCE_CLAIMS,
)
"""Kinds of which an empty list would mean that something is allowed."""
_OTHERS: Final[Kinds] = (known.STATEFUL_SETS, *_SELECTING)
DECIDED_ON: Final[Kinds] = (*REQUIRED, *(resource for resource in _LOSSES if resource not in _OTHERS))
"""The kinds that `plan` and `explain` read."""
SPREAD: Final[Kinds] = (*DECIDED_ON, *_OTHERS)
"""The kinds that they read with `--scheduler-config`."""
COMPACTED: Final[Kinds] = tuple(resource for resource in DECIDED_ON if resource.group not in (KARPENTER, AUTOSCALING))
"""The kinds that the compactor reads."""
SIMULATED: Final[Kinds] = (*DECIDED_ON, known.STATEFUL_SETS)
"""The kinds that a simulation of a cluster reads."""
_GANGS: Final[Kinds] = (known.POD_GROUPS, known.WORKLOADS)
KEPT: Final[Kinds] = (*SIMULATED, known.POD_TEMPLATES, known.DEPLOYMENTS, known.REPLICA_SETS, *DEVICES, *_GANGS)
"""The kinds in a snapshot file; of workloads what CapacityBuffers refer to, devices and gangs where pods have some."""
_MOST_NAMED: Final = 5


class CannotReadError(ApiError):
    """A kind that every decision needs may not be listed, or does not exist."""

    def __init__(self, resource: Resource[Any], cause: ApiError, done: str = "decided") -> None:
        message = f"{resource.plural} cannot be listed, and nothing can be {done} without them: {cause.message}"
        super().__init__(cause.status, cause.reason, message)


@dataclass(frozen=True, slots=True)
class Unlisted:
    """A kind that could not be listed."""

    resource: Resource[Any]
    problem: str

    def stand_ins(self) -> tuple[Object, ...]:
        """What to read instead: nothing, or an object that may be any and cannot be read."""
        if self.resource not in _UNKNOWN_WITHOUT:
            return ()
        problem = f"{self.resource.plural} cannot be listed: {self.problem}"
        return (stand_in(KINDS[self.resource.kind], b"", problem),)

    def __str__(self) -> str:
        loss = _LOSSES.get(self.resource, _WITHOUT_DEVICES)
        return f"{self.resource.plural} cannot be listed, so {loss}: {self.problem}"


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """A cluster as it was read, and what is missing from it."""

    objects: Objects
    unreadable: tuple[Unreadable, ...] = ()
    unlisted: tuple[Unlisted, ...] = ()
    problems: tuple[str, ...] = ()
    """About single objects that could not be read."""

    def notes(self) -> Iterator[str]:
        yield from map(str, self.unlisted)
        yield from self.problems
        for unreadable in self.unreadable[:_MOST_NAMED]:
            yield f"cannot be read, so nothing is decided that depends on it: {unreadable}"
        if len(self.unreadable) > _MOST_NAMED:
            yield f"cannot be read likewise: {len(self.unreadable) - _MOST_NAMED} more objects"


async def read_cluster(
    client: Client,
    *,
    resources: Kinds = DECIDED_ON,
    devices: bool = False,
    progress: Progress = lambda _what, _done, _all: None,
) -> ClusterReading:
    """List the resources at the same time; kinds that the cluster does not have or does not show are empty.

    `devices`: where pods have claims on devices, list what these are about, too.
    """
    done = 0

    async def read(resource: Resource[Any]) -> Listed[Any] | Unlisted:
        nonlocal done
        answer = await _list(client, resource)
        done += 1
        progress("Reading the cluster", done, len(resources))
        return answer

    progress("Reading the cluster", 0, len(resources))
    by_resource: dict[Resource[Any], Any] = {}

    async def read_all(kinds: Kinds) -> None:
        # All lists are awaited before the first error is raised, so that no request outlives the client.
        found = await asyncio.gather(*map(read, kinds), return_exceptions=True)
        for answer in found:
            if isinstance(answer, BaseException):
                raise answer
        by_resource.update(zip(kinds, found, strict=True))

    await read_all(resources)
    if devices and any(pod.spec.resource_claims for pod in _items(by_resource[known.PODS])):
        resources = (*resources, *DEVICES)
        await read_all(DEVICES)
    answers = list(by_resource.values())
    listed = [answer for answer in answers if isinstance(answer, Listed)]
    collections = {collection_of(resource): _items(answer) for resource, answer in by_resource.items()}
    references = await read_references(client, collections.get(collection_of(known.CAPACITY_BUFFERS), ()))
    gangs = await read_gang_objects(client, collections.get(collection_of(known.PODS), ()))
    # A workload that is listed anyway is not there twice.
    collections = {**references.found, **gangs.found, **collections}
    return ClusterReading(
        Objects(**collections),
        tuple(entry for answer in listed for entry in answer.unreadable),
        tuple(answer for answer in answers if isinstance(answer, Unlisted)),
        (*references.problems, *gangs.problems),
    )


async def read_autoscaler_status(client: Client) -> ConfigMap | None:
    """What Cluster Autoscaler says of its groups, if it does; raises an ApiError if nobody may know."""
    try:
        return await client.get(known.CONFIG_MAPS, STATUS_MAP, namespace=STATUS_NAMESPACE)
    except (NotFoundError, UnreadableError):
        return None


async def read_pause(client: Client, namespace: str) -> ConfigMap | None:
    """The ConfigMap that pauses everything, if there is one; raises an ApiError if nobody may know."""
    try:
        return await client.get(known.PAUSES, PAUSE_MAP, namespace=namespace)
    except NotFoundError:
        return None
    except UnreadableError:
        return ConfigMap(metadata=Metadata(name=PAUSE_MAP, namespace=namespace))


def _items(answer: Listed[Any] | Unlisted) -> tuple[Any, ...]:
    return answer.items if isinstance(answer, Listed) else answer.stand_ins()


async def _list(client: Client, resource: Resource[Any]) -> Listed[Any] | Unlisted:
    try:
        return await _list_any_version(client, resource)
    except (ForbiddenError, NotFoundError) as error:
        if resource in REQUIRED:
            raise CannotReadError(resource, error) from error
        if resource.group in (KARPENTER, AUTOSCALING) and isinstance(error, NotFoundError):
            return Listed((), "")  # these kinds are not installed everywhere
        return Unlisted(resource, error.message)


async def _list_any_version(client: Client, resource: Resource[Any]) -> Listed[Any]:
    """The objects of a kind; where Karpenter is older than v1, of version v1beta1."""
    try:
        return await client.list(resource)
    except NotFoundError:
        if resource.group != KARPENTER:
            raise
    _, _, older = nodepool_v1beta1.API_VERSION.partition("/")
    return await client.list(replace(resource, version=older))
