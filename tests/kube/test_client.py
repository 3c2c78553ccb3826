"""The client: typed objects, lists in pages, preconditions of writes, typed errors."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.kube.scripted_server import (
    ScriptedServer,
    listed,
    raw_object,
    refuses,
    run_against,
    says,
    streams,
)

from karpool.kube.api_objects import Lease, LeaseSpec
from karpool.kube.client import Client
from karpool.kube.credentials import FixedCredentials
from karpool.kube.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    NotLeadingError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
    UnreadableError,
)
from karpool.kube.resources import LEASES, Unreadable
from karpool.kube.target import Target
from karpool.kube.transport import Timeouts
from karpool.live.resources import NODE_POOLS, NODES, PODS
from karpool.wire.objects import Metadata

NOT_DECODABLE = {"spec": {"taints": "none"}}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PODS.path(), "/api/v1/pods"),
        (PODS.path("x", "a", "eviction"), "/api/v1/namespaces/x/pods/a/eviction"),
        (NODE_POOLS.path(name="a", subresource="status"), "/apis/karpenter.sh/v1/nodepools/a/status"),
        (NODES.path("x", "a"), "/api/v1/nodes/a"),
        (NODES.path(name="a/../b?c"), "/api/v1/nodes/a%2F..%2Fb%3Fc"),
    ],
)
def test_paths_are_those_of_the_api(path: str, expected: str) -> None:
    assert path == expected


def test_an_object_is_read_and_the_request_says_who_asks() -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        assert (await client.get(NODES, "a")).metadata.uid == "uid-a"

    (request,) = run_against([says(raw_object("a"))], scenario, user_agent="somebody/1.0").requests
    assert (request.method, request.path, request.headers["User-Agent"]) == ("GET", "/api/v1/nodes/a", "somebody/1.0")


def test_a_list_follows_its_pages() -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        nodes = await client.list(NODES, label_selector="a=b", field_selector="c=d", page=2)
        assert [node.name for node in nodes.items] == ["a", "b", "c"]
        assert nodes.resource_version == "7"

    pages = [listed(raw_object("a"), raw_object("b"), version="7", token="more"), listed(raw_object("c"), version="7")]  # noqa: S106 - of a page
    first, second = run_against(pages, scenario).requests
    assert first.query == {"limit": "2", "labelSelector": "a=b", "fieldSelector": "c=d"}
    assert second.query == first.query | {"continue": "more"}


def test_a_list_whose_pages_expire_is_read_once_more_in_one_piece() -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        assert [node.name for node in (await client.list(NODES, page=1)).items] == ["b", "c"]

    answers = [listed(raw_object("a"), token="more"), refuses(410, "Expired"), listed(raw_object("b"), raw_object("c"))]  # noqa: S106 - of a page
    assert run_against(answers, scenario).requests[-1].query == {}


def test_an_object_that_cannot_be_read_is_marked_in_a_list_and_reported() -> None:
    heard: list[Unreadable] = []

    async def scenario(_: ScriptedServer, client: Client) -> None:
        nodes = await client.list(NODES)
        marked = [(node.name, bool(node.unreadable)) for node in nodes.items]
        assert marked == [("a", False), ("b", True), ("c", False)]
        assert list(nodes.unreadable) == heard

    run_against(
        [listed(raw_object("a"), raw_object("b", **NOT_DECODABLE), raw_object("c"))],
        scenario,
        on_unreadable=heard.append,
    )
    assert [str(unreadable) for unreadable in heard] == ["Node b: spec.taints: expected a list, got text"]


@pytest.mark.parametrize("item", [b'{"metadata": {"name": "\xff"}}', b"3", b'"x"', b'{"metadata": {"name": 3}}'])
def test_an_item_may_be_anything(item: bytes) -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        for resource in (NODES, NODE_POOLS):
            answer = await client.list(resource)
            assert [item.unreadable for item in answer.items] == [entry.problem for entry in answer.unreadable]
            assert len(answer.unreadable) == 1
            assert str(answer.unreadable[0]).isprintable()

    run_against([says(b'{"items": [' + item + b"]}")], scenario)


def test_a_pool_that_breaks_a_rule_is_marked() -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        pools = await client.list(NODE_POOLS)
        assert [pool.name for pool in pools.items if not pool.unreadable] == ["good"]
        assert [(unreadable.key, "weight" in unreadable.problem) for unreadable in pools.unreadable] == [("bad", True)]

    run_against([listed(raw_object("good", spec={"weight": 5}), raw_object("bad", spec={"weight": 500}))], scenario)


@pytest.mark.parametrize(
    ("status", "reason", "error"),
    [
        (400, "BadRequest", ApiError),
        (401, "Unauthorized", UnauthorizedError),
        (403, "Forbidden", ForbiddenError),
        (404, "NotFound", NotFoundError),
        (409, "Conflict", ConflictError),
        (410, "Gone", GoneError),
        (422, "Invalid", InvalidError),
        (429, "TooManyRequests", TooManyRequestsError),
        (500, "InternalError", ServerError),
        (503, "ServiceUnavailable", ServerError),
        (302, "", ApiError),
    ],
)
def test_every_refusal_has_its_type_and_one_line(status: int, reason: str, error: type[ApiError]) -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        with pytest.raises(error) as caught:
            await client.create(NODES, raw_object("a"))
        assert type(caught.value) is error
        code = f"{status} {reason}".strip()
        assert str(caught.value) == f"create /api/v1/nodes: line one\\nline two ({code})"

    run_against([refuses(status, reason, "line one\nline two")], scenario)


def test_already_exists_differs_from_a_conflict() -> None:
    assert ConflictError(409, "AlreadyExists", "").already_exists
    assert not ConflictError(409, "Conflict", "").already_exists


@pytest.mark.parametrize("body", [b"<html>bad gateway</html>", b"\xff\xfe", b"", b"[1]", b"{" * 5000])
def test_a_refusal_may_say_anything(body: bytes) -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        with pytest.raises(ServerError) as caught:
            await client.create(NODES, raw_object("a"))
        assert str(caught.value).isprintable()

    run_against([says(body, status=502)], scenario)


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b'{"metadata": 3}', b"\xff"])
def test_an_answer_that_is_no_object_is_told(body: bytes) -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        with pytest.raises(UnreadableError):
            await client.get(NODES, "a")
        with pytest.raises(UnreadableError):
            await client.list(NODES)

    run_against([says(body)], scenario)


def test_the_refusal_of_a_budget_is_raised_at_once_with_its_words() -> None:
    causes = [
        {"reason": "DisruptionBudget", "message": "The disruption budget web needs 2 healthy pods and has 2 currently"}
    ]

    async def scenario(server: ScriptedServer, client: Client) -> None:
        with pytest.raises(TooManyRequestsError) as caught:
            await client.evict("x", "web-1", "u1")
        assert caught.value.by_budget
        assert "Cannot evict pod. The disruption budget web needs 2" in str(caught.value)
        assert len(server.requests) == 1

    refusal = refuses(429, "TooManyRequests", "Cannot evict pod.", details={"causes": causes, "retryAfterSeconds": 10})
    (request,) = run_against([refusal], scenario).requests
    assert (request.method, request.path) == ("POST", "/api/v1/namespaces/x/pods/web-1/eviction")
    assert request.body["deleteOptions"] == {"preconditions": {"uid": "u1"}}


def test_a_throttled_eviction_is_told_apart_from_a_refused_one() -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        with pytest.raises(TooManyRequestsError) as caught:
            await client.evict("x", "web-1", "u1")
        assert not caught.value.by_budget
        assert caught.value.retry_after == 1

    run_against([says("Too many requests", status=429, Retry_After="1")], scenario)


def test_writes_carry_their_preconditions() -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        await client.merge_patch(
            NODES, "a", {"metadata": {"labels": {"x": None}}}, resource_version="7", subresource="status"
        )
        await client.delete(PODS, "a", namespace="x", uid="u1", grace_seconds=0)
        await client.delete(PODS, "a", namespace="x")

    patch, delete, plain = run_against([says(raw_object("a"))], scenario).requests
    assert (patch.method, patch.path) == ("PATCH", "/api/v1/nodes/a/status")
    assert patch.headers["Content-Type"] == "application/merge-patch+json"
    assert patch.body == {"metadata": {"labels": {"x": None}, "resourceVersion": "7"}}
    assert delete.body["preconditions"] == {"uid": "u1"}
    assert delete.body["gracePeriodSeconds"] == 0
    assert "preconditions" not in plain.body


def test_a_created_object_says_its_kind() -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        await client.create(LEASES, Lease(Metadata("l"), LeaseSpec(holder_identity="me")), namespace="x")

    (request,) = run_against([says(raw_object("l"))], scenario).requests
    assert request.path == "/apis/coordination.k8s.io/v1/namespaces/x/leases"
    assert request.body == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l"},
        "spec": {"holderIdentity": "me"},
    }


def test_who_does_not_lead_writes_nothing_and_reads_on() -> None:
    leads = True

    async def scenario(_: ScriptedServer, client: Client) -> None:
        nonlocal leads
        await client.create(NODES, raw_object("a"))
        leads = False
        for write in (
            client.create(NODES, raw_object("a")),
            client.merge_patch(NODES, "a", {}),
            client.delete(NODES, "a"),
            client.evict("x", "a", "u"),
            client.raw("PUT", "/api/v1/nodes/a", body=b"{}"),
        ):
            with pytest.raises(NotLeadingError):
                await write
        await client.get(NODES, "a")
        await client.ungated().create(LEASES, raw_object("a"), namespace="x")

    server = run_against([says(raw_object("a"))], scenario, write_gate=lambda: leads)
    assert [request.method for request in server.requests] == ["POST", "GET", "POST"]


def test_a_write_that_waits_is_dropped_when_the_lead_is_lost() -> None:
    leads = True

    async def sleep(_: float) -> None:
        nonlocal leads
        leads = False

    async def scenario(server: ScriptedServer, client: Client) -> None:
        with pytest.raises(NotLeadingError):
            await client.create(NODES, raw_object("a"))
        assert len(server.requests) == 1

    run_against([says("busy", status=429, Retry_After="1")], scenario, write_gate=lambda: leads, sleep=sleep)


class Renewable:
    """Credentials that get better each time they are refused."""

    certificate = None

    def __init__(self) -> None:
        self.version = 1

    async def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.version}"}

    async def renew(self, refused: Mapping[str, str]) -> bool:
        assert refused == await self.headers()
        self.version += 1
        return True


def test_refused_credentials_are_renewed_once() -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        await client.get(NODES, "a")
        with pytest.raises(UnauthorizedError):
            await client.get(NODES, "a")

    answers = [refuses(401, "Unauthorized"), says(raw_object("a")), refuses(401, "Unauthorized")]
    server = run_against(answers, scenario, credentials=Renewable())
    assert [request.headers["Authorization"][-1] for request in server.requests] == ["1", "2", "2", "3"]


def test_credentials_that_cannot_be_renewed_are_not_tried_twice() -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        with pytest.raises(UnauthorizedError):
            await client.get(NODES, "a")

    assert (
        len(run_against([refuses(401, "Unauthorized")], scenario, credentials=FixedCredentials("Bearer x")).requests)
        == 1
    )


def test_everything_sent_is_counted() -> None:
    heard: list[tuple[str, str, int]] = []

    async def scenario(_: ScriptedServer, client: Client) -> None:
        await client.get(NODES, "a")
        assert await client.raw("GET", "/version") == json.dumps(raw_object("a")).encode()
        async for _ in client.watch(NODES, "5"):
            pass

    def count(verb: str, resource: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        heard.append((verb, resource, status))

    run_against([refuses(500, ""), says(raw_object("a")), says(raw_object("a")), streams()], scenario, on_request=count)
    assert heard == [("get", "nodes", 500), ("get", "nodes", 200), ("get", "", 200), ("watch", "nodes", 200)]


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("http://127.0.0.1:1", "cannot connect to 127.0.0.1:1"),
        ("http://no-such-host.invalid", "cannot connect to no-such-host.invalid:80"),
    ],
)
def test_a_server_that_is_not_there_is_named(server: str, words: str) -> None:
    async def scenario() -> None:
        target = Target(server=server, credentials=FixedCredentials("Bearer hush"))
        async with Client(target, timeouts=Timeouts(retries=0)) as client:
            with pytest.raises(UnreachableError, match=words) as caught:
                await client.get(NODES, "a")
            assert not caught.value.sent

    asyncio.run(scenario())


def test_a_slow_answer_ends_in_time() -> None:
    async def scenario() -> None:
        async def silent(_: Any) -> Any:
            await asyncio.sleep(60)

        timeouts = Timeouts(response=0.1, retries=0)
        async with ScriptedServer(silent) as server, server.client(timeouts=timeouts) as client:
            with pytest.raises(UnreachableError, match="no answer in time"):
                await client.get(NODES, "a")
            with pytest.raises(UnreachableError, match="no answer in time"):
                async for _ in client.watch(NODES, "5"):
                    pass

    asyncio.run(scenario())


def test_a_closed_client_says_so() -> None:
    client = Client(Target(server="http://127.0.0.1:1", credentials=FixedCredentials()))
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(client.get(NODES, "a"))
