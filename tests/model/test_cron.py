from datetime import UTC, datetime, timedelta, timezone

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.tables import row, table

from karpool.model import cron
from karpool.model.cron import parse_schedule


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def hours(count: float) -> timedelta:
    return timedelta(hours=count)


@pytest.mark.parametrize(
    ("schedule", "after", "hit"),
    [
        ("* * * * *", "2026-11-16 10:00:30", "2026-11-16 10:01"),
        ("*/15 * * * *", "2026-11-16 10:45", "2026-11-16 11:00"),
        ("7/20 * * * *", "2026-11-16 10:30", "2026-11-16 10:47"),
        ("0 9 * * mon-fri", "2026-11-20 09:00", "2026-11-23 09:00"),
        ("0 9 * * MON-Fri/2", "2026-11-16 09:00", "2026-11-18 09:00"),
        ("0 0 1 JAN,jul *", "2026-11-16 00:00", "2027-01-01 00:00"),
        ("0 0 ? * sun", "2026-11-16 00:00", "2026-11-22 00:00"),
        ("0 0 29 2 *", "2026-11-16 00:00", "2028-02-29 00:00"),
        ("0 0 31 * *", "2026-11-16 00:00", "2026-12-31 00:00"),
        ("0 0 30 2 mon", "2026-11-16 00:00", "2027-02-01 00:00"),
        ("@annually", "2026-11-16 00:00", "2027-01-01 00:00"),
        ("@yearly", "2026-11-16 00:00", "2027-01-01 00:00"),
        ("@monthly", "2026-11-16 00:00", "2026-12-01 00:00"),
        ("@weekly", "2026-11-16 00:00", "2026-11-22 00:00"),
        ("@daily", "2026-11-16 00:00", "2026-11-17 00:00"),
        ("@midnight", "2026-11-16 23:59:59", "2026-11-17 00:00"),
        ("@hourly", "2026-11-16 23:59:59", "2026-11-17 00:00"),
    ],
)
def test_the_next_hit_is_strictly_after_a_moment(schedule: str, after: str, hit: str) -> None:
    assert parse_schedule(schedule).next_after(at(after)) == at(hit)


@pytest.mark.parametrize(
    ("schedule", "after", "hit"),
    [
        # A day field with a step is one of two ways in; a plain star is no condition at all.
        ("0 0 */2 * mon", "2026-11-16 00:00", "2026-11-17 00:00"),
        ("0 0 * * mon", "2026-11-16 00:00", "2026-11-23 00:00"),
        ("0 0 */1 * mon", "2026-11-16 00:00", "2026-11-23 00:00"),
        ("0 0 13 * fri", "2026-11-16 00:00", "2026-11-20 00:00"),
        # Weekdays end on Saturday, so that a step from Monday never reaches a second Sunday.
        ("0 0 * * 1/2", "2026-11-20 00:00", "2026-11-23 00:00"),
        ("0 0 * * 5-5/2", "2026-11-20 00:00", "2026-11-27 00:00"),
    ],
)
def test_day_fields_combine_as_in_kubernetes_controllers(schedule: str, after: str, hit: str) -> None:
    assert parse_schedule(schedule).next_after(at(after)) == at(hit)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("", "expected five fields"),
        ("* * * *", "expected five fields"),
        ("0 * * * * *", "expected five fields"),
        ("@every 1h", "expected five fields"),
        ("@DAILY", "expected five fields"),
        ("@reboot", "expected five fields"),
        ("TZ=Europe/Berlin 0 9 * * *", "expected five fields"),
        ("0 0 30 2 *", "never have a day 30"),
        ("0 0 31 feb,apr *", "never have a day 31"),
        ("0 9 * * tue-mon", "runs backwards"),
        ("0 17-9 * * *", "runs backwards"),
        ("0 0 L * *", "day-of-month field does not understand 'L'"),
        ("0 0 LW * *", "does not understand"),
        ("0 0 15W * *", "does not understand"),
        ("0 0 * * 5L", "does not understand"),
        ("0 0 * * mon#1", "does not understand"),
        ("0 0 * * 7", "7 in its day-of-week field is not within 0 to 6"),
        ("0 0 * * monday", "does not understand"),
        ("60 * * * *", "60 in its minute field is not within 0 to 59"),
        ("* 24 * * *", "not within 0 to 23"),
        ("0 0 0 * *", "not within 1 to 31"),
        ("0 0 1 13 *", "not within 1 to 12"),
        ("*/0 * * * *", "steps by 0"),
        ("*/ * * * *", "does not understand"),
        ("1,,2 * * * *", "does not understand"),
        ("-5 * * * *", "does not understand"),
        ("1-2-3 * * * *", "does not understand"),
        ("٣ * * * *", "does not understand"),
        (f"{'9' * 9000} * * * *", "does not understand"),
    ],
)
def test_what_is_no_schedule_is_refused_with_a_sentence(schedule: str, message: str) -> None:
    with pytest.raises(ValueError, match="is not a schedule") as refused:
        parse_schedule(schedule)
    assert message in str(refused.value)
    assert len(str(refused.value)) < 250


