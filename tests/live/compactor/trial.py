"""A trial of the compactor in this process, on a control plane that no other test uses at the same time."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.live.control_plane import ControlPlane
from tests.live.trial import MERGE, Trial

from karpool.compaction.config import KEY
from karpool.compaction.marks import Mark, decode_mark
from karpool.compaction.settings import CompactionSettings
from karpool.compactor.compactor import Compactor, CompactorSettings
from karpool.kube.clock import utc_now
from karpool.kube.errors import ConflictError, NotFoundError
from karpool.kube.target import Target
from karpool.live import resources as r
from karpool.live.resources import PLAIN_CONFIG_MAPS
from karpool.model.node import Node

QUICK = CompactionSettings(
    needed_marked_time=timedelta(seconds=1),
    minimum_node_age=timedelta(0),
    sleep=timedelta(seconds=1),
    drain_interval=timedelta(seconds=0.3),
)
ENABLED = {"enabled": True, "scaleDownCPURequestRatioLimit": 0.75, "scaleDownRequiredUnderutilizedNodeCount": 1}


def node(name: str, pool: str, cpu: str = "4") -> dict[str, Any]:
    """A node of a GKE pool."""
    size = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    labels = {"cloud.google.com/gke-nodepool": pool, "kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": size, "allocatable": size, "conditions": [{"type": "Ready", "status": "True"}]},
    }


class CompactorTrial(Trial):
    """Starts compactors in place of controllers; their ConfigMap goes with them."""

    def __init__(self, plane: ControlPlane, **settings: Any) -> None:
        super().__init__(plane)
        self.config_map = f"compactor-{uuid.uuid4().hex[:8]}"
        whole = {"compaction": QUICK, "config_map": self.config_map, "namespace": "default", "metrics_address": None}
        self.compactor_settings = CompactorSettings(**whole | settings)

    async def __aexit__(self, *failure: object) -> None:
        with suppress(NotFoundError):
            await self.client.delete(PLAIN_CONFIG_MAPS, self.config_map, namespace="default")
        await super().__aexit__(*failure)

    def start(
        self, *, target: Target | None = None, wall: Callable[[], datetime] = utc_now, **settings: Any
    ) -> asyncio.Task[None]:
        """Start a compactor; `wall`: another local clock."""
        compactor = Compactor(replace(self.compactor_settings, **settings), target or self.target, wall=wall)
        stop = asyncio.Event()
        task = asyncio.create_task(compactor.run(stop))
        self.operators[task] = (compactor, stop)
        return task

    def compactor(self, task: asyncio.Task[None]) -> Compactor:
        return self.operators[task][0]

    # -- objects -------------------------------------------------------------------------------------------------

    async def configure(self, text: str | None = None, **pools: Any) -> None:
        """Write the configuration: a text, or what it says of pools by name."""
        data = {KEY: json.dumps({"nodePools": pools}) if text is None else text}
        try:
            await self.client.create(
                PLAIN_CONFIG_MAPS, {"metadata": {"name": self.config_map}, "data": data}, namespace="default"
            )
        except ConflictError:
            path = PLAIN_CONFIG_MAPS.path("default", self.config_map)
            await self.client.raw("PATCH", path, body=json.dumps({"data": data}).encode(), content_type=MERGE)

    async def node(self, name: str) -> Node:
        return await self.client.get(r.NODES, name)

    async def mark(self, name: str) -> Mark:
        return decode_mark((await self.node(name)).metadata.annotations)

    async def places(self) -> list[str]:
        """The nodes of the pods that run."""
        return sorted(pod.spec.node_name for pod in await self.running())

    # -- waiting -------------------------------------------------------------------------------------------------

    async def expect_marked(self, name: str) -> Mark:
        return await self._until_mark(name, "is marked", lambda mark: mark.marked)

    async def expect_unmarked(self, name: str) -> Mark:
        return await self._until_mark(name, "is not marked", lambda mark: not mark.marked)

    async def expect_begun(self, name: str) -> None:
        """Wait until a node is cordoned by the compactor."""
        await self._until_mark(name, "is on its way out", lambda mark: mark.in_progress)
        assert (await self.node(name)).spec.unschedulable

    async def expect_drained(self, name: str) -> None:
        await self._until_mark(name, "is drained", lambda mark: mark.drained_at is not None)

    async def expect_given_up(self, name: str) -> Mark:
        """Wait until a node takes pods again."""
        mark = await self._until_mark(name, "is given up", lambda mark: mark.retry_after is not None)
        assert not (await self.node(name)).spec.unschedulable
        return mark

    async def until_told(self, reason: str, about: str) -> str:
        """Wait for an event about a node; what it says."""

        async def told() -> bool:
            return bool(await self.told(reason, about))

        await self.until(f"{reason} is told of {about}", told)
        return (await self.told(reason, about))[-1]

    async def told(self, reason: str, about: str) -> list[str]:
        """What was said of a node; one of the same name in another test is not meant."""
        uid = (await self.node(about)).metadata.uid
        return [event.message for event in await self.events(reason, about) if event.involved_object.uid == uid]

    async def _until_mark(self, name: str, what: str, holds: Callable[[Mark], bool]) -> Mark:
        async def reached() -> bool:
            return holds(await self.mark(name))

        await self.until(f"{name} {what}", reached)
        return await self.mark(name)

    async def picture(self) -> str:
        """What there is, with the marks of the nodes."""
        marks = [f"node {node.name} {decode_mark(node.metadata.annotations)}" for node in await self.nodes()]
        return "\n".join([await super().picture(), *marks])


def play(plane: ControlPlane, scenario: Callable[[CompactorTrial], Awaitable[None]], **settings: Any) -> None:
    """Run a story on a trial of its own."""

    async def whole() -> None:
        async with CompactorTrial(plane, **settings) as trial:
            await scenario(trial)

    asyncio.run(whole())


def mounted(folder: Path, text: str) -> Path:
    """Write a file as the kubelet mounts a ConfigMap: behind a link to a folder, which is swapped at once."""
    version = folder / f"..{uuid.uuid4().hex[:8]}"
    version.mkdir()
    (version / KEY).write_text(text)
    link = folder / "..new"
    link.symlink_to(version.name)
    link.rename(folder / "..data")
    file = folder / KEY
    if not file.is_symlink():
        file.symlink_to(f"..data/{KEY}")
    return file
