"""Nodes of commands that were dropped at their start are left alone, longer each time."""

from datetime import timedelta

import pytest
from tests.disruption.scenarios import NOW, ago

from karpool.disruption.brakes.dropped_commands import DroppedCommand, after_drop, dropped_lately
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.model.reasons import Reason

UNKNOWN = Reason("FactsUnknown", "could not be read again", "Node a")
BRAKES = BrakeSettings()


@pytest.mark.parametrize(("tries", "seconds"), [(1, 10), (2, 20), (5, 160), (6, 180), (1000, 180)])
def test_the_wait_doubles_up_to_that_of_a_failed_command(tries: int, seconds: int) -> None:
    dropped = {"a": DroppedCommand(UNKNOWN, NOW, tries)}
    until = NOW + timedelta(seconds=seconds)
    (stop,) = dropped_lately(dropped, lambda _: "default", BRAKES, until - timedelta(seconds=1))
    assert (stop.code, stop.object, stop.pool, stop.node, stop.until) == (
        "CommandDropped",
        "Node a",
        "default",
        "a",
        until,
    )
    assert list(dropped_lately(dropped, lambda _: "default", BRAKES, until)) == []


def test_the_reason_says_what_happened_and_how_often() -> None:
    (stop,) = dropped_lately({"a": DroppedCommand(UNKNOWN, NOW, 3)}, lambda _: "default", BRAKES, NOW)
    assert stop.message == (
        "is left alone until 12:00:40 UTC: "
        "a command was dropped (FactsUnknown: Node a could not be read again), 3 in a row"
    )


def test_drops_count_for_all_nodes_of_a_command_until_they_are_forgotten() -> None:
    dropped = {
        "a": DroppedCommand(UNKNOWN, ago(minutes=1), 3),
        "old": DroppedCommand(UNKNOWN, ago(minutes=10), 5),
        "other": DroppedCommand(UNKNOWN, ago(minutes=2), 2),
    }
    after = after_drop(dropped, ("a", "b"), UNKNOWN, BRAKES, NOW)
    assert {name: known.tries for name, known in after.items()} == {"a": 4, "b": 4, "other": 2}
    assert after_drop(dropped, ("old",), UNKNOWN, BRAKES, NOW)["old"].tries == 1


def test_a_shorter_cool_down_after_failures_is_kept_after_drops_too() -> None:
    short = BrakeSettings(after_failure=timedelta(seconds=2))
    assert short.after_drops(NOW, 1) == NOW + timedelta(seconds=2)
