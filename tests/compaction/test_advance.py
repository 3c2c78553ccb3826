"""The steps of a scale-down, from the cordon to its end, on a cluster that does what it is told."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace as changed
from tests.compaction.clusters import (
    GKE,
    IN_PROGRESS,
    MARKED,
    NOW,
    ROOMY,
    ago,
    cluster,
    config,
    draining,
    pool_config,
    pool_node,
)
from tests.factories import pdb, pod, taint
from tests.tables import row, table

from karpool.compaction.actions import CompactionAction, SetNodeState
from karpool.compaction.advance import CompactionStep, advance
from karpool.compaction.config import Config
from karpool.compaction.marks import ANNOTATION, Mark, decode_mark, encode_mark
from karpool.compaction.settings import DEFAULTS, jittered
from karpool.execution.actions import DeletePod, EvictPod, RecordEvent
from karpool.model.node import Node
from karpool.model.objects import Objects

WAITING = replace(IN_PROGRESS, drained_at=ago(minutes=1))
"""Drained, and waiting for the autoscaler."""


def step(*nodes: Any, given: Config | None = None, now: datetime = NOW, **others: Any) -> CompactionStep:
    return advance(cluster(nodes, **others), given or config(), now, DEFAULTS)


def states(actions: tuple[CompactionAction, ...]) -> dict[str, tuple[Mark, bool | None]]:
    """What is written to nodes: the mark, and the cordon."""
    written = [action for action in actions if isinstance(action, SetNodeState)]
    assert len({action.node for action in written}) == len(written)
    return {each.node: (each.mark, each.unschedulable) for each in written}


def evicted(actions: tuple[CompactionAction, ...]) -> list[str]:
    return [action.key for action in actions if isinstance(action, EvictPod)]


def events(actions: tuple[CompactionAction, ...]) -> list[tuple[str, str]]:
    return [(action.name, action.reason) for action in actions if isinstance(action, RecordEvent)]


def carried_out(objects: Objects, actions: tuple[CompactionAction, ...], refused: tuple[str, ...] = ()) -> Objects:
    """The objects after a cluster has done what it was told; pods that are refused stay."""
    written = {action.node: action for action in actions if isinstance(action, SetNodeState)}
    nodes = tuple(_written(node, written[node.name]) if node.name in written else node for node in objects.nodes)
    gone = {key for key in evicted(actions) if key not in refused}
    return changed(objects, nodes=nodes, pods=tuple(pod for pod in objects.pods if pod.key not in gone))


def _written(node: Node, action: SetNodeState) -> Node:
    annotations = {**node.metadata.annotations, ANNOTATION: encode_mark(action.mark)}
    cordon = node.spec.unschedulable if action.unschedulable is None else action.unschedulable
    metadata = changed(node.metadata, annotations=annotations)
    return changed(node, metadata=metadata, spec=changed(node.spec, unschedulable=cordon))


# -- marks and beginnings ----------------------------------------------------------------------------------------------


def test_only_marks_that_change_are_written() -> None:
    result = step(
        pool_node("a", pods=["1"], mark=None),
        pool_node("b", pods=["1"], mark=MARKED, pool="other"),
        pool_node("c", pods=["3500m"]),
        pool_node("d", pods=["3900m"], mark=None),
    )
    assert states(result.actions) == {
        "a": (Mark(marked=True, marked_at=NOW, updated=NOW), None),
        "b": (Mark(updated=NOW), None),
        "c": (Mark(updated=NOW), None),
    }
    assert result.requeue_at is None


def test_the_chosen_node_is_cordoned_in_one_change_with_its_state() -> None:
    result = step(pool_node("a", pods=["1"]), ROOMY)
    assert states(result.actions) == {"a": (Mark(in_progress=True, updated=NOW), True)}
    assert events(result.actions) == [("a", "ScaleDownStarted")]
    assert evicted(result.actions) == []
    assert result.requeue_at == NOW + DEFAULTS.drain_interval


@table(
    row("ten seconds after the last", started=ago(seconds=10), most=None, starts=False, requeue_at=ago(seconds=-290)),
    row(
        "a second before the interval is over",
        started=ago(seconds=299),
        most=None,
        starts=False,
        requeue_at=ago(seconds=-1),
    ),
    row("the interval is over", started=ago(seconds=300), most=None, starts=True, requeue_at=ago(seconds=-10)),
    row("ten seconds, but two at once", started=ago(seconds=10), most=2, starts=True, requeue_at=ago(seconds=-10)),
    row("the interval is over, but one at once", started=ago(seconds=300), most=1, starts=False, requeue_at=None),
    row("the time of the last is unknown", started=None, most=None, starts=True, requeue_at=ago(seconds=-10)),
    row(
        "the time of the last is in the future",
        started=ago(hours=-9),
        most=None,
        starts=False,
        requeue_at=ago(seconds=-300),
    ),
)
def test_a_pool_begins_one_scale_down_in_each_regular_interval_unless_it_says_how_many_at_once(
    started: datetime | None, most: int | None, *, starts: bool, requeue_at: datetime | None
) -> None:
    waiting = draining("x", mark=Mark(in_progress=True, updated=started, drained_at=ago(seconds=5)))
    given = config(main=pool_config(max_in_progress=most))
    result = step(pool_node("a", pods=["1"]), pool_node("b", pods=["1"]), waiting, ROOMY, given=given)
    assert events(result.actions) == ([("a", "ScaleDownStarted")] if starts else [])
    assert result.requeue_at == requeue_at


def test_the_pace_of_one_pool_does_not_hold_another() -> None:
    given = config(main=pool_config(), second=pool_config())
    nodes = (
        pool_node("a", pods=["1"]),
        pool_node("b", pods=["1"]),
        draining("x"),
        pool_node("c", pods=["1"], pool="second"),
        ROOMY,
    )
    assert [name for name, reason in events(step(*nodes, given=given).actions) if reason == "ScaleDownStarted"] == ["c"]


# -- draining ----------------------------------------------------------------------------------------------------------


def test_pods_are_evicted_and_others_are_left() -> None:
    others = [
        pod("agent-1", node="a", owner="DaemonSet"),
        pod("dns-1", node="a", namespace="kube-system"),
        pod("gone-1", node="a", deleted=NOW),
    ]
    result = step(draining("a", pods=["1", "1", *others]), ROOMY)
    assert result.actions == (
        EvictPod("default/a-0", "default/a-0", "a"),
        EvictPod("default/a-1", "default/a-1", "a"),
    )


def test_where_budgets_are_not_respected_pods_are_deleted() -> None:
    result = step(draining("a", pods=["1"]), ROOMY, given=config(main=pool_config(respect_pdbs=False)))
    assert result.actions == (DeletePod("default/a-0", "default/a-0", "a"),)


def test_a_pod_that_still_terminates_is_waited_for() -> None:
    result = step(draining("a", pods=[pod("slow-1", node="a", deleted=NOW)]), ROOMY)
    assert result.actions == ()
    assert result.requeue_at is not None


def test_when_the_last_pod_has_left_the_time_is_noted_once() -> None:
    result = step(draining("a"), ROOMY)
    assert states(result.actions) == {"a": (replace(IN_PROGRESS, drained_at=NOW), None)}
    assert events(result.actions) == [("a", "Drained")]
    assert step(draining("a", mark=WAITING), ROOMY).actions == ()


@pytest.mark.parametrize(
    ("nodes", "soon"),
    [
        ((draining("a", pods=["1"]),), True),
        ((draining("a"),), False),
        ((draining("a", mark=WAITING),), False),
        ((draining("a", mark=WAITING), draining("b", pods=["1"])), True),
        ((draining("a", mark=WAITING), draining("b", mark=WAITING)), False),
        ((draining("a", pods=[pod("agent-1", node="a", owner="DaemonSet")], mark=WAITING),), False),
        ((draining("a", pods=["1"], taints=[taint("ToBeDeletedByClusterAutoscaler=1")]),), False),
    ],
)
def test_the_next_look_is_soon_only_while_pods_have_to_leave(nodes: Any, *, soon: bool) -> None:
    assert step(*nodes, ROOMY).requeue_at == (NOW + DEFAULTS.drain_interval if soon else None)


def test_what_the_original_began_is_carried_on() -> None:
    text = '{"markedForRemoval":false,"markedAt":"","scaleDownInProgress":true,"lastUpdated":"2026-06-15T11:59:00Z"}'
    result = step(pool_node("a", pods=["1"], mark=text, cordoned=True), ROOMY)
    assert evicted(result.actions) == ["default/a-0"]


def test_a_scale_down_without_a_time_gets_one() -> None:
    result = step(draining("a", pods=["1"], mark=Mark(in_progress=True)), ROOMY)
    assert states(result.actions) == {"a": (Mark(in_progress=True, updated=NOW), None)}
    assert evicted(result.actions) == ["default/a-0"]


# -- giving up ---------------------------------------------------------------------------------------------------------

OLD = Mark(in_progress=True, updated=ago(minutes=15))
EMPTY = Mark(in_progress=True, updated=ago(hours=2), drained_at=ago(hours=1))


@pytest.mark.parametrize(
    ("made", "given", "reason"),
    [
        (draining("a", pods=["1"], mark=OLD), config(), "DrainStalled"),
        (draining("a", pods=[pod("slow-1", node="a", deleted=ago(minutes=14))], mark=OLD), config(), "DrainStalled"),
        (draining("a", mark=EMPTY), config(), "NotRemoved"),
        (pool_node("a", pods=["1"], mark=IN_PROGRESS), config(), "Uncordoned"),
        (draining("a", pods=["1"]), config(elsewhere=pool_config()), "PoolNotEnabled"),
        (draining("a", pods=[pod("alone", node="a", owner=None)]), config(), "PodNotReplicated"),
    ],
)
def test_a_scale_down_that_leads_nowhere_is_given_up(made: Any, given: Config, reason: str) -> None:
    result = step(made, ROOMY, given=given)
    assert states(result.actions) == {"a": (Mark(updated=NOW, retry_after=NOW + DEFAULTS.retry_after), False)}
    assert events(result.actions) == [("a", reason)]
    assert result.requeue_at is None


def test_a_node_that_the_autoscaler_removes_is_left_to_it() -> None:
    removed = draining("a", pods=["1"], mark=OLD, taints=[taint("ToBeDeletedByClusterAutoscaler=1")])
    assert step(removed, ROOMY).actions == ()


def test_a_pool_that_fills_up_again_gets_its_node_back() -> None:
    nodes = (draining("a"), pool_node("b", pods=["3500m"], mark=None))
    waiting = pod("new-1", cpu="2", pending=True)
    result = step(*nodes, pods=[waiting])
    assert states(result.actions)["a"][1] is False
    assert events(result.actions) == [("a", "PoolFilledUp")]
    event = next(action for action in result.actions if isinstance(action, RecordEvent))
    assert "Pod default/new-1" in event.message


def test_pods_that_no_node_would_take_change_nothing() -> None:
    result = step(
        draining("a"), pool_node("b", pods=["3500m"], mark=None), pods=[pod("huge-1", cpu="64", pending=True)]
    )
    assert events(result.actions) == [("a", "Drained")]


def test_only_as_many_nodes_come_back_as_are_needed_the_last_first() -> None:
    first, last = replace(IN_PROGRESS, updated=ago(minutes=9)), replace(IN_PROGRESS, updated=ago(minutes=1))
    nodes = (draining("a", mark=last), draining("b", mark=first), pool_node("c", pods=["3500m"], mark=None))
    result = step(*nodes, pods=[pod("new-1", cpu="2", pending=True)])
    assert {name: cordon for name, (_, cordon) in states(result.actions).items()} == {"a": False, "b": None}


def test_the_pods_that_are_left_need_their_node_if_the_others_have_filled_up() -> None:
    result = step(draining("a", pods=["2"]), pool_node("b", pods=["3500m"], mark=None))
    assert events(result.actions) == [("a", "PoolFilledUp")]
    rash = step(
        draining("a", pods=["2"]),
        pool_node("b", pods=["3500m"], mark=None),
        given=config(main=pool_config(check_fit=False)),
    )
    assert evicted(rash.actions) == ["default/a-0"]


def test_a_pool_that_gets_a_node_back_gives_none_away_in_the_same_step() -> None:
    nodes = (draining("a", pods=["1"], mark=OLD), pool_node("b", pods=["1"]), pool_node("c", pods=["1"]), ROOMY)
    result = step(*nodes)
    assert result.decision.chosen
    assert {name: cordon for name, (_, cordon) in states(result.actions).items()} == {"a": False}


# -- whole scale-downs ---------------------------------------------------------------------------------------------


def test_a_drain_that_a_budget_first_refuses_goes_on_after_a_restart_until_the_node_is_empty() -> None:
    objects = cluster(
        [pool_node("a", pods=["1", "1"]), ROOMY], pod_disruption_budgets=(pdb("a", {"app": "a"}, allowed=1),)
    )
    now, asked = NOW, []
    for refused in ((), ("default/a-1",), ("default/a-1",), (), ()):
        # Nothing is carried from step to step but the objects: every step is one after a restart.
        actions = advance(objects, config(), now, DEFAULTS).actions
        asked.append(evicted(actions))
        objects, now = carried_out(objects, actions, refused), now + DEFAULTS.drain_interval
    assert asked == [[], ["default/a-0", "default/a-1"], ["default/a-1"], ["default/a-1"], []]
    (emptied, _) = objects.nodes
    assert emptied.spec.unschedulable
    assert decode_mark(emptied.metadata.annotations).drained_at is not None
    assert advance(objects, config(), now, DEFAULTS).actions == ()


def test_a_stalled_drain_is_undone_and_not_tried_again_for_a_while() -> None:
    objects, now = cluster([pool_node("a", pods=["1"]), ROOMY]), NOW
    tried = []
    while now < NOW + timedelta(hours=2, minutes=30):
        actions = advance(objects, config(), now, DEFAULTS).actions
        tried += [(now - NOW, reason) for _, reason in events(actions)]
        objects, now = carried_out(objects, actions, ("default/a-0",)), now + timedelta(minutes=5)
    assert [reason for _, reason in tried] == ["ScaleDownStarted", "DrainStalled"] * 2
    assert tried[1][0] == timedelta(minutes=15)
    assert tried[2][0] == timedelta(minutes=75)


def test_in_off_hours_a_pool_shrinks_node_by_node_to_what_it_needs() -> None:
    objects, now = cluster([pool_node(f"n{i}", pods=["500m", "500m"], mark=None) for i in range(6)]), NOW
    given = config(main=pool_config(limit=0.75, required=2))
    for _ in range(60):
        actions = advance(objects, given, now, DEFAULTS).actions
        before = {each.key: each for each in objects.pods}
        objects = carried_out(objects, actions)
        moved = [before[key] for key in evicted(actions)]
        objects = changed(objects, pods=(*objects.pods, *_scheduled(objects, moved)))
        objects, now = _autoscaled(objects), now + timedelta(minutes=1)
    assert len(objects.pods) == 12
    assert all(GKE in node.metadata.labels for node in objects.nodes)
    used = {node.name: sum(each.spec.node_name == node.name for each in objects.pods) for node in objects.nodes}
    assert sorted(used.values()) == [4, 8]


@pytest.mark.parametrize(("most", "apart"), [(None, [300, 300]), (3, [10, 10])])
def test_however_often_it_is_looked_at_a_pool_gives_away_one_node_in_each_interval(
    most: int | None, apart: list[int]
) -> None:
    objects, now = cluster([*(pool_node(f"n{i}", pods=["100m"]) for i in range(9)), ROOMY]), NOW
    given = config(main=pool_config(max_in_progress=most))
    started: list[datetime] = []
    while now < NOW + timedelta(minutes=14):
        result = advance(objects, given, now, DEFAULTS)
        started += [now for _, reason in events(result.actions) if reason == "ScaleDownStarted"]
        objects = carried_out(objects, result.actions, refused=("default/n0-0",))
        now = result.requeue_at or now + DEFAULTS.sleep
    assert [(after - before).total_seconds() for before, after in pairwise(started)] == apart


def _scheduled(objects: Objects, moved: list[Any]) -> list[Any]:
    """Each pod on the first open node with room for it: eight of these pods fill a node."""
    count = {node.name: sum(each.spec.node_name == node.name for each in objects.pods) for node in objects.nodes}
    placed = []
    for each in moved:
        home = next(node.name for node in objects.nodes if not node.spec.unschedulable and count[node.name] < 8)
        count[home] += 1
        placed.append(changed(each, spec=changed(each.spec, node_name=home)))
    return placed


def _autoscaled(objects: Objects) -> Objects:
    """The objects without cordoned nodes that are empty."""
    used = {each.spec.node_name for each in objects.pods}
    return changed(objects, nodes=tuple(n for n in objects.nodes if n.name in used or not n.spec.unschedulable))


def test_the_time_to_sleep_varies_by_a_quarter() -> None:
    assert [jittered(timedelta(seconds=300), chance).total_seconds() for chance in (0, 0.5, 1)] == [225, 300, 375]


def test_states_are_written_to_the_annotation() -> None:
    (action,) = step(pool_node("a", pods=["1"], mark=None)).actions
    assert isinstance(action, SetNodeState)
    assert decode_mark({"estafette.io/node-compactor-state": encode_mark(action.mark)}) == action.mark
