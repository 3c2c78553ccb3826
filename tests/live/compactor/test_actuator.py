"""Writing a node's state: only on what was decided on, and whatever else changes meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.live.compactor.trial import CompactorTrial, node, play
from tests.live.control_plane import ControlPlane

from karpool.compaction.actions import CompactionAction, SetNodeState
from karpool.compaction.marks import ANNOTATION, Mark, encode_mark
from karpool.compactor.actuator import ApiCompactionActuator
from karpool.controller.store import ClusterStore
from karpool.execution.actions import DeletePod, EvictPod, RecordEvent
from karpool.kube.cache import CacheFeed, ChangeQueue

NEW = Mark(in_progress=True)
CORDON = SetNodeState("a", NEW, unschedulable=True)
BEGUN = RecordEvent("Node", "a", "ScaleDownStarted", "is drained")
Change = Callable[[CompactorTrial], Awaitable[None]]


class RecordedEvents:
    """Remembers events."""

    def __init__(self) -> None:
        self.events: list[RecordEvent] = []

    def record(self, event: RecordEvent) -> None:
        self.events.append(event)


def changing(patch: dict[str, Any]) -> Change:
    return lambda trial: trial.change("Node", "a", patch)


async def gone(trial: CompactorTrial) -> None:
    await trial.delete("Node", "a")


async def another(trial: CompactorTrial) -> None:
    await trial.delete("Node", "a")
    await trial.make(node("a", "small"))


@pytest.mark.parametrize(
    "change",
    [changing({"metadata": {"labels": {"x": "y"}}}), changing({"metadata": {"annotations": {"other": "y"}}})],
    ids=["a label", "another annotation"],
)
def test_what_the_decision_did_not_rest_on_may_have_changed(control_plane: ControlPlane, change: Change) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        worked, recorder, store = await cordoned_after(change, trial)
        now = await trial.node("a")
        assert (worked, len(recorder.events)) == (True, 1)
        assert (now.spec.unschedulable, now.metadata.annotations[ANNOTATION]) == (True, encode_mark(NEW))
        assert version(store) == now.metadata.resource_version

    play(control_plane, scenario)


@pytest.mark.parametrize(
    "change",
    [
        changing({"metadata": {"annotations": {ANNOTATION: "theirs"}}}),
        changing({"spec": {"unschedulable": True}}),
        another,
    ],
    ids=["the state", "a cordon", "another node of that name"],
)
def test_a_node_that_somebody_else_marked_or_cordoned_is_decided_on_anew(
    control_plane: ControlPlane, change: Change
) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        worked, recorder, store = await cordoned_after(change, trial)
        now = await trial.node("a")
        assert (worked, recorder.events) == (False, [])
        assert now.metadata.annotations.get(ANNOTATION) != encode_mark(NEW)
        assert version(store) == now.metadata.resource_version

    play(control_plane, scenario)


def test_a_node_that_is_gone_needs_nothing_more(control_plane: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        worked, _, _ = await cordoned_after(gone, trial)
        assert worked

    play(control_plane, scenario)


async def cordoned_after(change: Change, trial: CompactorTrial) -> tuple[bool, RecordedEvents, ClusterStore]:
    """What comes of a cordon when a node was changed after the decision."""
    await trial.make(node("a", "small"))
    store, changes, recorder = ClusterStore(), ChangeQueue(), RecordedEvents()
    store.nodes.put(await trial.node("a"))
    actuator = ApiCompactionActuator(trial.client, CacheFeed(store.nodes, changes), recorder)
    await change(trial)
    worked = await actuator.execute((CORDON, BEGUN))
    changes.apply()
    return worked, recorder, store


def version(store: ClusterStore) -> str:
    cached = store.nodes.get("a")
    assert cached is not None
    return cached.metadata.resource_version


def test_somebody_who_writes_all_the_time_does_not_keep_the_state_from_being_written(
    control_plane: ControlPlane,
) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        await trial.make(node("a", "small"))
        store = ClusterStore()
        store.nodes.put(await trial.node("a"))
        actuator = ApiCompactionActuator(trial.client, CacheFeed(store.nodes, ChangeQueue()), RecordedEvents())

        async def write() -> None:
            for number in range(20):
                await trial.change("Node", "a", {"metadata": {"labels": {"x": str(number)}}})
                await asyncio.sleep(0.01)

        worked, _ = await asyncio.gather(actuator.execute((CORDON,)), write())
        assert worked
        assert (await trial.node("a")).spec.unschedulable

    play(control_plane, scenario)


def test_a_pod_that_is_gone_or_another_one_has_left(control_plane: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        actuator = ApiCompactionActuator(trial.client, CacheFeed(ClusterStore().nodes, ChangeQueue()), RecordedEvents())
        actions: tuple[CompactionAction, ...] = (EvictPod("default/nobody", "uid", "a"),)
        assert await actuator.execute(actions)

    play(control_plane, scenario)


def test_each_action_is_a_sign_of_life_whatever_came_of_it(control_plane: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        signs: list[None] = []
        nodes = CacheFeed(ClusterStore().nodes, ChangeQueue())
        actuator = ApiCompactionActuator(trial.client, nodes, RecordedEvents(), on_done=lambda: signs.append(None))
        await trial.make(node("a", "small"))
        assert await actuator.execute((BEGUN, EvictPod("default/nobody", "uid", "a"), BEGUN))
        assert len(signs) == 3
        assert not await actuator.execute((CORDON, BEGUN))  # never with_marks before, so not what was decided on
        assert len(signs) == 4

    play(control_plane, scenario)


def test_every_pod_that_is_asked_to_leave_is_told_to_those_who_want_to_know(control_plane: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        actuator = ApiCompactionActuator(trial.client, CacheFeed(ClusterStore().nodes, ChangeQueue()), RecordedEvents())
        with capture_logs() as logs:
            await actuator.execute((EvictPod("default/one", "uid", "a"), DeletePod("default/two", "uid", "a")))
        logged = [(line["log_level"], line["action"], line["pod"]) for line in logs]
        assert logged == [("debug", "evict", "default/one"), ("debug", "delete", "default/two")]

    play(control_plane, scenario)
