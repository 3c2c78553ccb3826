"""The server's clock, and when it replaces the local one."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from karpool.kube.server_time import ServerTime

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Clocks:
    """The clocks of this machine and of the server; a second passes for all of them alike."""

    def __init__(self, *, ahead: timedelta = timedelta()) -> None:
        self.ahead = ahead
        self.passed = 0.0
        self.time = ServerTime(lambda: self.truth + self.ahead, lambda: self.passed)

    @property
    def truth(self) -> datetime:
        return NOON + timedelta(seconds=self.passed)

    def answer(self, *, took: float = 0.0, off: timedelta = timedelta()) -> None:
        """The server answers; its clock may be off."""
        date = self.truth + off
        self.passed += took
        self.time.observe(format_datetime(date, usegmt=True), took)


def test_until_the_server_answers_the_clock_of_this_machine_counts() -> None:
    clocks = Clocks(ahead=HOUR)
    assert clocks.time() == NOON + HOUR


def test_a_clock_that_is_about_right_is_not_touched() -> None:
    clocks = Clocks(ahead=timedelta(seconds=3.25))
    clocks.answer()
    assert clocks.time() == NOON + timedelta(seconds=3.25)


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_a_clock_that_is_wrong_gives_way_to_the_servers(ahead: timedelta) -> None:
    clocks = Clocks(ahead=ahead)
    clocks.answer()
    clocks.passed += 90
    assert clocks.time() == clocks.truth


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_a_clock_that_is_set_changes_nothing(ahead: timedelta) -> None:
    clocks = Clocks()
    clocks.answer()
    clocks.ahead = ahead
    clocks.passed += 10
    clocks.answer()
    assert clocks.time() == clocks.truth


@pytest.mark.parametrize("took", [0.0, 14.0])
def test_an_answer_that_took_long_says_nothing_wrong(took: float) -> None:
    clocks = Clocks()
    clocks.answer()
    clocks.answer(took=took)
    assert clocks.time() == clocks.truth


def test_a_server_whose_clock_is_set_is_followed() -> None:
    clocks = Clocks()
    clocks.answer()
    clocks.answer(off=HOUR)
    assert clocks.time() == clocks.truth + HOUR


def test_a_date_that_cannot_be_read_is_overlooked() -> None:
    clocks = Clocks()
    clocks.time.observe("yesterday", 0.0)
    assert clocks.time() == NOON
