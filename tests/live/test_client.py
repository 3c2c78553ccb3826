import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Any

import pytest
from tests.live.stand_in import (
    Answer,
    StandIn,
    bookmark,
    event,
    failure,
    hangs_up,
    listed,
    refuses,
    says,
    streams,
    thing,
)

from karpool import __version__
from karpool.live.client import Client
from karpool.live.credentials import FixedCredentials
from karpool.live.errors import (
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
from karpool.live.objects import Lease, LeaseSpec
from karpool.live.resources import LEASES, NODE_POOLS, NODES, PODS, WATCHED, Unreadable
from karpool.live.target import Target
from karpool.live.transport import Patience
from karpool.live.watching import WatchEvent
from karpool.model.objects import Objects
from karpool.model.wire import Metadata

QUICK = Patience(answer=2, connect=1, retries=5, first_retry=0.001, longest_retry=0.01)
NOT_DECODABLE = {"spec": {"taints": "none"}}


def tell(
    answers: list[Answer], story: Callable[[StandIn, Client], Coroutine[Any, Any, Any]], **options: Any
) -> StandIn:
    """Run a story with a client on a server that gives these answers."""

    async def run() -> StandIn:
        async with StandIn(*answers) as server, server.client(patience=QUICK, **options) as client:
            await story(server, client)
        return server

    return asyncio.run(run())


async def collected(client: Client, version: str = "5", **options: Any) -> list[tuple[str, str, str]]:
    async with aclosing(client.watch(NODES, version, **options)) as events:
        return [(one.type, one.object.name, one.resource_version) async for one in events]


def test_every_field_of_the_objects_has_one_resource() -> None:
    assert sorted(resource.collection for resource in WATCHED) == sorted(Objects.__dataclass_fields__)


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
    async def story(_: StandIn, client: Client) -> None:
        assert (await client.get(NODES, "a")).metadata.uid == "uid-a"

    (asked,) = tell([says(thing("a"))], story).asked
    assert (asked.method, asked.path, asked.headers["User-Agent"]) == (
        "GET",
        "/api/v1/nodes/a",
        f"karpool/{__version__}",
    )


def test_a_list_follows_its_pages() -> None:
    async def story(_: StandIn, client: Client) -> None:
        found = await client.list(NODES, label_selector="a=b", field_selector="c=d", page=2)
        assert [node.name for node in found.items] == ["a", "b", "c"]
        assert found.resource_version == "7"

    pages = [listed(thing("a"), thing("b"), version="7", token="more"), listed(thing("c"), version="7")]  # noqa: S106 - of a page
    first, second = tell(pages, story).asked
    assert first.query == {"limit": "2", "labelSelector": "a=b", "fieldSelector": "c=d"}
    assert second.query == first.query | {"continue": "more"}


def test_a_list_whose_pages_expire_is_read_once_more_in_one_piece() -> None:
    async def story(_: StandIn, client: Client) -> None:
        assert [node.name for node in (await client.list(NODES, page=1)).items] == ["b", "c"]

    answers = [listed(thing("a"), token="more"), refuses(410, "Expired"), listed(thing("b"), thing("c"))]  # noqa: S106 - of a page
    assert tell(answers, story).asked[-1].query == {}


def test_an_object_that_cannot_be_read_is_left_out_of_a_list_and_reported() -> None:
    heard: list[Unreadable] = []

    async def story(_: StandIn, client: Client) -> None:
        found = await client.list(NODES)
        assert [node.name for node in found.items] == ["a", "c"]
        assert list(found.unreadable) == heard

    tell([listed(thing("a"), thing("b", **NOT_DECODABLE), thing("c"))], story, on_unreadable=heard.append)
    assert [str(one) for one in heard] == ["Node b: spec.taints: expected a list, got text"]


def test_a_pool_that_breaks_a_rule_is_left_out() -> None:
    async def story(_: StandIn, client: Client) -> None:
        found = await client.list(NODE_POOLS)
        assert [pool.name for pool in found.items] == ["good"]
        assert [(one.key, "weight" in one.problem) for one in found.unreadable] == [("bad", True)]

    tell([listed(thing("good", spec={"weight": 5}), thing("bad", spec={"weight": 500}))], story)


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
    async def story(_: StandIn, client: Client) -> None:
        with pytest.raises(error) as caught:
            await client.create(NODES, thing("a"))
        assert type(caught.value) is error
        code = f"{status} {reason}".strip()
        assert str(caught.value) == f"create /api/v1/nodes: line one\\nline two ({code})"

    tell([refuses(status, reason, "line one\nline two")], story)


def test_already_exists_differs_from_a_conflict() -> None:
    assert ConflictError(409, "AlreadyExists", "").already_exists
    assert not ConflictError(409, "Conflict", "").already_exists


@pytest.mark.parametrize("body", [b"<html>bad gateway</html>", b"\xff\xfe", b"", b"[1]", b"{" * 5000])
def test_a_refusal_may_say_anything(body: bytes) -> None:
    async def story(_: StandIn, client: Client) -> None:
        with pytest.raises(ServerError) as caught:
            await client.create(NODES, thing("a"))
        assert str(caught.value).isprintable()

    tell([says(body, status=502)], story)


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b'{"metadata": 3}', b"\xff"])
def test_an_answer_that_is_no_object_is_told(body: bytes) -> None:
    async def story(_: StandIn, client: Client) -> None:
        with pytest.raises(UnreadableError):
            await client.get(NODES, "a")
        with pytest.raises(UnreadableError):
            await client.list(NODES)

    tell([says(body)], story)


