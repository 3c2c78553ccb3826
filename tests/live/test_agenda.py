"""The agenda of a live controller: deeds by a clock that nobody sets."""

from datetime import UTC, datetime, timedelta

from karpool.live.agenda import Agenda

START = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Clocks:
    def __init__(self) -> None:
        self.steady = 100.0
        self.set_by = timedelta()

    def pass_time(self, seconds: float) -> None:
        self.steady += seconds

    def agenda(self) -> Agenda:
        return Agenda(lambda: START + timedelta(seconds=self.steady - 100.0) + self.set_by, lambda: self.steady)


def done(agenda: Agenda) -> list[object]:
    return [deed() for deed in agenda.due()]


def test_deeds_are_due_in_the_order_of_their_time_and_not_before() -> None:
    clocks = Clocks()
    agenda = clocks.agenda()
    agenda.after(2, lambda: "second")
    agenda.when(START + timedelta(seconds=1), lambda: "first")
    assert done(agenda) == []
    assert agenda.wait() == 1.0
    clocks.pass_time(3)
    assert done(agenda) == ["first", "second"]
    assert agenda.wait() is None


def test_a_moment_that_is_past_is_due_at_once() -> None:
    agenda = Clocks().agenda()
    agenda.when(START - timedelta(hours=1), lambda: "late")
    assert done(agenda) == ["late"]


def test_a_clock_that_is_set_back_delays_nothing() -> None:
    clocks = Clocks()
    agenda = clocks.agenda()
    agenda.after(10, lambda: "done")
    clocks.set_by = timedelta(hours=-1)
    clocks.pass_time(10)
    assert done(agenda) == ["done"]


def test_a_clock_that_is_set_is_noticed_once_and_one_that_drifts_never() -> None:
    clocks = Clocks()
    agenda = clocks.agenda()
    assert not agenda.jumped()
    clocks.set_by = timedelta(hours=1)
    assert agenda.jumped()
    assert not agenda.jumped()
    for _ in range(100):
        clocks.set_by += timedelta(seconds=0.2)
        assert not agenda.jumped()


def test_what_was_to_be_done_can_be_forgotten() -> None:
    agenda = Clocks().agenda()
    agenda.after(0, lambda: "never")
    agenda.clear()
    assert done(agenda) == []
