"""The reflector: the initial list, resumed watches, and recovery from failures."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.kube.scripted_server import (
    Answer,
    ScriptedServer,
    bookmark,
    event,
    failure,
    listed,
    raw_object,
    refuses,
    streams,
)

from karpool.kube.backoff import Backoff
from karpool.kube.errors import ApiError
from karpool.kube.reflector import Reflector
from karpool.kube.resources import Resource
from karpool.kube.transport import Timeouts
from karpool.live.resources import NODES
from karpool.model.node import Node

QUICK = Timeouts(response=2, connect=1, retries=0.05, first_retry=0.001, longest_retry=0.01)
GONE = {"type": "ERROR", "object": failure(410, "Expired", "too old resource version")}


class Copy:
    """What a reflector made known, and how."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.replaced: list[list[str]] = []
        self.version = ""

    def put(self, node: Node) -> None:
        self.known[node.key] = node.metadata.resource_version

    def remove(self, node: Node) -> None:
        self.known.pop(node.key, None)

    def replace(self, nodes: Sequence[Node], resource_version: str) -> None:
        self.replaced.append([node.key for node in nodes])
        self.version = resource_version
        self.known = {node.key: node.metadata.resource_version for node in nodes}


def started(*lines: Any, version: str = "10", then: str = "end") -> Answer:
    """A streaming list with nodes a and b, and what follows it."""
    initial = (event("ADDED", "a", "3"), event("ADDED", "b", "4"), bookmark(version, ends_initial=True))
    return streams(*initial, *lines, then=then)


class Run:
    """What came of running a reflector against a server."""

    def __init__(self) -> None:
        self.sink = Copy()
        self.errors: list[ApiError] = []
        self.waits: list[float] = []
        self.server: ScriptedServer
        self.reflector: Reflector[Node]

    @property
    def versions(self) -> list[str | None]:
        """What each request asked to go on from; `all` for a streaming list, `pages` for a list."""
        return [
            "all" if "sendInitialEvents" in request.query else request.query.get("resourceVersion", "pages")
            for request in self.server.requests
        ]


def reflect(*answers: Answer, **options: Any) -> Run:
    """Run a reflector until it has had the last answer, which should end in silence."""
    run = Run()

    def trouble(resource: Resource[Any], error: Exception) -> None:
        assert resource is NODES
        assert isinstance(error, ApiError)
        run.errors.append(error)

    async def sleep(seconds: float) -> None:
        run.waits.append(seconds)
        await asyncio.sleep(0)

    async def scenario() -> None:
        async with ScriptedServer(*answers) as server, server.client(timeouts=QUICK) as client:
            run.server = server
            client.watch_grace = 0.0
            run.reflector = Reflector(client, NODES, run.sink, on_error=trouble, sleep=sleep, **options)
            task = asyncio.create_task(run.reflector.run())
            await asyncio.wait_for(server.exhausted.wait(), 10)
            for _ in range(20):  # server and client share a loop: they get on with their work at each turn
                await asyncio.sleep(0.002)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(scenario())
    return run


def test_a_streaming_list_is_synced_at_its_bookmark_and_goes_on_in_the_same_request() -> None:
    run = reflect(started(event("MODIFIED", "a", "11"), event("DELETED", "b", "12"), then="silence"))
    assert run.sink.replaced == [["a", "b"]]
    assert run.sink.known == {"a": "11"}
    assert run.reflector.synced.is_set()
    assert run.reflector.last_activity > 0
    (request,) = run.server.requests
    assert request.query["resourceVersionMatch"] == "NotOlderThan"
    assert request.query["allowWatchBookmarks"] == "true"


def test_nothing_is_synced_before_the_bookmark() -> None:
    run = reflect(streams(event("ADDED", "a", "3"), then="silence"))
    assert not run.reflector.synced.is_set()
    assert run.sink.known == {}


@pytest.mark.parametrize("refusal", [refuses(422, "Invalid"), refuses(400, "BadRequest")])
def test_a_server_without_streaming_lists_is_read_page_by_page(refusal: Answer) -> None:
    pages = (listed(raw_object("a", "3"), token="t"), listed(raw_object("b", "4")))  # noqa: S106 - of a page
    run = reflect(refusal, *pages, streams(event("ADDED", "c", "11"), then="silence"))
    assert run.versions == ["all", "pages", "pages", "10"]
    assert run.sink.replaced == [["a", "b"]]
    assert set(run.sink.known) == {"a", "b", "c"}
    assert run.errors == []


@pytest.mark.parametrize("then", ["end", "silence"])
def test_a_streaming_list_without_its_bookmark_is_given_up(then: str) -> None:
    endless = streams(event("ADDED", "a", "3"), then=then)
    run = reflect(endless, listed(raw_object("b", "4")), streams(then="silence"), bookmark_seconds=0.1)
    assert run.versions == ["all", "pages", "10"]
    assert run.sink.known == {"b": "4"}


