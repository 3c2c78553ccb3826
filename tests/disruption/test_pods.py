from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from tests.factories import pod

from karpool.disruption.candidates import pods
from karpool.model.labels import DISRUPTED_TAINT, DO_NOT_DISRUPT

NOW = datetime(2026, 11, 16, 14, 0, tzinfo=UTC)


def protected(value: str, **rest: Any) -> Any:
    return pod("cart-0", namespace="shop", node="n1", annotations={DO_NOT_DISRUPT: value}, **rest)


@pytest.mark.parametrize(
    ("value", "age", "blocks"),
    [
        ("true", timedelta(days=400), True),
        ("True", timedelta(0), False),
        ("1h", timedelta(minutes=59, seconds=59), True),
        ("1h", timedelta(hours=1), False),
        ("1h30m", timedelta(minutes=75), True),
        ("false", timedelta(0), False),
        ("", timedelta(0), False),
        ("soon", timedelta(0), False),
        ("Never", timedelta(0), False),
        ("0s", timedelta(0), False),
        ("-5m", timedelta(0), False),
    ],
)
def test_a_pod_is_protected_by_true_or_for_a_duration_since_its_start(
    value: str, age: timedelta, *, blocks: bool
) -> None:
    marked = protected(value, started=NOW - age)
    assert (pods.blocks_until(marked, NOW) is not None) is blocks
    assert pods.disruptable(marked, NOW) is not blocks
    assert pods.evictable(marked, NOW) is not blocks


def test_an_ordinary_pod_blocks_nothing() -> None:
    assert pods.blocks_until(pod(node="n1"), NOW) is None
    assert pods.ignored_protection(pod(node="n1")) is None


def test_a_duration_counts_as_running_while_the_pod_has_not_started() -> None:
    waiting = pod("cart-0", annotations={DO_NOT_DISRUPT: "5m"})
    reason = pods.blocks_until(waiting, NOW)
    assert reason is not None
    assert "has not started" in reason.message


@pytest.mark.parametrize(
    ("rest", "moves"),
    [
        ({}, True),
        ({"owner": None}, True),
        ({"owner": "DaemonSet"}, False),
        ({"owner": "Node"}, False),
        ({"phase": "Succeeded"}, False),
        ({"phase": "Failed"}, False),
        ({"deleted": NOW}, False),
        ({"owner": "StatefulSet", "deleted": NOW}, True),
    ],
)
def test_pods_that_stay_or_come_back_under_their_name_need_another_place(rest: dict[str, Any], *, moves: bool) -> None:
    assert pod("a", **rest).reschedulable is moves


@pytest.mark.parametrize(
    ("rest", "blocks"),
    [
        ({"phase": "Succeeded"}, False),
        ({"phase": "Failed"}, False),
        ({"deleted": NOW}, False),
        ({"owner": "DaemonSet"}, True),
        ({"owner": "Node"}, True),
        ({"owner": None}, True),
    ],
)
def test_only_active_pods_block_and_daemons_and_mirrors_do(rest: dict[str, Any], *, blocks: bool) -> None:
    assert (pods.blocks_until(protected("true", **rest), NOW) is not None) is blocks


@pytest.mark.parametrize(
    ("value", "started", "said"),
    [
        ("true", NOW, f"has {DO_NOT_DISRUPT}"),
        ("1h", NOW - timedelta(minutes=30), f"has {DO_NOT_DISRUPT} until 14:30 UTC"),
        ("24h", NOW - timedelta(minutes=30), f"has {DO_NOT_DISRUPT} until 2026-11-17 13:30 UTC"),
        ("90s", NOW - timedelta(seconds=45), f"has {DO_NOT_DISRUPT} until 14:00:45 UTC"),
    ],
)
def test_the_reason_says_until_when(value: str, started: datetime, said: str) -> None:
    reason = pods.blocks_until(protected(value, started=started), NOW)
    assert reason is not None
    assert (reason.code, reason.message, reason.object) == ("PodDoNotDisrupt", said, "Pod shop/cart-0")


def test_a_node_waits_for_the_longest_of_several_durations() -> None:
    held = [protected(f"{minutes}m", started=NOW) for minutes in (10, 30, 20)]
    assert max(filter(None, map(pods.protected_until, held))) == NOW + timedelta(minutes=30)


@pytest.mark.parametrize(
    ("value", "warned"), [("true", False), ("5m", False), ("0s", True), ("-1h", True), ("on", True)]
)
def test_an_annotation_that_means_nothing_gives_a_warning(value: str, *, warned: bool) -> None:
    warning = pods.ignored_protection(protected(value))
    assert (warning is not None) is warned
    if warning is not None:
        assert warning.code == "DoNotDisruptIgnored"
        assert repr(value) in warning.message


@pytest.mark.parametrize(
    ("rest", "evictable", "drainable"),
    [
        ({}, True, True),
        ({"owner": "DaemonSet"}, True, True),
        ({"owner": "Node"}, False, False),
        ({"tolerations": [DISRUPTED_TAINT]}, False, False),
        ({"tolerations": [""]}, False, False),
        ({"tolerations": [f"{DISRUPTED_TAINT}:NoExecute"]}, True, True),
        ({"phase": "Succeeded"}, False, True),
        ({"deleted": NOW}, False, True),
        ({"deleted": NOW - timedelta(minutes=1)}, False, True),
        ({"deleted": NOW - timedelta(minutes=1, seconds=1)}, False, False),
        ({"annotations": {DO_NOT_DISRUPT: "true"}}, False, True),
    ],
)
def test_who_is_evicted_and_whom_a_drain_waits_for(rest: dict[str, Any], *, evictable: bool, drainable: bool) -> None:
    found = pod(node="n1", **rest)
    assert pods.evictable(found, NOW) is evictable
    assert pods.drainable(found, NOW) is drainable


def test_a_finished_pod_is_not_waited_for() -> None:
    assert pods.waiting_for_eviction(pod(node="n1"), NOW)
    assert not pods.waiting_for_eviction(pod(node="n1", phase="Failed"), NOW)


@pytest.mark.parametrize(
    ("name", "critical"),
    [("system-node-critical", True), ("system-cluster-critical", True), ("high-priority", False), ("", False)],
)
def test_system_critical_pods_are_known_by_their_priority_class(name: str, *, critical: bool) -> None:
    plain = pod(node="n1", priority=2_000_001_000)
    classed = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, priority_class_name=name))
    assert pods.critical(classed) is critical
