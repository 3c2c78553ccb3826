"""The client and the reflector on a real API server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.live.control_plane import ControlPlane

from karpool.kube.backoff import Backoff
from karpool.kube.client import Client
from karpool.kube.errors import (
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    TooManyRequestsError,
    UnreachableError,
)
from karpool.kube.kubeconfig import find_target
from karpool.kube.reflector import Reflector
from karpool.kube.transport import Timeouts
from karpool.live.resources import NAMESPACES, NODES, PLAIN_CONFIG_MAPS, POD_DISRUPTION_BUDGETS, PODS
from karpool.model.workloads import ConfigMap


@asynccontextmanager
async def connected(kubeconfig: Path, **options: Any) -> AsyncIterator[Client]:
    async with Client(find_target(kubeconfig=kubeconfig), **options) as client:
        yield client


async def namespace(client: Client, name: str) -> str:
    """A namespace of one's own; it stays, as nobody here deletes what is in it."""
    return (await client.create(NAMESPACES, {"metadata": {"generateName": f"{name}-"}})).name


async def running_pod(client: Client, space: str, name: str) -> str:
    """A pod that runs, as far as the API server knows; returns its uid."""
    spec = {"nodeName": "somewhere", "containers": [{"name": "c", "image": "i"}]}
    pod = await client.create(
        PODS, {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}, namespace=space
    )
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await client.merge_patch(PODS, name, {"status": status}, namespace=space, subresource="status")
    return pod.metadata.uid