@pytest.mark.parametrize("then", ["end", "cut"])
def test_a_watch_goes_on_where_it_ended(then: str) -> None:
    run = reflect(started(event("ADDED", "c", "11"), then=then), streams(event("DELETED", "a", "12"), then="silence"))
    assert run.versions == ["all", "11"]
    assert set(run.sink.known) == {"b", "c"}
    assert len(run.sink.replaced) == 1


def test_a_bookmark_moves_the_place_to_go_on_from() -> None:
    run = reflect(started(bookmark("50")), streams(bookmark("60")), streams(then="silence"))
    assert run.versions == ["all", "50", "60"]


@pytest.mark.parametrize("gone", [refuses(410, "Expired"), streams(GONE)])
def test_after_410_everything_is_read_anew_and_deletions_are_made_up(gone: Answer) -> None:
    anew = streams(event("ADDED", "b", "90"), bookmark("99", ends_initial=True), then="silence")
    run = reflect(started(), gone, anew)
    assert run.versions == ["all", "10", "all"]
    assert run.sink.replaced == [["a", "b"], ["b"]]
    assert (run.sink.known, run.sink.version) == ({"b": "90"}, "99")
    assert run.errors == []


def test_what_is_known_stays_known_while_everything_is_read_anew() -> None:
    run = reflect(started(), streams(GONE), streams(event("ADDED", "b", "90"), then="silence"))
    assert set(run.sink.known) == {"a", "b"}
    assert run.reflector.synced.is_set()


@pytest.mark.parametrize("status", [401, 403, 429, 500])
def test_refusals_are_reported_and_tried_again_from_the_same_place(status: int) -> None:
    run = reflect(started(), refuses(status, "No"), refuses(status, "No"), streams(then="silence"))
    assert run.versions == ["all", "10", "10", "10"]
    assert [error.status for error in run.errors] == [status, status]


def test_a_version_that_the_server_never_takes_is_given_up() -> None:
    refusals = [refuses(504, "Timeout", "Too large resource version")] * 3
    run = reflect(started(), *refusals, started(then="silence"))
    assert run.versions == ["all", "10", "10", "10", "all"]


@pytest.mark.parametrize(
    ("answers", "cut"),
    [
        ((started(then="silence"),), False),
        ((started(), refuses(500, "No"), streams(then="silence")), False),
        ((started(), streams(GONE), started(then="silence")), False),
        ((started(), refuses(500, "No"), streams(event("ADDED", "c", "11"), then="cut"), refuses(500, "No")), True),
        ((started(), streams(GONE), streams(then="silence")), True),
    ],
)
def test_a_watch_counts_as_cut_until_the_server_agrees_to_another(answers: tuple[Answer, ...], *, cut: bool) -> None:
    assert (reflect(*answers).reflector.disconnected_at is not None) is cut


def test_garbage_in_the_stream_makes_it_start_anew() -> None:
    run = reflect(started(b"garbage\n"), started(version="20", then="silence"))
    assert run.versions == ["all", "all"]
    assert [error.reason for error in run.errors] == ["Unreadable"]


def test_an_object_that_becomes_unreadable_stays_marked_and_the_rest_goes_on() -> None:
    broken = event("MODIFIED", "a", "11", spec={"taints": "none"})
    run = reflect(started(broken, event("ADDED", "c", "12"), then="silence"))
    assert set(run.sink.known) == {"a", "b", "c"}


def test_an_object_that_is_deleted_while_it_cannot_be_read_goes() -> None:
    broken = event("DELETED", "a", "11", spec={"taints": "none"})
    run = reflect(started(broken, event("ADDED", "c", "12"), then="silence"))
    assert set(run.sink.known) == {"b", "c"}


def test_a_silent_watch_is_followed_by_another() -> None:
    run = reflect(started(then="silence"), streams(then="silence"), watch_seconds=0.2)
    assert run.versions == ["all", "10"]


def test_waits_grow_with_failures_and_start_small_after_good_news() -> None:
    failing = [refuses(500, "InternalError")] * 4
    run = reflect(*failing, started(), streams(then="silence"), backoff=Backoff(first=1, most=4))
    assert [base / 2 <= wait <= base for base, wait in zip((1, 2, 4, 4, 1), run.waits, strict=True)] == [True] * 5


def test_a_wait_is_never_longer_than_the_longest() -> None:
    backoff = Backoff()
    waits = [backoff.next() for _ in range(2000)]
    assert 0.25 <= waits[0] <= 0.5
    assert max(waits) <= 30
    assert min(waits[10:]) >= 15
