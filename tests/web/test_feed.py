"""Changes on their way to open pages."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from tests.factories import node, pod
from tests.web.shown import CATALOG, fleet_of, small_store

from karpool.controller.store import ClusterStore
from karpool.web import feed as feeds
from karpool.web.feed import RESET, STILL_HERE, Feed
from karpool.web.fleet import FleetRows

Story = Callable[[ClusterStore, Feed], Awaitable[Any]]


def play(story: Story) -> Any:
    async def run() -> Any:
        store = small_store()
        feed = Feed(lambda: fleet_of(store))
        try:
            return await asyncio.wait_for(story(store, feed), 30)
        finally:
            feed.close()

    return asyncio.run(run())


async def next_change(events: AsyncGenerator[bytes, None]) -> dict[str, Any]:
    """The next change that is told."""
    async for event in events:
        if event.startswith(b"id: "):
            found: dict[str, Any] = msgspec.json.decode(event.split(b"data: ", 1)[1])
            return found
    raise AssertionError("the stream has ended")


def names(change: dict[str, Any]) -> list[str]:
    return sorted(row[1] for row in change["pods"])


def test_a_page_is_told_of_changes_as_they_come() -> None:
    async def story(store: ClusterStore, feed: Feed) -> list[list[str]]:
        fleet = await feed.ready()
        told = []
        async with aclosing(feed.follow(fleet.epoch, fleet.number)) as events:
            assert await anext(events) == STILL_HERE
            for number in range(3):
                store.pods.put(pod(f"new-{number}", node="a"))
                told.append(names(await next_change(events)))
        return told

    assert play(story) == [["default/new-0"], ["default/new-1"], ["default/new-2"]]


def test_a_page_that_comes_back_is_told_what_it_has_missed() -> None:
    async def story(store: ClusterStore, feed: Feed) -> list[str]:
        fleet = await feed.ready()
        seen = fleet.number
        store.pods.put(pod("missed", node="a"))
        async with aclosing(feed.follow(fleet.epoch, seen)) as other:
            await next_change(other)
        async with aclosing(feed.follow(fleet.epoch, seen)) as events:
            return names(await next_change(events))

    assert play(story) == ["default/missed"]


def test_nothing_is_kept_for_pages_that_have_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "_FORGET_SECONDS", 0.0)

    async def story(store: ClusterStore, feed: Feed) -> tuple[int, list[bytes], list[str]]:
        before = await feed.ready()
        assert feed._task is not None
        await feed._task
        for number in range(3):
            store.nodes.put(node(f"new-{number}"))
        told = [event async for event in feed.follow(before.epoch, before.number)]
        nodes = (await feed.ready()).document()["nodes"]
        return before.waiting, told, sorted(row[1] for row in nodes)

    assert play(story) == (0, [RESET], ["a", "b", "new-0", "new-1", "new-2"])


def test_a_page_of_another_process_reads_everything_again() -> None:
    async def story(_: ClusterStore, feed: Feed) -> list[bytes]:
        await feed.ready()
        return [event async for event in feed.follow("of another process", 0)]

    assert play(story) == [RESET]


def test_a_page_that_does_not_read_is_told_to_begin_anew_and_holds_nobody_up() -> None:
    async def story(store: ClusterStore, feed: Feed) -> tuple[bytes, list[str]]:
        fleet = await feed.ready()
        async with (
            aclosing(feed.follow(fleet.epoch, fleet.number)) as asleep,
            aclosing(feed.follow(fleet.epoch, fleet.number)) as awake,
        ):
            await anext(asleep)
            await anext(awake)
            for number in range(feeds._MOST_UNREAD + 2):
                store.pods.put(pod(f"new-{number}", node="a"))
                fleet.read(fleet.waiting)
                change = fleet.change()
                assert change is not None
                feed._tell(feeds._event(*change))
                last = names(await next_change(awake))
            return [event async for event in asleep][-1], last

    event, last = play(story)
    assert event == RESET
    assert last == [f"default/new-{feeds._MOST_UNREAD + 1}"]


def test_what_else_a_page_is_told_comes_when_it_changes() -> None:
    async def run() -> list[bytes]:
        store = small_store()
        stale: list[str] = []
        feed = Feed(lambda: FleetRows(store, lambda: CATALOG), lambda: {"stale": list(stale)})
        try:
            fleet = await feed.ready()
            async with aclosing(feed.follow(fleet.epoch, fleet.number)) as events:
                await anext(events)
                stale.append("pods")
                return [await anext(events) for _ in range(1)]
        finally:
            feed.close()

    (event,) = asyncio.run(asyncio.wait_for(run(), 30))
    assert event == b'event: status\ndata: {"stale":["pods"]}\n\n'


def test_nodes_are_there_before_the_pods_are_read() -> None:
    async def run() -> tuple[int, int, int, list[str]]:
        store = small_store()
        for number in range(5_000):
            store.pods.put(pod(f"more-{number}", node="a"))
        feed = Feed(lambda: FleetRows(store, lambda: CATALOG))
        try:
            fleet = await feed.nodes()
            early = fleet.document()
            left = fleet.waiting
            store.nodes.put(node("c"))
            await feed.ready()
            async with aclosing(feed.follow(fleet.epoch, early["number"])) as events:
                change = await next_change(events)
            return len(early["nodes"]), left, early["podCount"], [row[1] for row in change["nodes"]]
        finally:
            feed.close()

    nodes, left, pods, told = asyncio.run(asyncio.wait_for(run(), 30))
    assert (nodes, pods) == (2, 5_002)
    assert left > 0
    assert told == ["c"]
