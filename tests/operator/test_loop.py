"""The loop: lives of the controller begin and end with the lead, with mistakes, and with failures to be mended."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from tests.factories import default_catalog, pod, spread
from tests.kube.scripted_server import ScriptedServer, refuses

from karpool.controller.cluster_state import ClusterState
from karpool.controller.controller import Controller
from karpool.controller.ports import Duties
from karpool.controller.store import ClusterStore
from karpool.disruption.settings import DisruptionSettings
from karpool.execution.actions import RecordEvent, SetLabel
from karpool.kube.cache import CacheFeed, ChangeQueue
from karpool.kube.client import Client
from karpool.kube.transport import Timeouts
from karpool.live.writer import CacheFeeds, Writer
from karpool.operator import loop as loops
from karpool.operator.actuator import ApiActuator
from karpool.operator.loop import Loop
from karpool.operator.pdb_source import StorePdbSource
from karpool.operator.task_queue import TaskQueue
from karpool.packing.options import Options
from karpool.virtual.facts import VirtualFacts

IMPATIENT = Timeouts(response=2, connect=1, retries=0.01, first_retry=0.001, longest_retry=0.01)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "LONGEST_WAIT", 0.02)
    monkeypatch.setattr(loops, "FIRST_RETRY", 0.05)


class Offered:
    catalog = default_catalog()


class Silent:
    def record(self, event: RecordEvent) -> None:
        """Tell nobody."""


class Counted(Controller):
    """A controller that has nothing to do, and counts how often it begins and looks again."""

    started = 0
    resyncs = 0

    def start(self) -> None:
        self.started += 1
        super().start()

    def resync(self) -> None:
        self.resyncs += 1
        super().resync()


class Stage:
    """A loop with all its parts, on an API server that refuses everything."""

    def __init__(self, client: Client) -> None:
        store = ClusterStore()
        self.stop = asyncio.Event()
        self.leads, self.term = True, 1
        self.queue, self.changes = TaskQueue(), ChangeQueue()
        stores = {"Node": store.nodes, "NodeClaim": store.claims, "NodePool": store.pools, "Pod": store.pods}
        feeds = CacheFeeds({kind: CacheFeed(objects, self.changes) for kind, objects in stores.items()})
        writer = Writer(client, feeds, lambda: self.queue.moment)
        self.actuator = ApiActuator(writer, Silent(), None, stopping=self.stop.is_set)
        self.controller = Counted(
            store,
            self.queue,
            ClusterState(store),
            self.actuator,
            catalog_source=Offered(),
            pdb_source=StorePdbSource(store),
            facts=VirtualFacts(store),
            settings=DisruptionSettings(),
            options=Options(),
            duties=Duties(disrupts=False, provisions=False, manages_lifecycle=False),
        )
        self.loop = Loop(
            self.queue,
            self.changes,
            self.actuator,
            self.controller,
            leading=lambda: self.leads,
            term=lambda: self.term,
            caches_current=lambda: True,
            on_iteration=lambda: None,
            on_stop=lambda: None,
        )

    async def expect(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not holds():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


def play(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with ScriptedServer(refuses(500, "InternalError")) as server, server.client(timeouts=IMPATIENT) as client:
            stage = Stage(client)
            task = asyncio.create_task(stage.loop.run(stage.stop))
            await stage.expect(lambda: stage.controller.running)
            await story(stage)
            stage.stop.set()
            await asyncio.wait_for(task, 5)
            assert not stage.controller.running

    asyncio.run(whole())


def failing(stage: Stage) -> None:
    stage.actuator.execute([SetLabel("Node", "a", "k", "v")], alive=lambda: True)


def mistaken() -> None:
    raise ZeroDivisionError


def test_everything_is_looked_at_again_after_a_write_that_failed() -> None:
    async def story(stage: Stage) -> None:
        stage.queue.after(0, lambda: failing(stage))
        await stage.expect(lambda: stage.controller.resyncs > 0)

    play(story)


def test_also_when_another_life_of_the_controller_began_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "LAST_RETRY", 60.0)

    async def story(stage: Stage) -> None:
        for life in (1, 2, 3):
            stage.queue.after(0, lambda: failing(stage))
            await stage.expect(lambda life=life: stage.controller.resyncs == life)  # type: ignore[misc]
            stage.term += 1
            await stage.expect(lambda life=life: stage.controller.started == life + 1)  # type: ignore[misc]

    play(story)


def test_who_lost_the_lead_and_got_it_back_begins_a_new_life() -> None:
    async def story(stage: Stage) -> None:
        stage.term += 1
        await stage.expect(lambda: stage.controller.started == 2)

    play(story)


def test_who_does_not_lead_does_nothing() -> None:
    async def story(stage: Stage) -> None:
        stage.leads = False
        await stage.expect(lambda: not stage.controller.running)
        done: list[int] = []
        stage.queue.after(0, lambda: done.append(1))
        await asyncio.sleep(0.1)
        assert not done

    play(story)


@pytest.mark.parametrize("where", ["a task", "a change"])
def test_a_mistake_ends_one_life_and_not_the_process(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_RESTART_DELAY", 0.05)

    async def story(stage: Stage) -> None:
        if where == "a task":
            stage.queue.after(0, mistaken)
        else:
            stage.changes.add(mistaken)
        await stage.expect(lambda: stage.controller.started == 2)

    play(story)


def test_no_write_begins_once_the_end_is_asked_for() -> None:
    async def story(stage: Stage) -> None:
        stage.stop.set()
        failing(stage)
        await stage.actuator.flush()
        assert stage.actuator.take_failures() == 0

    play(story)


def test_restarts_without_a_decision_show_as_a_livelock_until_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = timedelta()

    async def story(stage: Stage) -> None:
        monkeypatch.setattr(stage.controller, "duties", Duties(provisions=False, manages_lifecycle=False))
        for life in (1, 2, 3):
            stage.term += 1
            await stage.expect(lambda life=life: stage.controller.started == life + 1)  # type: ignore[misc]
        problem = stage.loop.livelocked(at_once)
        assert problem is not None
        assert "this replica lost the lease for a while" in problem
        monkeypatch.setattr(Counted, "turns", 1)
        await stage.expect(lambda: stage.loop.livelocked(at_once) is None)

    play(story)


def test_a_replica_that_does_not_lead_forgets_what_is_dead() -> None:
    async def story(stage: Stage) -> None:
        stage.leads = False
        await stage.expect(lambda: not stage.controller.running)
        state, pods = stage.controller.cluster_state, stage.controller.store.pods
        state.spare = 50
        before = state.snapshot

        def job(number: int) -> None:
            pods.put(pod(f"job-{number}", labels={"job-name": str(number)}, spread=[spread({"job-name": str(number)})]))
            pods.remove(f"default/job-{number}")

        for number in range(100):
            stage.changes.add(lambda number=number: job(number))  # type: ignore[misc]
        await stage.expect(lambda: state.snapshot is not before)
        assert state.snapshot.interned < 50

    play(story)