@pytest.mark.parametrize("answer", [refuses(429, "TooManyRequests"), refuses(500, "InternalError"), hangs_up()])
def test_reads_are_asked_again(answer: Answer) -> None:
    async def story(_: StandIn, client: Client) -> None:
        assert (await client.get(NODES, "a")).name == "a"

    tell([answer, answer, says(thing("a"))], story)


def test_reads_wait_as_long_as_the_server_asks_for() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def story(_: StandIn, client: Client) -> None:
        await client.get(NODES, "a")

    by_header = refuses(429, "TooManyRequests", headers={"Retry_After": "3"})
    by_status = refuses(503, "ServiceUnavailable", details={"retryAfterSeconds": 4})
    tell([by_header, by_status, says(thing("a"))], story, sleep=sleep)
    assert waits == [3, 4]


def test_reads_are_given_up_when_patience_ends() -> None:
    async def story(server: StandIn, client: Client) -> None:
        with pytest.raises(TooManyRequestsError) as caught:
            await client.get(NODES, "a")
        assert caught.value.retry_after == 60
        assert len(server.asked) == 1

    tell([refuses(429, "TooManyRequests", headers={"Retry_After": "60"})], story)


def test_a_throttled_write_is_sent_again_after_the_time_asked_for() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def story(_: StandIn, client: Client) -> None:
        await client.merge_patch(NODES, "a", {"spec": {}})

    throttled = says("Too many requests, please try again later.", status=429, Retry_After="1")
    assert len(tell([throttled, says(thing("a"))], story, sleep=sleep).asked) == 2
    assert waits == [1]


@pytest.mark.parametrize("answer", [refuses(429, "TooManyRequests"), refuses(500, "InternalError"), hangs_up()])
def test_a_write_that_may_have_worked_is_not_sent_again(answer: Answer) -> None:
    async def story(server: StandIn, client: Client) -> None:
        with pytest.raises(ApiError):
            await client.merge_patch(NODES, "a", {"spec": {}})
        assert len(server.asked) == 1

    tell([answer, says(thing("a"))], story)


def test_a_write_is_sent_again_when_nobody_was_there() -> None:
    async def story() -> None:
        async with StandIn(says(thing("a"))) as gone:
            target = gone.target()
        waits = 0

        async def sleep(_: float) -> None:
            nonlocal waits
            waits += 1
            if waits == 3:
                raise KeyboardInterrupt

        async with Client(target, patience=QUICK, sleep=sleep) as client:
            with pytest.raises(KeyboardInterrupt):
                await client.create(NODES, thing("a"))

    asyncio.run(story())


def test_the_refusal_of_a_budget_is_raised_at_once_with_its_words() -> None:
    causes = [
        {"reason": "DisruptionBudget", "message": "The disruption budget web needs 2 healthy pods and has 2 currently"}
    ]

    async def story(server: StandIn, client: Client) -> None:
        with pytest.raises(TooManyRequestsError) as caught:
            await client.evict("x", "web-1", "u1")
        assert caught.value.by_budget
        assert "Cannot evict pod. The disruption budget web needs 2" in str(caught.value)
        assert len(server.asked) == 1

    refusal = refuses(429, "TooManyRequests", "Cannot evict pod.", details={"causes": causes, "retryAfterSeconds": 10})
    (asked,) = tell([refusal], story).asked
    assert (asked.method, asked.path) == ("POST", "/api/v1/namespaces/x/pods/web-1/eviction")
    assert asked.body["deleteOptions"] == {"preconditions": {"uid": "u1"}}


def test_a_throttled_eviction_is_told_apart_from_a_refused_one() -> None:
    async def story(_: StandIn, client: Client) -> None:
        with pytest.raises(TooManyRequestsError) as caught:
            await client.evict("x", "web-1", "u1")
        assert not caught.value.by_budget
        assert caught.value.retry_after == 1

    tell([says("Too many requests", status=429, Retry_After="1")], story)


