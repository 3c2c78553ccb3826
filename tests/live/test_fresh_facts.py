"""Nodes and their pods as the API server has them now, and how much is asked of it at a time."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from aiohttp import web
from tests.kube.scripted_server import ScriptedServer, listed, refuses, says
from tests.live.control_plane import ControlPlane

from karpool.execution.fresh_facts import FreshNode
from karpool.kube.cache import CacheFeed, ChangeQueue
from karpool.kube.client import Client
from karpool.kube.kubeconfig import find_target
from karpool.kube.store import Store
from karpool.live.fresh_facts import CONCURRENT_READS, MANY, SHARE, FactReader
from karpool.live.resources import NODES, PODS
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.wire.objects import Metadata

CONTAINER = {"name": "main", "image": "example.com/app"}


def raw_node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def raw_pod(name: str, node: object) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": name}
    spec = {"containers": [CONTAINER], "nodeName": node, "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def reader_on(client: Client, known: int) -> FactReader:
    """A reader that knows of so many nodes."""
    changes, nodes, pods = ChangeQueue(), Store[Node](), Store[Pod]()
    for number in range(known):
        nodes.put(Node(metadata=Metadata(name=f"n{number}")))
    return FactReader(client, CacheFeed(nodes, changes), CacheFeed(pods, changes))


class SmallServer(ScriptedServer):
    """Answers for nodes and pods, each answer a little later; counts how many requests are under way."""

    def __init__(self, *pods: dict[str, Any], gone: str = "") -> None:
        super().__init__(self._answer)
        self.pods = pods
        self.gone = gone
        self.under_way = 0
        self.most_under_way = 0

    @property
    def asked(self) -> Counter[str]:
        return Counter("pods" if request.path.endswith("/pods") else "nodes" for request in self.requests)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0.002)
        self.under_way -= 1
        return await self._content(request)(request)

    def _content(self, request: web.Request) -> Any:
        if request.path == "/api/v1/nodes":
            return listed(*(raw_node(f"n{number}") for number in range(200) if f"n{number}" != self.gone))
        if request.path != "/api/v1/pods":
            name = request.path.rpartition("/")[2]
            return refuses(404, "NotFound") if name == self.gone else says(raw_node(name))
        selector = request.query["fieldSelector"]
        if selector == "spec.nodeName!=":
            return listed(*self.pods)
        return listed(*(pod for pod in self.pods if f"spec.nodeName={pod['spec']['nodeName']}" == selector))


def read(server: SmallServer, names: list[str], *, known: int = 200) -> dict[str, FreshNode]:
    async def run() -> dict[str, FreshNode]:
        async with server, server.client() as client:
            reader = reader_on(client, known)
            halves = await asyncio.gather(reader.read(names), reader.read(names))
        assert halves[0] == halves[1]
        return halves[0]

    return asyncio.run(run())


def pods_by_node(facts: dict[str, FreshNode]) -> dict[str, list[str]]:
    return {name: [pod.name for pod in fresh.pods] for name, fresh in facts.items() if fresh.pods}


def test_at_most_four_nodes_are_read_at_a_time_by_all_who_ask() -> None:
    server = SmallServer(raw_pod("web", "n3"))
    facts = read(server, [f"n{number}" for number in range(MANY - 1)])
    assert server.most_under_way == CONCURRENT_READS == 4
    assert server.asked == {"nodes": 2 * (MANY - 1), "pods": 2 * (MANY - 1)}
    assert pods_by_node(facts) == {"n3": ["web"]}


def test_lists_of_single_nodes_ask_for_no_pages_so_that_older_servers_answer_from_their_cache() -> None:
    server = SmallServer()
    read(server, ["n1"])
    assert [dict(request.query) for request in server.requests if request.path.endswith("/pods")] == [
        {"fieldSelector": "spec.nodeName=n1"}
    ] * 2


@pytest.mark.parametrize(("known", "pod_lists"), [(MANY * SHARE, 1), (MANY * SHARE + 1, MANY)])
def test_much_of_a_cluster_is_read_in_one_list(known: int, pod_lists: int) -> None:
    names = [f"n{number}" for number in range(MANY)]
    server = SmallServer(raw_pod("web", "n3"), raw_pod("api", "n3"), raw_pod("other", "n150"), gone="n7")
    facts = read(server, names, known=known)
    assert server.asked["pods"] == 2 * pod_lists
    assert list(facts) == names
    assert [name for name in names if facts[name].node is None] == ["n7"]
    assert pods_by_node(facts) == {"n3": ["web", "api"]}
    assert not any(fresh.problem for fresh in facts.values())


def test_a_pod_whose_node_cannot_be_read_may_be_on_any_node_of_the_one_list() -> None:
    names = [f"n{number}" for number in range(MANY)]
    facts = read(SmallServer(raw_pod("lost", 7)), names, known=MANY)
    assert pods_by_node(facts) == {name: ["lost"] for name in names}
    assert all(fresh.pods[0].unreadable for fresh in facts.values())


def test_when_the_one_list_fails_nothing_is_known_of_any_node() -> None:
    names = [f"n{number}" for number in range(MANY)]

    async def run() -> dict[str, FreshNode]:
        async with ScriptedServer(refuses(403, "Forbidden")) as server, server.client() as client:
            return await reader_on(client, MANY).read(names)

    facts = asyncio.run(run())
    assert list(facts) == names
    assert all(fresh.problem and fresh.node is None for fresh in facts.values())


def test_one_list_and_many_say_the_same_on_a_real_api_server(control_plane: ControlPlane) -> None:
    names = [f"fresh-{number}" for number in range(MANY)]
    pods = [raw_pod(f"fresh-{number}", names[number % 3]) for number in range(7)]

    async def run() -> None:
        async with Client(find_target(kubeconfig=control_plane.kubeconfig())) as client:
            for name in names:
                await client.create(NODES, raw_node(name))
            for pod in [*pods, raw_pod("fresh-waits", None)]:
                await client.create(PODS, pod, namespace="default")
            try:
                singly = await reader_on(client, 1000).read(names)
                at_once = await reader_on(client, MANY).read(names)
                assert singly == at_once
                assert {len(fresh.pods) for fresh in singly.values()} == {0, 2, 3}
            finally:
                for name in names:
                    await client.delete(NODES, name)
                for pod in [*pods, raw_pod("fresh-waits", None)]:
                    await client.delete(PODS, pod["metadata"]["name"], namespace="default")

    asyncio.run(run())