@table(
    row(schedule="0 9 * * mon-fri", duration=hours(8), now="2026-11-16 08:59:59", active=False),
    row(schedule="0 9 * * mon-fri", duration=hours(8), now="2026-11-16 09:00", active=True),
    row(schedule="0 9 * * mon-fri", duration=hours(8), now="2026-11-16 16:59:59", active=True),
    row(schedule="0 9 * * mon-fri", duration=hours(8), now="2026-11-16 17:00", active=False),
    row(schedule="0 9 * * mon-fri", duration=hours(8), now="2026-11-21 10:00", active=False),
    row(schedule="@yearly", duration=hours(24), now="2026-01-01 12:00", active=True),
    row(schedule="@yearly", duration=hours(24), now="2026-01-02 00:00", active=False),
    row(schedule="@daily", duration=hours(48), now="2026-11-16 13:37", active=True),
    row(schedule="*/5 * * * *", duration=hours(24), now="2026-11-16 13:37", active=True),
    row(schedule="0 0 29 2 *", duration=hours(24), now="2028-02-29 12:00", active=True),
    row(schedule="0 0 29 2 *", duration=hours(24), now="2027-02-28 12:00", active=False),
    row(schedule="@daily", duration=hours(0), now="2026-11-16 00:00", active=False),
    row(schedule="@hourly", duration=timedelta(days=365 * 290), now="2026-11-16 00:00", active=True),
)
def test_a_window_is_open_from_its_hit_until_its_duration_has_passed(
    schedule: str, duration: timedelta, now: str, *, active: bool
) -> None:
    assert parse_schedule(schedule).active(at(now), duration) is active


def test_schedules_are_in_utc_whatever_the_zone_of_the_moment() -> None:
    local_midnight = datetime(2026, 11, 16, tzinfo=timezone(hours(1)))
    assert not parse_schedule("@daily").active(local_midnight, timedelta(minutes=30))
    assert parse_schedule("@daily").active(local_midnight + hours(1), timedelta(minutes=30))


@pytest.mark.parametrize(
    ("schedule", "duration", "windows"),
    [
        ("0 9 * * *", hours(8), [("11-16 09:00", "11-16 17:00"), ("11-17 09:00", "11-17 17:00")]),
        ("0 22 * * *", hours(4), [("11-15 22:00", "11-16 02:00"), ("11-16 22:00", "11-17 02:00")]),
        ("0 9,12 16 * *", hours(3), [("11-16 09:00", "11-16 15:00")]),
        ("0 9,13 16 * *", hours(3), [("11-16 09:00", "11-16 12:00"), ("11-16 13:00", "11-16 16:00")]),
        ("@daily", hours(0), []),
    ],
)
def test_windows_that_touch_are_one(schedule: str, duration: timedelta, windows: list[tuple[str, str]]) -> None:
    stretches = parse_schedule(schedule).windows(at("2026-11-16 00:00"), at("2026-11-17 20:00"), duration)
    assert list(stretches) == [(at(f"2026-{start}"), at(f"2026-{end}")) for start, end in windows]


def test_windows_that_never_close_are_found_with_a_few_hits_of_each_window_not_with_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0

    class Counted(CronSim):
        def __next__(self) -> datetime:
            nonlocal asked
            asked += 1
            return super().__next__()

    monkeypatch.setattr(cron, "CronSim", Counted)
    start, days = at("2026-11-16 00:00"), 365
    stretches = list(parse_schedule("*/5 * * * *").windows(start, start + timedelta(days=days), hours(24)))
    assert len(stretches) == 1
    assert stretches[0][1] >= start + timedelta(days=days)
    assert days <= asked <= 2 * days


@examples(60)
@given(
    schedule=st.sampled_from(["*/7 * * * *", "0 9 * * mon-fri", "@daily", "30 2,14 */3 * sat"]),
    minutes=st.integers(1, 3000),
    offset=st.integers(0, 60 * 24 * 5),
)
def test_windows_agree_with_asking_at_a_moment(schedule: str, minutes: int, offset: int) -> None:
    start, duration = at("2026-11-16 00:00"), timedelta(minutes=minutes)
    parsed, moment = parse_schedule(schedule), at("2026-11-16 00:00") + timedelta(minutes=offset)
    windows = parsed.windows(start, start + timedelta(days=5, minutes=1), duration)
    assert any(opened <= moment < closed for opened, closed in windows) is parsed.active(moment, duration)
