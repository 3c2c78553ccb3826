import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.factories import node_pool
from tests.tables import row, table

from karpool.disruption.budgets import UNLIMITED, allowed, calendar
from karpool.model.labels import BUDGETS
from karpool.model.nodepool import Budget
from karpool.wire.duration import parse_duration

MONDAY = datetime(2026, 11, 16, 14, 0, tzinfo=UTC)
OFFICE = "0 9 * * mon-fri"


def budget(
    nodes: str | int, *, schedule: str | None = None, duration: str | None = None, reasons: Sequence[str] | None = None
) -> Budget:
    return Budget(
        nodes=nodes,
        schedule=schedule,
        duration=None if duration is None else parse_duration(duration),
        reasons=None if reasons is None else tuple(reasons),
    )


def limit(*budgets: Budget | str | int, reason: str = "Underutilized", nodes: int = 10, now: datetime = MONDAY) -> int:
    return allowed(node_pool(budgets=budgets), reason, nodes, 0, now).allowed


@pytest.mark.parametrize(
    ("written", "nodes", "expected"),
    [
        ("10%", 10, 1),
        ("10%", 11, 2),
        ("10%", 1, 1),
        ("10%", 0, 0),
        ("0%", 10, 0),
        ("100%", 7, 7),
        ("30%", 10, 3),
        ("33%", 100, 33),
        ("7%", 100, 7),
        ("0", 10, 0),
        ("5", 3, 5),
        (5, 10, 5),
        (0, 10, 0),
        ("99999999999", 10, UNLIMITED),
    ],
)
def test_percentages_round_up_and_numbers_are_taken_as_they_are(written: str | int, nodes: int, expected: int) -> None:
    assert limit(written, nodes=nodes) == expected


def test_the_tightest_budget_binds_and_is_named() -> None:
    pool = node_pool("general", budgets=("50%", budget("20%", schedule=OFFICE, duration="8h"), 9))
    found = allowed(pool, "Empty", 10, 1, MONDAY)
    assert (found.allowed, found.remaining) == (2, 1)
    assert found.why is not None
    assert (found.why.code, found.why.object) == ("BudgetExhausted", "NodePool general")
    assert found.why.message == (
        "budget 2 (nodes 20%, 0 9 * * mon-fri for 8h) allows 2 of 10 nodes at once; 1 is on the way out or not ready"
    )


def test_no_budgets_at_all_allow_everything() -> None:
    found = allowed(node_pool(budgets=()), "Drifted", 10, 4, MONDAY)
    assert found.allowed >= UNLIMITED
    assert (found.remaining, found.why) == (UNLIMITED, None)


@pytest.mark.parametrize(("busy", "remaining"), [(0, 3), (2, 1), (3, 0), (9, 0)])
def test_busy_nodes_use_the_budget_up(busy: int, remaining: int) -> None:
    assert allowed(node_pool(budgets=("30%",)), "Empty", 10, busy, MONDAY).remaining == remaining


@pytest.mark.parametrize(
    ("reasons", "asked", "expected"),
    [
        (None, "Empty", 0),
        (["Empty"], "Empty", 0),
        (["Empty", "Drifted"], "Drifted", 0),
        (["Empty"], "Underutilized", UNLIMITED),
        ([], "Empty", UNLIMITED),
    ],
)
def test_a_budget_applies_to_the_reasons_it_names(reasons: list[str] | None, asked: str, expected: int) -> None:
    assert limit(budget(0, reasons=reasons), reason=asked) == expected


@table(
    row(schedule=OFFICE, duration="8h", now=datetime(2026, 11, 16, 8, 59, tzinfo=UTC), expected=UNLIMITED),
    row(schedule=OFFICE, duration="8h", now=datetime(2026, 11, 16, 9, 0, tzinfo=UTC), expected=0),
    row(schedule=OFFICE, duration="8h", now=datetime(2026, 11, 16, 17, 0, tzinfo=UTC), expected=UNLIMITED),
    row(
        schedule="@daily",
        duration="30m",
        now=datetime(2026, 11, 16, tzinfo=timezone(timedelta(hours=1))),
        expected=UNLIMITED,
    ),
    row(schedule="@yearly", duration="24h", now=datetime(2027, 1, 1, 12, tzinfo=UTC), expected=0),
    row(schedule="@daily", duration="48h", now=MONDAY, expected=0),
    row(schedule="*/5 * * * *", duration="24h", now=MONDAY, expected=0),
)
def test_a_budget_with_hours_binds_only_in_them(schedule: str, duration: str, now: datetime, expected: int) -> None:
    assert limit(budget(0, schedule=schedule, duration=duration), now=now) == expected


