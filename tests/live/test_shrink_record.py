"""Seconds are made up: no cluster is needed."""

from tests.live.shrink_record import ShrinkRecord

OLD = {"old": False}
POD = {"pod": "old"}


def record() -> ShrinkRecord:
    return ShrinkRecord(0.0, frozenset(OLD), pods_left=1, quiet=75.0, longest=900.0)


def test_what_settles_without_a_launch_needs_no_longer_watch() -> None:
    seen = record()
    for now in (1.0, 75.0):
        seen.look(now, OLD, POD, 1)
        assert not seen.ended
    seen.look(76.0, OLD, POD, 1)
    assert (seen.ended, seen.settled, seen.short_lived) == (True, 1.0, 0)


def test_launched_nodes_are_watched_for_ten_minutes_and_a_time_without_a_change_after_it_has_settled() -> None:
    seen = record()
    seen.look(10.0, {**OLD, "new": False}, POD, 1)
    seen.look(100.0, {**OLD, "new": False}, POD, 1)
    assert (seen.ended, seen.settled, seen.short_lived) == (False, 10.0, None)
    seen.look(684.0, {**OLD, "new": False}, POD, 1)
    assert not seen.ended
    seen.look(685.0, {**OLD, "new": False}, POD, 1)
    assert (seen.ended, seen.settled, seen.short_lived) == (True, 10.0, 0)


def test_a_node_that_goes_after_it_has_settled_counts_and_does_not_move_the_time() -> None:
    seen = record()
    seen.look(10.0, {**OLD, "new": False, "newer": False}, POD, 1)
    seen.look(85.0, {**OLD, "new": False, "newer": False}, POD, 1)
    seen.look(609.0, {**OLD, "newer": False}, POD, 1)
    seen.look(611.0, OLD, POD, 1)
    seen.look(700.0, OLD, POD, 1)
    assert (seen.ended, seen.settled, seen.short_lived, len(seen.launched)) == (True, 10.0, 1, 2)


def test_what_does_not_settle_ends_and_says_neither_when_nor_how_many() -> None:
    seen = record()
    for now in range(0, 901, 50):
        seen.look(float(now), {**OLD, f"new-{now}": False}, POD, 1)
    assert (seen.ended, seen.settled, seen.short_lived) == (True, None, None)


def test_pods_that_go_with_the_shrink_are_not_evicted() -> None:
    seen = record()
    seen.look(1.0, OLD, {"a": "old", "b": "old", "c": "old"}, 3)
    seen.look(2.0, OLD, {"a": "old", "b": "old"}, 2)
    seen.look(3.0, OLD, {"a": "old"}, 1)
    seen.look(4.0, OLD, {"d": "old"}, 1)
    assert seen.evicted == {"a"}
