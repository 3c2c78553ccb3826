"""Means and their intervals."""

import pytest

from karpool.virtual.statistics import Estimate, estimate, paired, student


@pytest.mark.parametrize(("freedom", "reach"), [(1, 12.7062), (9, 2.2622), (30, 2.0423), (40, 2.0211), (120, 1.9799)])
def test_intervals_are_wider_for_fewer_runs(freedom: int, reach: float) -> None:
    assert student(freedom) == pytest.approx(reach, abs=1e-4)


def test_a_mean_has_an_interval() -> None:
    mean_of_three = estimate([1.0, 2.0, 3.0, None])
    assert mean_of_three is not None
    assert mean_of_three.mean == 2.0
    assert mean_of_three.high == pytest.approx(2.0 + 4.3027 / 3**0.5, abs=1e-4)
    assert mean_of_three.low == pytest.approx(2.0 - 4.3027 / 3**0.5, abs=1e-4)


def test_one_run_has_no_interval_and_nothing_no_mean() -> None:
    assert estimate([5.0, None]) == Estimate(5.0, None, None)
    assert estimate([None]) is None


def test_differences_on_the_same_seeds_are_known_better_than_means() -> None:
    assert paired([11.0, 21.0, 31.0], [10.0, 20.0, 30.0]) == Estimate(1.0, 1.0, 1.0)
    assert paired([None, 2.0], [1.0, 1.0]) == Estimate(1.0, None, None)