def settings(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


class Copy:
    def __init__(self) -> None:
        self.known: dict[str, dict[str, str]] = {}
        self.replaced = 0
        self.changed = asyncio.Event()

    def put(self, config_map: ConfigMap) -> None:
        self.known[config_map.name] = config_map.data
        self.changed.set()

    def remove(self, config_map: ConfigMap) -> None:
        del self.known[config_map.name]
        self.changed.set()

    def replace(self, config_maps: Sequence[ConfigMap], resource_version: str) -> None:
        assert int(resource_version) > 0
        self.known = {config_map.name: config_map.data for config_map in config_maps}
        self.replaced += 1
        self.changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not holds():
                self.changed.clear()
                await self.changed.wait()


def test_the_server_says_which_version_it_is(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with connected(control_plane.kubeconfig()) as client:
            assert msgspec.json.decode(await client.raw("GET", "/version"))["major"]

    asyncio.run(scenario())


def test_lists_come_in_pages(control_plane: ControlPlane) -> None:
    asked = []

    async def scenario() -> None:
        async with connected(control_plane.kubeconfig(), on_request=lambda *call: asked.append(call[:3])) as client:
            space = await namespace(client, "pages")
            for name in "abcde":
                await client.create(PLAIN_CONFIG_MAPS, settings(name), namespace=space)
            asked.clear()
            listed = await client.list(PLAIN_CONFIG_MAPS, namespace=space, page=2)
            assert [config_map.key for config_map in listed.items] == [f"{space}/{name}" for name in "abcde"]
            assert int(listed.resource_version) > 0
            assert asked == [("list", "configmaps", 200)] * 3
            only = await client.list(PLAIN_CONFIG_MAPS, namespace=space, field_selector="metadata.name=c")
            assert [config_map.name for config_map in only.items] == ["c"]

    asyncio.run(scenario())


def test_a_watch_tells_of_changes_since_a_list(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with connected(control_plane.kubeconfig()) as client:
            space = await namespace(client, "watch")
            since = (await client.list(PLAIN_CONFIG_MAPS, namespace=space)).resource_version
            made = await client.create(PLAIN_CONFIG_MAPS, settings("a", x="1"), namespace=space)
            await client.merge_patch(PLAIN_CONFIG_MAPS, "a", {"data": {"x": None, "y": "2"}}, namespace=space)
            await client.delete(PLAIN_CONFIG_MAPS, "a", namespace=space, uid=made.metadata.uid)
            async with aclosing(client.watch(PLAIN_CONFIG_MAPS, since, namespace=space, timeout_seconds=2)) as events:
                seen = [(event.type, event.object.data) async for event in events if event.type != "BOOKMARK"]
            assert seen == [("ADDED", {"x": "1"}), ("MODIFIED", {"y": "2"}), ("DELETED", {"y": "2"})]

    asyncio.run(scenario())


def test_writes_hold_to_the_version_and_the_uid(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with connected(control_plane.kubeconfig()) as client:
            space = await namespace(client, "writes")
            made = await client.create(PLAIN_CONFIG_MAPS, settings("a", x="1"), namespace=space)
            version = made.metadata.resource_version
            patch: dict[str, Any] = {"data": {"x": "2"}}
            await client.merge_patch(PLAIN_CONFIG_MAPS, "a", patch, namespace=space, resource_version=version)
            with pytest.raises(ConflictError) as conflict:
                await client.merge_patch(
                    PLAIN_CONFIG_MAPS, "a", {"data": {}}, namespace=space, resource_version=version
                )
            assert not conflict.value.already_exists
            with pytest.raises(ConflictError) as exists:
                await client.create(PLAIN_CONFIG_MAPS, settings("a"), namespace=space)
            assert exists.value.already_exists
            with pytest.raises(ConflictError):
                await client.delete(PLAIN_CONFIG_MAPS, "a", namespace=space, uid="another")
            await client.delete(PLAIN_CONFIG_MAPS, "a", namespace=space, uid=made.metadata.uid)
            with pytest.raises(NotFoundError):
                await client.get(PLAIN_CONFIG_MAPS, "a", namespace=space)

    asyncio.run(scenario())


def test_an_eviction_is_for_one_pod_and_asks_its_budget(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with connected(control_plane.kubeconfig()) as client:
            space = await namespace(client, "evictions")
            web, free = await running_pod(client, space, "web"), await running_pod(client, space, "free")
            budget = {
                "metadata": {"name": "all"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
            }
            await client.create(POD_DISRUPTION_BUDGETS, budget, namespace=space)
            counted = {
                "observedGeneration": 1,
                "disruptionsAllowed": 0,
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "expectedPods": 1,
            }
            await client.merge_patch(
                POD_DISRUPTION_BUDGETS, "all", {"status": counted}, namespace=space, subresource="status"
            )
            with pytest.raises(TooManyRequestsError, match="The disruption budget all needs 1 healthy pods") as refused:
                await client.evict(space, "web", web)
            assert refused.value.by_budget
            with pytest.raises(ConflictError):
                await client.evict(space, "free", "another")
            await client.evict(space, "free", free)
            leaving = await client.get(PODS, "free", namespace=space)
            assert leaving.metadata.deletion_timestamp is not None
            await client.delete(PODS, "free", namespace=space, grace_seconds=0)
            with pytest.raises(NotFoundError):
                await client.evict(space, "free", free)
            # Other tests read the whole cluster.
            await client.delete(PODS, "web", namespace=space, grace_seconds=0)

    asyncio.run(scenario())


def test_refusals_have_their_types(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with connected(control_plane.user_kubeconfig("nobody")) as stranger:
            with pytest.raises(ForbiddenError, match="nobody"):
                await stranger.list(NODES)
        async with connected(control_plane.kubeconfig()) as client:
            with pytest.raises(InvalidError, match="containers: Required value"):
                await client.create(PODS, {"metadata": {"name": "a"}, "spec": {"containers": []}}, namespace="default")
        target = replace(find_target(kubeconfig=control_plane.kubeconfig()), authority=b"")
        async with Client(target, timeouts=Timeouts(retries=9)) as wary:
            with pytest.raises(UnreachableError, match="the certificate of the server is not trusted"):
                await wary.list(NODES)

    asyncio.run(scenario())


@pytest.mark.parametrize("streaming", [True, False])
def test_a_reflector_keeps_a_copy(control_plane: ControlPlane, *, streaming: bool) -> None:
    verbs: list[str] = []

    async def scenario() -> None:
        async with connected(control_plane.kubeconfig()) as client:
            space = await namespace(client, "reflector")
            for name in "ab":
                await client.create(PLAIN_CONFIG_MAPS, settings(name), namespace=space)
            sink = Copy()
            async with connected(control_plane.kubeconfig(), on_request=lambda *call: verbs.append(call[0])) as reading:
                waiting = 10.0 if streaming else 0.0
                reflector = Reflector(
                    reading, PLAIN_CONFIG_MAPS, sink, namespace=space, bookmark_seconds=waiting, watch_seconds=2
                )
                task = asyncio.create_task(reflector.run())
                await asyncio.wait_for(reflector.synced.wait(), 20)
                assert sink.known == {"a": {}, "b": {}}
                await client.delete(PLAIN_CONFIG_MAPS, "a", namespace=space)
                await client.merge_patch(PLAIN_CONFIG_MAPS, "b", {"data": {"x": "1"}}, namespace=space)
                await sink.until(lambda: sink.known == {"b": {"x": "1"}})
                await asyncio.sleep(2.5)  # the watch ends, and another takes over
                await client.create(PLAIN_CONFIG_MAPS, settings("c"), namespace=space)
                await sink.until(lambda: set(sink.known) == {"b", "c"})
                task.cancel()
            assert ("list" in verbs) != streaming
            assert verbs.count("watch") >= 2
            assert sink.replaced == 1

    asyncio.run(scenario())


def test_a_reflector_outlives_the_server_and_an_old_watch_is_gone(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with connected(control_plane.kubeconfig()) as client:
            space = await namespace(client, "restart")
            long_ago = (await client.list(PLAIN_CONFIG_MAPS)).resource_version
            sink = Copy()
            reflector = Reflector(client, PLAIN_CONFIG_MAPS, sink, namespace=space, backoff=Backoff(0.1, 0.5))
            task = asyncio.create_task(reflector.run())
            await client.create(PLAIN_CONFIG_MAPS, settings("a"), namespace=space)
            await sink.until(lambda: set(sink.known) == {"a"})
            control_plane.compact_etcd()
            control_plane.kill_apiserver()
            await asyncio.to_thread(control_plane.start_apiserver)
            await client.create(PLAIN_CONFIG_MAPS, settings("b"), namespace=space)
            await sink.until(lambda: set(sink.known) == {"a", "b"})
            with pytest.raises(GoneError):
                async for _ in client.watch(PLAIN_CONFIG_MAPS, long_ago, timeout_seconds=5):
                    pass
            task.cancel()

    asyncio.run(scenario())
