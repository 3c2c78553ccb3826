from datetime import UTC, datetime, timedelta

import pytest

from karpool.provisioning.batching import Batch, BatchWindow

START = datetime(2026, 6, 1, tzinfo=UTC)


def batch(*asked: tuple[str, float], window: BatchWindow | None = None) -> Batch:
    made = Batch(window)
    for uid, second in asked:
        made.trigger(uid, START + timedelta(seconds=second))
    return made


@pytest.mark.parametrize(
    ("asked", "closing"),
    [
        ((), None),
        ((("a", 0),), 1),
        ((("a", 0), ("b", 0.9)), 1.9),
        ((("a", 0), ("a", 0.9)), 1),
        (tuple((str(n), n * 0.9) for n in range(20)), 10),
    ],
)
def test_a_batch_closes_when_nobody_new_comes_or_after_ten_seconds(
    asked: tuple[tuple[str, float], ...], closing: float | None
) -> None:
    made = batch(*asked)
    assert made.closes == (None if closing is None else START + timedelta(seconds=closing))
    if closing is not None:
        assert not made.complete(START + timedelta(seconds=closing - 0.01))
        assert made.complete(START + timedelta(seconds=closing))


def test_the_window_can_be_chosen() -> None:
    slow = BatchWindow(idle=timedelta(seconds=5), longest=timedelta(seconds=7))
    assert batch(("a", 0), ("b", 4), window=slow).closes == START + timedelta(seconds=7)
    assert not Batch(slow).complete(START)
