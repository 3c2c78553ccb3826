"""The compactor stands still while it is paused or the cluster is unhealthy, and takes drains back."""

from dataclasses import replace

import pytest
from tests.compaction.clusters import IN_PROGRESS, NOW, ago, cluster, config, draining, pool_node
from tests.disruption.brakes.test_pause_of_everything import config_map

from karpool.compaction.actions import SetNodeState
from karpool.compaction.advance import CompactionStep, advance
from karpool.compaction.explain import explain
from karpool.compaction.marks import Mark
from karpool.compaction.settings import DEFAULTS
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.execution.actions import RecordEvent

PAUSE = config_map(namespace="estafette", reason="incident 42")
SETTINGS = replace(DEFAULTS, brakes=BrakeSettings(pause_namespace="estafette"))
ROOM = pool_node("room", pods=["3500m"], mark=None)
LOST = [pool_node(f"lost-{number}", mark=None, ready=False) for number in range(5)]


def step(*nodes: object, paused: bool = False) -> CompactionStep:
    objects = cluster(nodes, pauses=(PAUSE,) if paused else ())  # type: ignore[arg-type]
    return advance(objects, config(), NOW, SETTINGS)


def written(taken: CompactionStep) -> dict[str, SetNodeState]:
    return {action.node: action for action in taken.actions if isinstance(action, SetNodeState)}


def reasons(taken: CompactionStep, name: str) -> list[str]:
    return [reason.code for verdict in taken.decision.nodes if verdict.view.name == name for reason in verdict.reasons]


def test_without_a_brake_the_node_is_chosen() -> None:
    assert [chosen.node for chosen in step(pool_node("a"), ROOM).decision.chosen] == ["a"]


def test_while_it_is_paused_nothing_starts_and_the_node_says_why() -> None:
    taken = step(pool_node("a"), ROOM, paused=True)
    assert taken.decision.chosen == ()
    assert written(taken) == {}
    assert reasons(taken, "a") == ["Paused"]
    assert taken.decision.stop is not None
    assert taken.decision.stop.message == "pauses everything: incident 42"
    objects = cluster([pool_node("a"), ROOM], pauses=(PAUSE,))
    assert "Paused" in [reason.code for reason in explain(objects, config(), NOW, "a", SETTINGS).reasons]


def test_while_the_cluster_is_unhealthy_nothing_starts() -> None:
    taken = step(pool_node("a"), ROOM, *LOST)
    assert taken.decision.chosen == ()
    assert reasons(taken, "a") == ["ClusterUnhealthy"]


@pytest.mark.parametrize("nodes", [[ROOM], [ROOM, *LOST]], ids=["paused", "unhealthy"])
def test_a_drain_is_taken_back_and_the_node_may_be_chosen_again_afterwards(nodes: list[object]) -> None:
    paused = len(nodes) == 1
    taken = step(draining("a", pods=["100m"]), *nodes, paused=paused)
    action = written(taken)["a"]
    assert action.unschedulable is False
    assert action.mark == Mark(updated=NOW)
    (event,) = [action for action in taken.actions if isinstance(action, RecordEvent)]
    assert event.reason == ("Paused" if paused else "ClusterUnhealthy")
    assert event.message.startswith("its scale-down was given up: ")


def test_an_empty_node_goes_on_waiting_for_the_autoscaler() -> None:
    waiting = draining("a", mark=replace(IN_PROGRESS, drained_at=ago(minutes=1)))
    assert "a" not in written(step(waiting, ROOM, paused=True))
