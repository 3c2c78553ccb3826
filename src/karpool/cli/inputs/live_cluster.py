"""Reads from a live cluster: which one, how long to wait, and what to say when that fails."""

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeVar

import click
from msgspec.structs import replace

from karpool.cli.errors import say
from karpool.cli.options.input_options import KubeContext
from karpool.cli.progress import ReportProgress
from karpool.model.objects import Objects
from karpool.wire.problems import InputError

if TYPE_CHECKING:
    from karpool.kube.client import Client
    from karpool.kube.target import Target
    from karpool.kube.transport import Timeouts

T = TypeVar("T")

# A person waits at a terminal: a cluster that does not answer should be reported soon.
_SECONDS_TO_ANSWER: Final = 30.0
_SECONDS_OF_RETRIES: Final = 3.0


def query_cluster(kube: KubeContext, query: Callable[["Client"], Awaitable[T]]) -> T:
    """The answer of a live cluster to a query; errors name its context."""
    # Like the HTTP client, this takes a while to load: files and --help should not wait for it.
    import asyncio

    from karpool.kube.errors import ApiError
    from karpool.kube.transport import Timeouts

    target = target_of(kube)
    timeouts = Timeouts(response=_SECONDS_TO_ANSWER, retries=_SECONDS_OF_RETRIES)
    try:
        return asyncio.run(query_target(target, query, timeouts))
    except ApiError as error:
        where = f"context {target.context}"
        error.about = f"{where}: {error.about}" if error.about else where
        raise


class Purpose(Enum):
    DECIDE = "plans and explanations"
    DECIDE_SPREAD = "plans and explanations where the scheduler has constraints of its own"
    COMPACT = "the compactor"
    KEEP = "a snapshot"


def read_live(
    kube: KubeContext,
    report: ReportProgress,
    purpose: Purpose = Purpose.DECIDE,
    *,
    pause_namespace: str | None = None,
    devices: bool = False,
) -> Objects:
    """The objects of a live cluster, with a line on standard error for each gap; a pause where one is looked for.

    `devices`: also those that pods' claims on devices are about.
    """
    from karpool.cluster.node_groups import group_members
    from karpool.kube.errors import ForbiddenError
    from karpool.live.reading import (
        COMPACTED,
        DECIDED_ON,
        SIMULATED,
        SPREAD,
        read_autoscaler_status,
        read_cluster,
        read_pause,
    )

    kinds = {
        Purpose.DECIDE: DECIDED_ON,
        Purpose.DECIDE_SPREAD: SPREAD,
        Purpose.COMPACT: COMPACTED,
        Purpose.KEEP: SIMULATED,
    }[purpose]

    async def read(client: "Client") -> Objects:
        reading = await read_cluster(client, resources=kinds, devices=devices, progress=report)
        for note in reading.notes():
            say(note, 0)
        objects = reading.objects
        if group_members(objects):
            objects = await with_sizes(client, objects)
        if pause_namespace is None:
            return objects
        try:
            pause = await read_pause(client, pause_namespace)
        except ForbiddenError as error:
            say(f"nobody knows whether everything is paused, so the answer is as if it were not: {error.message}", 0)
            return objects
        return replace(objects, pauses=() if pause is None else (pause,))

    async def with_sizes(client: "Client", objects: Objects) -> Objects:
        try:
            status = await read_autoscaler_status(client)
        except ForbiddenError as error:
            say(f"nobody knows how small and large node groups may be: {error.message}", 0)
            return objects
        return replace(objects, autoscaler_statuses=() if status is None else (status,))

    return query_cluster(kube, read)


def context_name(kube: KubeContext) -> str:
    """The name of the context that is read."""
    return target_of(kube).context


def target_of(kube: KubeContext) -> "Target":
    from karpool.kube.kubeconfig import NoClusterError, find_target

    try:
        return find_target(kube.context, kube.kubeconfig)
    except NoClusterError as error:
        if kube.context is not None:
            raise InputError.at(f"context {kube.context}", error.problem.message) from error
        if not _takes_files():
            raise
        raise InputError.at("-f", f"is missing, and {error.problem.message}") from error


def _takes_files() -> bool:
    """Whether the command that runs has an option `-f`, which would do instead of a cluster."""
    context = click.get_current_context(silent=True)
    return context is None or any("-f" in parameter.opts for parameter in context.command.params)


async def query_target(target: "Target", query: Callable[["Client"], Awaitable[T]], timeouts: "Timeouts") -> T:
    from karpool.kube.client import Client
    from karpool.live import USER_AGENT

    async with Client(target, timeouts=timeouts, user_agent=USER_AGENT) as client:
        return await query(client)