def test_writes_carry_their_preconditions() -> None:
    async def story(_: StandIn, client: Client) -> None:
        await client.merge_patch(
            NODES, "a", {"metadata": {"labels": {"x": None}}}, resource_version="7", dry_run=True, subresource="status"
        )
        await client.delete(PODS, "a", namespace="x", uid="u1", resource_version="9", grace_seconds=0)
        await client.delete(PODS, "a", namespace="x")

    patch, delete, plain = tell([says(thing("a"))], story).asked
    assert (patch.path, patch.query) == ("/api/v1/nodes/a/status", {"dryRun": "All"})
    assert patch.headers["Content-Type"] == "application/merge-patch+json"
    assert patch.body == {"metadata": {"labels": {"x": None}, "resourceVersion": "7"}}
    assert delete.body["preconditions"] == {"uid": "u1", "resourceVersion": "9"}
    assert delete.body["gracePeriodSeconds"] == 0
    assert "preconditions" not in plain.body


def test_a_created_object_says_its_kind() -> None:
    async def story(_: StandIn, client: Client) -> None:
        await client.create(LEASES, Lease(Metadata("l"), LeaseSpec(holder_identity="me")), namespace="x")

    (asked,) = tell([says(thing("l"))], story).asked
    assert asked.path == "/apis/coordination.k8s.io/v1/namespaces/x/leases"
    assert asked.body == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l"},
        "spec": {"holderIdentity": "me"},
    }


def test_who_does_not_lead_writes_nothing_and_reads_on() -> None:
    leads = True

    async def story(_: StandIn, client: Client) -> None:
        nonlocal leads
        await client.create(NODES, thing("a"))
        leads = False
        for write in (
            client.create(NODES, thing("a")),
            client.merge_patch(NODES, "a", {}),
            client.delete(NODES, "a"),
            client.evict("x", "a", "u"),
            client.raw("PUT", "/api/v1/nodes/a", body=b"{}"),
        ):
            with pytest.raises(NotLeadingError):
                await write
        await client.get(NODES, "a")
        await client.ungated().create(LEASES, thing("a"), namespace="x")

    server = tell([says(thing("a"))], story, write_gate=lambda: leads)
    assert [asked.method for asked in server.asked] == ["POST", "GET", "POST"]


def test_a_write_that_waits_is_dropped_when_the_lead_is_lost() -> None:
    leads = True

    async def sleep(_: float) -> None:
        nonlocal leads
        leads = False

    async def story(server: StandIn, client: Client) -> None:
        with pytest.raises(NotLeadingError):
            await client.create(NODES, thing("a"))
        assert len(server.asked) == 1

    tell([says("busy", status=429, Retry_After="1")], story, write_gate=lambda: leads, sleep=sleep)


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
    async def story(_: StandIn, client: Client) -> None:
        await client.get(NODES, "a")
        with pytest.raises(UnauthorizedError):
            await client.get(NODES, "a")

    answers = [refuses(401, "Unauthorized"), says(thing("a")), refuses(401, "Unauthorized")]
    server = tell(answers, story, credentials=Renewable())
    assert [asked.headers["Authorization"][-1] for asked in server.asked] == ["1", "2", "2", "3"]


def test_credentials_that_cannot_be_renewed_are_not_tried_twice() -> None:
    async def story(_: StandIn, client: Client) -> None:
        with pytest.raises(UnauthorizedError):
            await client.get(NODES, "a")

    assert len(tell([refuses(401, "Unauthorized")], story, credentials=FixedCredentials("Bearer x")).asked) == 1


def test_everything_sent_is_counted() -> None:
    heard: list[tuple[str, str, int]] = []

    async def story(_: StandIn, client: Client) -> None:
        await client.get(NODES, "a")
        assert await client.raw("GET", "/version") == json.dumps(thing("a")).encode()
        await collected(client)

    def count(verb: str, resource: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        heard.append((verb, resource, status))

    tell([refuses(500, ""), says(thing("a")), says(thing("a")), streams()], story, on_request=count)
    assert heard == [("get", "nodes", 500), ("get", "nodes", 200), ("get", "", 200), ("watch", "nodes", 200)]


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("http://127.0.0.1:1", "cannot connect to 127.0.0.1:1"),
        ("http://no-such-host.invalid", "cannot connect to no-such-host.invalid:80"),
    ],
)
def test_a_server_that_is_not_there_is_named(server: str, words: str) -> None:
    async def story() -> None:
        target = Target(server=server, credentials=FixedCredentials("Bearer hush"))
        async with Client(target, patience=Patience(retries=0)) as client:
            with pytest.raises(UnreachableError, match=words) as caught:
                await client.get(NODES, "a")
            assert not caught.value.sent

    asyncio.run(story())


