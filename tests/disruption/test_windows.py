from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from tests.factories import node_claim, node_pool

from karpool.disruption.candidates.windows import closed_until, in_grace, reference_time, source_closed
from karpool.model.labels import GRACE_PERIOD
from karpool.model.nodepool import NodeClaim, NodePool, PoolStatus
from karpool.model.reasons import Reason
from karpool.wire.objects import Condition

T0 = datetime(2026, 11, 16, 14, 0, tzinfo=UTC)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def claim(**rest: Any) -> NodeClaim:
    return node_claim(**{"node_name": "n1", "initialized_at": T0, **rest})


def code(reason: Reason | None) -> str | None:
    return None if reason is None else reason.code


def not_ready(pool: NodePool) -> NodePool:
    return msgspec.structs.replace(pool, status=PoolStatus(conditions=(Condition(type="Ready", status="False"),)))


def without_conditions(found: NodeClaim) -> NodeClaim:
    return msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, conditions=()))


def test_a_node_counts_as_quiet_from_its_last_pod_event_or_else_from_its_start() -> None:
    assert reference_time(claim(last_pod_event=T0 + minutes(7))) == T0 + minutes(7)
    assert reference_time(claim()) == T0
    assert reference_time(claim(initialized_at=None)) is None
    assert reference_time(without_conditions(claim(created=T0 - minutes(3)))) == T0 - minutes(3)


@pytest.mark.parametrize(
    ("consolidate_after", "age", "expected"),
    [
        ("0s", minutes(0), None),
        ("30s", timedelta(seconds=29), "ConsolidateAfterWindow"),
        ("30s", timedelta(seconds=30), None),
        ("1h", minutes(59), "ConsolidateAfterWindow"),
        ("1h", minutes(60), None),
        ("Never", minutes(9000), "ConsolidateAfterNever"),
    ],
)
def test_a_node_may_be_emptied_once_it_was_quiet_for_long_enough(
    consolidate_after: str, age: timedelta, expected: str | None
) -> None:
    pool = node_pool(consolidate_after=consolidate_after)
    assert code(source_closed(claim(last_pod_event=T0), pool, T0 + age)) == expected
    assert code(source_closed(claim(), pool, T0 + age)) == expected


@pytest.mark.parametrize(
    ("found", "pool", "expected"),
    [
        (claim(), node_pool(replicas=3, consolidate_after="Never"), "StaticPool"),
        (claim(initialized_at=None), node_pool(), "NodeNotInitialized"),
        (claim(initialized_at=None), node_pool(consolidate_after="Never"), "ConsolidateAfterNever"),
        (without_conditions(claim()), node_pool(), None),
    ],
)
def test_static_pools_and_uninitialized_nodes_are_not_emptied(
    found: NodeClaim, pool: NodePool, expected: str | None
) -> None:
    assert code(source_closed(found, pool, T0 + minutes(60))) == expected


def test_the_reason_says_when_the_window_ends() -> None:
    reason = source_closed(claim(last_pod_event=T0), node_pool("general", consolidate_after="30m"), T0 + minutes(5))
    assert reason is not None
    assert reason.object == "Node n1"
    assert reason.message == "consolidateAfter of NodePool general (30m) has not passed; it does at 14:30 UTC"


@pytest.mark.parametrize(
    ("pool", "closed"),
    [
        (node_pool(consolidate_after="30m"), True),
        (node_pool(consolidate_after="10m"), False),
        (node_pool(consolidate_after="0s"), False),
        (node_pool(consolidate_after="Never"), False),
        (node_pool(consolidate_after="30m", replicas=2), False),
        (not_ready(node_pool(consolidate_after="30m")), False),
        (None, False),
    ],
)
def test_a_node_inside_its_own_window_is_no_destination(pool: NodePool | None, *, closed: bool) -> None:
    opens = closed_until(claim(last_pod_event=T0), pool)
    assert (opens > T0 + minutes(10)) is closed


@pytest.mark.parametrize(
    ("grace", "age", "expected"),
    [
        ("30m", timedelta(0), "GracePeriod"),
        ("30m", minutes(30) - timedelta(microseconds=1), "GracePeriod"),
        ("30m", minutes(30), None),
        ("30m", -minutes(1), "GracePeriod"),
        ("0s", timedelta(0), None),
        ("Never", timedelta(0), None),
        (None, timedelta(0), None),
    ],
)
def test_a_pod_event_makes_a_node_invisible_until_its_grace_period_is_over(
    grace: str | None, age: timedelta, expected: str | None
) -> None:
    assert code(in_grace(claim(last_pod_event=T0), node_pool(grace_period=grace), T0 + age)) == expected
    annotated = node_pool(annotations={} if grace is None else {GRACE_PERIOD: grace})
    assert code(in_grace(claim(last_pod_event=T0), annotated, T0 + age)) == expected


def test_a_node_without_a_pod_event_or_a_pool_is_visible() -> None:
    assert in_grace(claim(), node_pool(grace_period="30m"), T0) is None
    assert in_grace(claim(last_pod_event=T0), None, T0) is None


def test_a_grace_period_that_cannot_be_read_leaves_the_nodes_alone() -> None:
    reason = in_grace(claim(), node_pool(annotations={GRACE_PERIOD: "half an hour"}), T0)
    assert code(reason) == "GracePeriodInvalid"


class Timeline:
    """Nodes a, b and c have been quiet for an hour; node d comes at minute 1, and has pod events at some minutes."""

    pool = node_pool(consolidate_after="30s", grace_period="30m")

    def __init__(self, *events: float) -> None:
        self.events = [T0 + minutes(event) for event in events]

    def d(self, now: datetime) -> NodeClaim:
        """Node d as it is at a moment."""
        last = max(event for event in self.events if event <= now)
        return claim(node_name="d", initialized_at=T0 + minutes(1), last_pod_event=last)

    def seen(self, now: datetime) -> str:
        """The nodes that consolidation sees."""
        nodes = {name: claim(node_name=name, initialized_at=T0 - minutes(60)) for name in "abc"}
        if now >= T0 + minutes(1):
            nodes["d"] = self.d(now)
        return "".join(name for name, found in nodes.items() if in_grace(found, self.pool, now) is None)


@pytest.mark.parametrize("minute", range(45))
def test_the_node_of_the_timeline_is_seen_from_minute_35_on(minute: int) -> None:
    assert Timeline(1, 5).seen(T0 + minutes(minute)) == ("abcd" if minute >= 35 else "abc")


def test_without_the_second_event_the_node_would_be_seen_from_minute_31_on() -> None:
    line = Timeline(1)
    assert [line.seen(T0 + minutes(minute)) for minute in (30, 31)] == ["abc", "abcd"]


@pytest.mark.parametrize(("moment", "source"), [(1.5, False), (5.5, False), (34.99, False), (35.5, True)])
def test_in_the_timeline_the_window_alone_would_have_let_the_node_go_after_30_seconds(
    moment: float, *, source: bool
) -> None:
    now, line = T0 + minutes(moment), Timeline(1, 5)
    assert source_closed(line.d(now), line.pool, now) is None
    assert (in_grace(line.d(now), line.pool, now) is None) is source


def test_the_grace_period_says_until_when_a_node_is_left_alone() -> None:
    reason = in_grace(claim(last_pod_event=T0), node_pool(grace_period="30m"), T0 + minutes(5))
    assert reason is not None
    assert reason.message == "had a pod event, and the grace period of NodePool default (30m) lasts until 14:30 UTC"
