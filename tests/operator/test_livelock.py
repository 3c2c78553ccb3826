"""A controller that is restarted again and again without a decision is not healthy."""

from datetime import timedelta

from karpool.operator.livelock import LivelockMeter

LIMIT = timedelta(minutes=2)


def test_restarts_without_a_decision_for_long_are_a_livelock() -> None:
    meter = LivelockMeter(0.0)
    for _ in range(75):
        meter.restarted("the clock was set")
    assert meter.problem(100.0, LIMIT) is None
    problem = meter.problem(180.0, LIMIT)
    assert problem is not None
    assert "no decision for 180 s" in problem
    assert "restarted 75 times" in problem
    assert "the clock was set" in problem


def test_a_decision_ends_it() -> None:
    meter = LivelockMeter(0.0)
    for _ in range(75):
        meter.restarted("the clock was set")
    meter.progressed(150.0)
    assert meter.problem(180.0, LIMIT) is None
    assert meter.problem(1000.0, LIMIT) is None


def test_waiting_for_a_server_that_is_away_is_none() -> None:
    meter = LivelockMeter(0.0)
    meter.restarted("it started")
    meter.restarted("the caches are out of date")
    assert meter.problem(3600.0, LIMIT) is None
