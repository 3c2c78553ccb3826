"""The task queue of a live controller: tasks by a clock that nobody sets."""

from datetime import UTC, datetime, timedelta

from karpool.operator.task_queue import TaskQueue

START = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Clocks:
    def __init__(self) -> None:
        self.steady = 100.0
        self.set_by = timedelta()
        self.doubt = ""

    def pass_time(self, seconds: float) -> None:
        self.steady += seconds

    def now(self) -> datetime:
        return START + timedelta(seconds=self.steady - 100.0) + self.set_by

    def queue(self, behind: timedelta = timedelta()) -> TaskQueue:
        return TaskQueue(self.now, lambda: self.steady, earliest=lambda: self.now() - behind, doubt=lambda: self.doubt)


def done(queue: TaskQueue) -> list[object]:
    return [task() for task in queue.due()]


def test_deeds_are_due_in_the_order_of_their_time_and_not_before() -> None:
    clocks = Clocks()
    queue = clocks.queue()
    queue.after(2, lambda: "second")
    queue.when(START + timedelta(seconds=1), lambda: "first")
    assert done(queue) == []
    assert queue.wait() == 1.0
    clocks.pass_time(3)
    assert done(queue) == ["first", "second"]
    assert queue.wait() is None


def test_a_moment_that_is_past_is_due_at_once() -> None:
    queue = Clocks().queue()
    queue.when(START - timedelta(hours=1), lambda: "late")
    assert done(queue) == ["late"]


def test_a_clock_that_is_set_back_delays_nothing() -> None:
    clocks = Clocks()
    queue = clocks.queue()
    queue.after(10, lambda: "done")
    clocks.set_by = timedelta(hours=-1)
    clocks.pass_time(10)
    assert done(queue) == ["done"]


def test_a_clock_that_is_set_is_noticed_once_and_one_that_drifts_never() -> None:
    clocks = Clocks()
    queue = clocks.queue()
    assert not queue.jumped()
    clocks.set_by = timedelta(hours=1)
    assert queue.jumped()
    assert not queue.jumped()
    for _ in range(100):
        clocks.set_by += timedelta(seconds=0.2)
        assert not queue.jumped()


def test_what_was_to_be_done_can_be_forgotten() -> None:
    queue = Clocks().queue()
    queue.after(0, lambda: "never")
    queue.clear()
    assert done(queue) == []


def test_a_moment_has_come_only_when_it_has_for_certain() -> None:
    clocks = Clocks()
    queue = clocks.queue(behind=timedelta(seconds=8))
    queue.when(START + timedelta(seconds=5), lambda: "done")
    assert queue.wait() == 13.0
    assert queue.moment - queue.earliest == timedelta(seconds=8)


def test_while_the_time_stands_still_a_moment_is_not_asked_for_in_a_tight_loop() -> None:
    clocks = Clocks()
    queue = clocks.queue()
    clocks.doubt = "nobody knows"
    queue.when(START - timedelta(hours=1), lambda: "late")
    assert queue.doubt == "nobody knows"
    assert queue.wait() == 1.0


def test_while_the_time_stands_still_a_moment_far_off_is_asked_for_now_and_then() -> None:
    clocks = Clocks()
    queue = clocks.queue(behind=timedelta(hours=1))
    clocks.doubt = "a server is an hour behind"
    queue.when(START + timedelta(seconds=5), lambda: "soon")
    assert queue.wait() == 15.0
