"""Watches that are silent: those that have nothing to say are trusted, those that are stalled are not."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.kube.scripted_server import Answer, ScriptedServer, bookmark, event, refuses, streams

from karpool.kube.reflector import Reflector
from karpool.kube.transport import Timeouts
from karpool.kube.watch_probe import ProbeTimes, WatchProbe
from karpool.live.resources import NODES
from karpool.model.node import Node

QUICK = Timeouts(response=2, connect=1, retries=0.05, first_retry=0.001, longest_retry=0.01)
TIMES = ProbeTimes(after=0.1, again=0.1, length=0.1, grace=0.2, silent=30.0)
RARELY = ProbeTimes(after=60.0, again=60.0, length=0.1, grace=0.2, silent=0.1)
SYNCED = (event("ADDED", "a", "3"), bookmark("10", ends_initial=True))


class Names:
    """The names of the nodes that a reflector made known."""

    def __init__(self) -> None:
        self.known: set[str] = set()

    def put(self, node: Node) -> None:
        self.known.add(node.key)

    def remove(self, node: Node) -> None:
        self.known.discard(node.key)

    def replace(self, nodes: Sequence[Node], resource_version: str) -> None:
        del resource_version
        self.known = {node.key for node in nodes}


class Run:
    def __init__(self) -> None:
        self.names = Names()
        self.doubts: list[str] = []
        self.versions: list[str] = []

    def doubted(self, text: str) -> bool:
        return any(text in doubt for doubt in self.doubts)


def probe(*answers: Answer, times: ProbeTimes = TIMES, seconds: float = 0.2) -> Run:
    """What became of a watch that is probed, until the server has given its last answer, and for so long after."""
    run = Run()

    async def scenario() -> None:
        async with ScriptedServer(*answers) as server, server.client(timeouts=QUICK) as client:
            reflector = Reflector(client, NODES, run.names)
            watch_probe = WatchProbe(reflector, times)
            loop = asyncio.get_running_loop()

            async def look() -> None:
                while True:
                    doubt = watch_probe.doubt(loop.time())
                    if not run.doubts or run.doubts[-1] != doubt:
                        run.doubts.append(doubt)
                    await asyncio.sleep(0.005)

            tasks = [asyncio.create_task(work) for work in (reflector.run(), watch_probe.run(), look())]
            await asyncio.wait_for(server.exhausted.wait(), 10)
            await asyncio.sleep(seconds)
            run.versions = [request.query.get("resourceVersion", "all") for request in server.requests]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    asyncio.run(scenario())
    return run


def test_a_watch_without_news_passes_its_probe() -> None:
    run = probe(streams(*SYNCED, then="silence"), streams(bookmark("12")), streams(then="silence"), seconds=0.05)
    assert run.versions == ["all", "10", "10"]
    assert run.doubts == [""]


def test_a_watch_that_does_not_bring_what_another_does_is_doubted_and_cut() -> None:
    run = probe(
        streams(*SYNCED, then="silence"),
        streams(event("ADDED", "b", "11"), then="silence"),
        streams(event("ADDED", "b", "11"), bookmark("12"), then="silence"),
    )
    assert run.doubts[:3] == ["", "its watch did not bring a change that another one did", ""]
    assert run.names.known == {"a", "b"}
    assert run.versions[:3] == ["all", "10", "10"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (streams(then="silence"), "did not end in time"),
        (refuses(403, "Forbidden"), "another one failed"),
        (refuses(410, "Expired"), "another one failed"),
    ],
)
def test_a_probe_that_fails_puts_the_watch_in_doubt_until_it_brings_something(answer: Answer, why: str) -> None:
    resumed = streams(event("ADDED", "b", "11"), then="silence")
    run = probe(streams(*SYNCED, then="silence"), answer, resumed, seconds=0.05)
    assert run.doubted(why)
    assert run.doubts[-1] == ""
    assert run.names.known == {"a", "b"}


def test_a_watch_that_is_silent_for_long_without_a_probe_is_doubted() -> None:
    run = probe(streams(*SYNCED, then="silence"), times=RARELY, seconds=0.3)
    assert run.doubted("its watch has been silent for")
    assert run.versions == ["all"]


def test_before_everything_was_listed_there_is_nothing_to_doubt() -> None:
    run = probe(streams(event("ADDED", "a", "3"), then="silence"), times=RARELY, seconds=0.3)
    assert run.doubts == [""]
