from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.execution.world import START
from tests.factories import claim_for, node, pod

from karpool.execution.actions import SetPodEventTime
from karpool.execution.pod_events import missed_pod_events, note_pod_event, pod_event
from karpool.model.objects import Objects
from karpool.model.pod import Pod

SECOND = timedelta(seconds=1)
WAITING = pod("web-1")
RUNNING = pod("web-1", node="n1")
FINISHED = pod("web-1", node="n1", phase="Succeeded")
LEAVING = pod("web-1", node="n1", deleted=START)
DAEMON = pod("agent-1", node="n1", owner="DaemonSet")


@pytest.mark.parametrize(
    ("before", "after", "event"),
    [
        (None, WAITING, None),
        (None, RUNNING, "n1"),
        (WAITING, RUNNING, "n1"),
        (RUNNING, RUNNING, None),
        (RUNNING, FINISHED, "n1"),
        (RUNNING, LEAVING, "n1"),
        (LEAVING, FINISHED, "n1"),
        (FINISHED, None, None),
        (LEAVING, None, None),
        (RUNNING, None, "n1"),
        (None, DAEMON, None),
        (None, None, None),
    ],
)
def test_pods_that_come_finish_and_leave_are_events(before: Pod | None, after: Pod | None, event: str | None) -> None:
    assert pod_event(before, after) == event


@pytest.mark.parametrize(("seconds", "noted"), [(0, False), (9, False), (10, True), (60, True), (-60, False)])
def test_events_within_ten_seconds_are_one(seconds: int, *, noted: bool) -> None:
    claim = claim_for(node("n1"), last_pod_event=START)
    action = note_pod_event(claim, START + seconds * SECOND)
    assert action == (SetPodEventTime("n1", START + seconds * SECOND) if noted else None)


def test_a_first_event_is_noted() -> None:
    claim = claim_for(node("n1"), last_pod_event=None)
    assert note_pod_event(claim, START) == SetPodEventTime("n1", START)


def missed(*pods: Pod) -> list[float]:
    made = node("n1")
    objects = Objects(nodes=(made,), node_claims=(claim_for(made, last_pod_event=START),), pods=pods)
    return [(action.time - START) / SECOND for action in missed_pod_events(objects, START + 3600 * SECOND)]


def test_a_restart_alone_is_no_event() -> None:
    assert (
        missed(pod("web-1", node="n1"), pod("agent-1", node="n1", owner="DaemonSet", created=START + 50 * SECOND)) == []
    )


def test_what_happened_meanwhile_is_noted_when_it_happened() -> None:
    bound = pod("web-2", node="n1", created=START + 300 * SECOND)
    assert missed(pod("web-1", node="n1"), bound) == [300]
    left = pod("web-3", node="n1", deleted=START + 500 * SECOND, grace_seconds=60)
    assert missed(bound, left) == [440]


def test_a_pod_that_finished_meanwhile_is_noted() -> None:
    done = pod("job-1", node="n1", phase="Succeeded")
    conditions = tuple(replace(entry, last_transition_time=START + 90 * SECOND) for entry in done.status.conditions)
    assert missed(replace(done, status=replace(done.status, conditions=conditions))) == [90]