def test_a_slow_answer_ends_in_time() -> None:
    async def story() -> None:
        async def silent(_: Any) -> Any:
            await asyncio.sleep(60)

        patience = Patience(answer=0.1, retries=0)
        async with StandIn(silent) as server, server.client(patience=patience) as client:
            with pytest.raises(UnreachableError, match="no answer in time"):
                await client.get(NODES, "a")
            with pytest.raises(UnreachableError, match="no answer in time"):
                await collected(client)

    asyncio.run(story())


@pytest.mark.parametrize("every", [0, 1, 7])
def test_a_watch_gives_changes_however_the_lines_arrive(every: int) -> None:
    async def story(_: StandIn, client: Client) -> None:
        assert await collected(client, timeout_seconds=9) == [
            ("ADDED", "a", "6"),
            ("MODIFIED", "a", "7"),
            ("BOOKMARK", "", "9"),
            ("DELETED", "a", "10"),
        ]

    lines = (event("ADDED", "a", "6"), event("MODIFIED", "a", "7"), bookmark("9"), event("DELETED", "a", "10"))
    (asked,) = tell([streams(*lines, b'{"type": "ADDED", "obj', every=every)], story).asked
    assert asked.query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "9",
        "resourceVersion": "5",
    }


def test_an_object_that_cannot_be_read_counts_as_gone_in_a_watch() -> None:
    heard: list[Unreadable] = []

    async def story(_: StandIn, client: Client) -> None:
        assert await collected(client) == [("DELETED", "b", "6"), ("ADDED", "c", "7")]

    lines = (event("MODIFIED", "b", "6", **NOT_DECODABLE), event("ADDED", "c", "7"))
    tell([streams(*lines)], story, on_unreadable=heard.append)
    assert [(one.resource, one.key) for one in heard] == [(NODES, "b")]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ({"type": "ERROR", "object": failure(410, "Expired", "too old resource version")}, GoneError),
        ({"type": "ERROR", "object": failure(500, "InternalError")}, ServerError),
        ({"type": "ERROR", "object": {}}, ServerError),
        ({"type": "UPDATED", "object": {}}, UnreadableError),
        ({"type": "BOOKMARK", "object": {}}, UnreadableError),
        ({"object": {}}, UnreadableError),
        (b"<html>\n", UnreadableError),
        (b"\xff\xfe\n", UnreadableError),
        (b"[" * 100_000 + b"\n", UnreadableError),
    ],
)
def test_what_is_wrong_in_a_watch_has_its_type(line: Any, error: type[ApiError]) -> None:
    async def story(_: StandIn, client: Client) -> None:
        with pytest.raises(error):
            await collected(client)

    tell([streams(line)], story)


def test_a_watch_that_is_cut_says_so() -> None:
    async def story(_: StandIn, client: Client) -> None:
        with pytest.raises(UnreachableError):
            await collected(client)

    tell([streams(event("ADDED", "a", "6"), then="cut")], story)


def test_a_silent_watch_ends() -> None:
    async def story(_: StandIn, client: Client) -> None:
        client.silence = 0.1
        started = time.monotonic()
        with pytest.raises(UnreachableError, match="no answer in time"):
            await collected(client, timeout_seconds=0.1)
        assert time.monotonic() - started < 2

    tell([streams(event("ADDED", "a", "6"), then="silence")], story)


def test_lines_may_be_very_long_but_not_endless() -> None:
    long = thing("a", "6") | {"filler": "x" * 6_000_000}

    async def story(server: StandIn, client: Client) -> None:
        assert await collected(client) == [("ADDED", "a", "6")]
        with pytest.raises(UnreadableError, match="a line of more than"):
            await collected(client)
        assert len(server.asked) == 2

    tell([streams({"type": "ADDED", "object": long}), streams(b"x" * 33 * 2**20)], story)


def test_many_lines_are_quick() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "x", "uid": "u", "labels": {"app": "web"}, "resourceVersion": "6"},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}],
        },
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
    }
    line = json.dumps({"type": "ADDED", "object": pod}).encode() + b"\n"

    async def story(_: StandIn, client: Client) -> None:
        last: WatchEvent[Any] | None = None
        seen, started = 0, time.monotonic()
        async for last in client.watch(PODS, "5"):  # noqa: B007 - the last one is looked at
            seen += 1
        assert seen == 20_000
        assert last is not None
        assert last.object.key == "x/p"
        assert time.monotonic() - started < 5  # about 0.3 s; machines under load are slower

    tell([streams(line * 20_000)], story)


def test_a_closed_client_says_so() -> None:
    client = Client(Target(server="http://127.0.0.1:1", credentials=FixedCredentials()))
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(client.get(NODES, "a"))