@table(
    row(now="08:59:40", seconds=19, expected=UNLIMITED),
    row(now="08:59:40", seconds=20, expected=0),
    row(now="08:59:59", seconds=2, expected=0),
    row(now="16:59:59", seconds=2, expected=0),
    row(now="17:00:00", seconds=9, expected=UNLIMITED),
    row(now="08:59:00", seconds=9 * 3600, expected=0),
)
def test_a_budget_binds_when_its_window_may_have_begun_and_until_it_has_certainly_ended(
    now: str, seconds: int, expected: int
) -> None:
    pool, moment = node_pool(budgets=(budget(0, schedule=OFFICE, duration="8h"),)), f"2026-11-16 {now}+00:00"
    later = timedelta(seconds=seconds)
    assert allowed(pool, "Empty", 10, 0, datetime.fromisoformat(moment), uncertainty=later).allowed == expected


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (budget("100%", schedule="0 9 * * tue-mon", duration="1h"), "runs backwards"),
        (budget("100%", schedule="0 0 30 2 *", duration="1h"), "never have a day 30"),
        (budget("100%", schedule="nonsense", duration="1h", reasons=["Drifted"]), "five fields"),
        (budget("100%", schedule="nonsense", duration="1h", reasons=[]), "five fields"),
        (budget("100%", schedule="@daily"), "there is no duration"),
        (budget("100%", duration="1h"), "there is no schedule"),
        (budget("100%", schedule="@daily", duration="Never"), "there is no duration"),
        (budget("101%"), "'101%'"),
        (budget("-1"), "'-1'"),
        (budget(-1), "'-1'"),
        (budget("ten"), "'ten'"),
        (budget("ten", reasons=["Drifted"]), "'ten'"),
        (budget("1.5"), "'1.5'"),
        (budget("9" * 5000), "neither a whole number"),
    ],
)
def test_a_budget_that_cannot_be_read_stops_the_pool_for_every_reason(bad: Budget, said: str) -> None:
    pool = node_pool(budgets=("50%", bad))
    for reason in ("Empty", "Drifted", "Underutilized"):
        found = allowed(pool, reason, 10, 0, MONDAY)
        assert (found.allowed, found.remaining) == (0, 0)
        assert found.why is not None
        assert found.why.code == "BudgetInvalid"
        assert "budget 2" in found.why.message
        assert said in found.why.message


def test_unreadable_nodes_matter_only_while_their_budget_is_active() -> None:
    bad = budget("ten", schedule=OFFICE, duration="8h")
    assert limit(bad, "50%", now=MONDAY) == 0
    assert limit(bad, "50%", now=MONDAY + timedelta(hours=6)) == 5


@pytest.mark.parametrize(
    ("annotation", "annotated", "expected"),
    [
        ([{"nodes": "1"}], True, 1),
        ([{"nodes": "1"}], False, 5),
        ([{"nodes": "0", "schedule": OFFICE, "duration": "8h"}], True, 0),
        ([{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "30%"}], True, 3),
        ([], True, UNLIMITED),
        (None, True, 5),
    ],
)
def test_budgets_can_come_from_an_annotation(annotation: Any, *, annotated: bool, expected: int) -> None:
    annotations = {} if annotation is None else {BUDGETS: json.dumps(annotation)}
    pool = node_pool(budgets=("50%",), annotations=annotations)
    assert allowed(pool, "Empty", 10, 0, MONDAY, annotated=annotated).allowed == expected


@pytest.mark.parametrize("text", ["", "10%", "{}", "null", '[{"nodes": "1", "duration": "soon"}]', '[{"nodes": []}]'])
def test_an_annotation_that_cannot_be_read_stops_the_pool(text: str) -> None:
    found = allowed(node_pool(annotations={BUDGETS: text}), "Empty", 10, 0, MONDAY, annotated=True)
    assert found.allowed == 0
    assert found.why is not None
    assert BUDGETS in found.why.message


def test_the_calendar_tells_what_will_be_allowed_when() -> None:
    pool = node_pool(budgets=("20%", budget(0, schedule=OFFICE, duration="8h")))
    friday = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    found = [
        (entry.start, entry.end, entry.allowed)
        for entry in calendar(pool, "Underutilized", 10, friday, timedelta(days=3))
    ]
    assert found == [
        (friday, datetime(2026, 11, 20, 17, tzinfo=UTC), 0),
        (datetime(2026, 11, 20, 17, tzinfo=UTC), datetime(2026, 11, 23, 9, tzinfo=UTC), 2),
        (datetime(2026, 11, 23, 9, tzinfo=UTC), datetime(2026, 11, 23, 12, tzinfo=UTC), 0),
    ]


@pytest.mark.parametrize(
    ("budgets", "expected"), [((), UNLIMITED), (("10%",), 1), ((budget(0, schedule="bad", duration="1h"),), 0)]
)
def test_the_calendar_of_a_pool_without_hours_is_one_stretch(budgets: Sequence[Budget | str], expected: int) -> None:
    (only,) = calendar(node_pool(budgets=budgets), "Empty", 10, MONDAY, timedelta(days=7))
    assert (only.start, only.end, only.allowed) == (MONDAY, MONDAY + timedelta(days=7), expected)


def test_the_calendar_agrees_with_asking_at_each_moment() -> None:
    pool = node_pool(
        budgets=(
            "40%",
            budget("1", schedule="30 */5 * * *", duration="2h"),
            budget("20%", schedule="0 22 * * *", duration="10h", reasons=["Drifted"]),
            budget("0", schedule="@weekly", duration="30h", reasons=["Empty"]),
            budget("some", schedule="0 6 * * thu", duration="90m", reasons=["Empty"]),
        )
    )
    for reason in ("Empty", "Drifted", "Underutilized"):
        intervals = calendar(pool, reason, 10, MONDAY, timedelta(days=7))
        for step in range(7 * 48):
            moment = MONDAY + timedelta(minutes=30 * step)
            (entry,) = (each for each in intervals if each.start <= moment < each.end)
            assert entry.allowed == allowed(pool, reason, 10, 0, moment).allowed
