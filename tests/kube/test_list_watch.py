"""Watches: events, objects that cannot be decoded, and streams that break."""

import json
from contextlib import aclosing
from typing import Any

import pytest
from tests.kube.scripted_server import (
    ScriptedServer,
    bookmark,
    event,
    failure,
    raw_object,
    run_against,
    streams,
)

from karpool.kube.client import Client
from karpool.kube.errors import (
    ApiError,
    GoneError,
    ServerError,
    UnreachableError,
    UnreadableError,
)
from karpool.kube.list_watch import WatchEvent
from karpool.kube.resources import Unreadable
from karpool.live.resources import NODES, PODS

NOT_DECODABLE = {"spec": {"taints": "none"}}


async def collected(client: Client, version: str = "5", **options: Any) -> list[tuple[str, str, str]]:
    async with aclosing(client.watch(NODES, version, **options)) as events:
        return [(event.type, event.object.name, event.resource_version) async for event in events]


@pytest.mark.parametrize("every", [0, 1, 7])
def test_a_watch_gives_changes_however_the_lines_arrive(every: int) -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        assert await collected(client, timeout_seconds=9) == [
            ("ADDED", "a", "6"),
            ("MODIFIED", "a", "7"),
            ("BOOKMARK", "", "9"),
            ("DELETED", "a", "10"),
        ]

    lines = (event("ADDED", "a", "6"), event("MODIFIED", "a", "7"), bookmark("9"), event("DELETED", "a", "10"))
    (request,) = run_against([streams(*lines, b'{"type": "ADDED", "obj', every=every)], scenario).requests
    assert request.query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "9",
        "resourceVersion": "5",
    }


def test_an_object_that_cannot_be_read_counts_as_changed_in_a_watch() -> None:
    heard: list[Unreadable] = []

    async def scenario(_: ScriptedServer, client: Client) -> None:
        assert await collected(client) == [("MODIFIED", "b", "6"), ("ADDED", "c", "7")]

    lines = (event("MODIFIED", "b", "6", **NOT_DECODABLE), event("ADDED", "c", "7"))
    run_against([streams(*lines)], scenario, on_unreadable=heard.append)
    assert [(unreadable.resource, unreadable.key) for unreadable in heard] == [(NODES, "b")]


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
    async def scenario(_: ScriptedServer, client: Client) -> None:
        with pytest.raises(error):
            await collected(client)

    run_against([streams(line)], scenario)


def test_a_watch_that_is_cut_says_so() -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        with pytest.raises(UnreachableError):
            await collected(client)

    run_against([streams(event("ADDED", "a", "6"), then="cut")], scenario)


def test_a_silent_watch_ends() -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        client.watch_grace = 0.1
        with pytest.raises(UnreachableError, match="no answer in time"):
            await collected(client, timeout_seconds=0.1)

    run_against([streams(event("ADDED", "a", "6"), then="silence")], scenario)


def test_lines_may_be_very_long_but_not_endless() -> None:
    long = raw_object("a", "6") | {"filler": "x" * 6_000_000}

    async def scenario(server: ScriptedServer, client: Client) -> None:
        assert await collected(client) == [("ADDED", "a", "6")]
        with pytest.raises(UnreadableError, match="a line of more than"):
            await collected(client)
        assert len(server.requests) == 2

    run_against([streams({"type": "ADDED", "object": long}), streams(b"x" * 33 * 2**20)], scenario)


def test_many_lines_are_all_read() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "x", "uid": "u", "labels": {"app": "web"}, "resourceVersion": "6"},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}],
        },
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
    }
    line = json.dumps({"type": "ADDED", "object": pod}).encode() + b"\n"

    async def scenario(_: ScriptedServer, client: Client) -> None:
        last: WatchEvent[Any] | None = None
        seen = 0
        async for last in client.watch(PODS, "5"):  # noqa: B007 - the last one is looked at
            seen += 1
        assert seen == 20_000
        assert last is not None
        assert last.object.key == "x/p"

    run_against([streams(line * 20_000)], scenario)
