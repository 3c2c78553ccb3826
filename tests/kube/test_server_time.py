"""The time by the clocks of the API servers: what is believed, and what puts it in doubt."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from statistics import median_low

import pytest

from karpool.kube import server_time
from karpool.kube.server_time import CONTRADICTED, CORROBORATED, ServerTime

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
FORTY_DAYS = timedelta(days=40)


class Clocks:
    """The clocks of this machine and of the servers; a second passes for all of them alike."""

    def __init__(self, *, ahead: timedelta = timedelta()) -> None:
        self.ahead = ahead
        self.passed = 0.0
        self.time = ServerTime(lambda: self.truth + self.ahead, lambda: self.passed)

    @property
    def truth(self) -> datetime:
        return NOON + timedelta(seconds=self.passed)

    def answer(self, *, took: float = 0.0, off: timedelta = timedelta()) -> None:
        """A server answers; its clock may be off."""
        date = self.truth + off
        self.passed += took
        self.time.observe(format_datetime(date, usegmt=True), took)

    def answers(self, seconds: float, *offs: timedelta, every: float = 2.0) -> None:
        """Servers answer in turn for so long, with clocks that are off by so much."""
        for number in range(round(seconds / every)):
            self.passed += every
            self.answer(off=offs[number % len(offs)])

    def expect_true(self, tolerance: timedelta = 1.1 * SECOND) -> None:
        assert not self.time.doubt
        assert abs(self.time() - self.truth) <= tolerance
        assert self.truth - 2 * tolerance <= self.time.earliest <= self.time() <= self.time.latest
        assert self.truth <= self.time.latest <= self.truth + 2 * tolerance + SECOND


def settled(*, ahead: timedelta = timedelta()) -> Clocks:
    clocks = Clocks(ahead=ahead)
    clocks.answers(60, timedelta())
    return clocks


def test_until_a_server_answers_the_time_is_in_doubt_and_stands_still() -> None:
    clocks = Clocks(ahead=HOUR)
    clocks.passed += 5
    assert clocks.time() == clocks.truth + HOUR
    assert clocks.time.earliest == NOON + HOUR
    assert "no API server" in clocks.time.doubt


def test_a_clock_that_is_about_right_is_believed_at_once_and_drawn_along_slowly() -> None:
    clocks = Clocks(ahead=3.25 * SECOND)
    clocks.answer()
    assert not clocks.time.doubt
    assert clocks.time() == NOON + 3.25 * SECOND
    assert clocks.time.earliest <= NOON + SECOND
    before, clocks.passed = clocks.time(), clocks.passed + 10
    clocks.answer()
    assert 9.8 * SECOND <= clocks.time() - before < 10 * SECOND
    clocks.answers(600, timedelta())
    clocks.expect_true()


def test_a_local_clock_that_is_ahead_gives_way_to_the_servers_after_a_while() -> None:
    clocks = Clocks(ahead=HOUR)
    clocks.answers(6, timedelta())
    assert "should be" in clocks.time.doubt
    assert clocks.time.earliest <= NOON + 3 * SECOND
    clocks.answers(CORROBORATED + 4, timedelta())
    clocks.expect_true()


def test_a_local_clock_that_is_behind_gives_way_only_after_a_long_while() -> None:
    clocks = Clocks(ahead=-HOUR)
    clocks.answers(CONTRADICTED - 10, timedelta())
    assert clocks.time.doubt
    assert clocks.time.earliest <= NOON - HOUR
    clocks.answers(20, timedelta())
    clocks.expect_true()


def test_a_local_clock_that_is_put_right_lets_the_servers_be_believed_soon() -> None:
    clocks = Clocks(ahead=-HOUR)
    clocks.answers(30, timedelta())
    assert clocks.time.doubt
    clocks.ahead = timedelta()
    clocks.answers(2, timedelta())
    clocks.expect_true()


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_a_local_clock_that_is_set_changes_nothing(ahead: timedelta) -> None:
    clocks = settled()
    clocks.ahead = ahead
    clocks.answers(60, timedelta())
    clocks.expect_true()


@pytest.mark.parametrize("took", [0.0, 14.0, 100.0])
def test_an_answer_that_took_long_says_nothing_wrong(took: float) -> None:
    clocks = settled()
    clocks.answer(took=took)
    clocks.expect_true()


@pytest.mark.parametrize("off", [FORTY_DAYS, -FORTY_DAYS, HOUR, -HOUR])
def test_one_answer_that_is_far_off_changes_nothing(off: timedelta) -> None:
    clocks = settled()
    clocks.answers(2, off)
    clocks.expect_true()
    clocks.answers(60, timedelta())
    clocks.expect_true()


def test_a_burst_of_answers_from_one_server_counts_as_one() -> None:
    clocks = settled()
    clocks.passed += 2
    for _ in range(500):
        clocks.answer(off=FORTY_DAYS)
    clocks.expect_true()
    clocks.answers(30, timedelta())
    clocks.expect_true()


def test_thousands_of_answers_in_a_second_cost_no_more_than_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(answers: int) -> int:
        """How often a median is taken for so many answers."""
        clocks, medians = settled(), 0

        def counted(values: Iterable[float]) -> float:
            nonlocal medians
            medians += 1
            return median_low(values)

        monkeypatch.setattr(server_time, "median_low", counted)
        clocks.passed += 2
        for _ in range(answers):
            clocks.answer()
        clocks.expect_true()
        monkeypatch.undo()
        return medians

    assert work(5000) == work(50)


def test_while_answers_disagree_time_stands_still_for_what_it_would_allow() -> None:
    clocks = settled()
    before = clocks.time.earliest
    clocks.answers(60, FORTY_DAYS)
    assert "2026-02-10" in clocks.time.doubt
    assert clocks.time.earliest <= before + 4 * SECOND
    assert abs(clocks.time() - clocks.truth) <= SECOND
    clocks.answers(60, timedelta())
    clocks.expect_true()


def test_a_server_that_is_behind_holds_the_earliest_time_back_at_once() -> None:
    clocks = settled()
    clocks.answers(6, -HOUR)
    assert clocks.time.doubt
    assert clocks.time.earliest <= clocks.truth - HOUR + SECOND
    assert abs(clocks.time() - clocks.truth) <= SECOND


def test_one_server_of_three_that_is_forty_days_ahead_is_outvoted() -> None:
    clocks = settled()
    for _ in range(100):
        clocks.answers(6, timedelta(), FORTY_DAYS, timedelta())
        clocks.expect_true()


def test_servers_that_are_seconds_apart_neither_put_the_time_in_doubt_nor_make_it_jump() -> None:
    clocks = settled()
    last = clocks.time()
    for number in range(600):
        clocks.answers(1, (8 if number % 7 in (0, 3, 5) else 0) * SECOND, every=1.0)
        assert not clocks.time.doubt
        assert 0.9 * SECOND <= clocks.time() - last <= 1.1 * SECOND
        assert clocks.truth - SECOND <= clocks.time.earliest <= clocks.time()
        assert clocks.time() <= clocks.truth + 8 * SECOND
        assert clocks.truth + 8 * SECOND <= clocks.time.latest <= clocks.truth + 9 * SECOND
        last = clocks.time()


@pytest.mark.parametrize("ahead", [14, 5, 0, -5])
def test_a_server_that_agrees_and_is_ahead_or_behind_is_between_the_earliest_and_the_latest_time(ahead: int) -> None:
    clocks = settled()
    for _ in range(20):
        clocks.answers(4, timedelta(), ahead * SECOND)
        said = (clocks.truth, clocks.truth + ahead * SECOND)
        assert not clocks.time.doubt
        assert clocks.time.earliest - SECOND <= min(said)
        assert max(said) <= clocks.time.latest <= clocks.truth + 16 * SECOND


@pytest.mark.parametrize("ahead", [10, -10])
def test_a_server_that_is_outvoted_within_a_second_still_may_have_the_time(ahead: int) -> None:
    clocks = settled()
    for _ in range(5):
        clocks.passed += 2
        for off in (0, ahead, 0, 0, 0):
            clocks.answer(off=off * SECOND)
    slow, fast = sorted((clocks.truth, clocks.truth + ahead * SECOND))
    assert clocks.time.earliest - SECOND <= slow < fast <= clocks.time.latest


@pytest.mark.parametrize("off", [3 * HOUR, -3 * HOUR])
def test_another_time_that_the_local_clock_has_too_is_believed_after_a_while(off: timedelta) -> None:
    clocks = settled()
    clocks.ahead = off
    clocks.answers(CORROBORATED - 4, off)
    assert clocks.time.doubt
    clocks.answers(8, off)
    assert not clocks.time.doubt
    assert abs(clocks.time() - (clocks.truth + off)) <= SECOND


@pytest.mark.parametrize("off", [HOUR, -HOUR])
def test_another_time_that_the_local_clock_contradicts_takes_long_to_be_believed(off: timedelta) -> None:
    clocks = settled()
    clocks.answers(CONTRADICTED - 10, off)
    assert clocks.time.doubt
    assert abs(clocks.time() - clocks.truth) <= SECOND
    clocks.answers(20, off)
    assert not clocks.time.doubt
    assert abs(clocks.time() - (clocks.truth + off)) <= SECOND


def test_answers_that_do_not_agree_with_each_other_are_never_believed() -> None:
    clocks = settled()
    clocks.answers(2 * CONTRADICTED, HOUR, 2 * HOUR)
    assert clocks.time.doubt
    assert abs(clocks.time() - clocks.truth) <= SECOND


@pytest.mark.parametrize("date", ["yesterday", "", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 +1400"])
def test_dates_that_make_no_sense_change_nothing(date: str) -> None:
    clocks = settled()
    for _ in range(3):
        clocks.time.observe(date, 0.0)
    clocks.expect_true()
    clocks.passed += 2
    for _ in range(3):
        clocks.passed += 2
        clocks.time.observe(date, 0.0)
    assert abs(clocks.time() - clocks.truth) <= SECOND
