"""Programmes that have a solution, and those that have none."""

import numpy as np
import pytest

from karpool.optimization.programme import Programme, SolverError


def _programme(least: float, most: float = np.inf) -> Programme:
    """Two columns of cost 3 and 2 that reach `least` together; the cheap one is at most 4."""
    programme = Programme(np.array([least]), np.array([np.inf]))
    programme.add(
        np.array([3.0, 2.0]), np.array([most, 4.0]), np.zeros((2, 1), dtype=np.int64), np.array([[2.0], [2.0]])
    )
    return programme


def test_the_cheap_column_is_used_as_far_as_it_goes() -> None:
    solved = _programme(11.0).solve()
    assert solved.columns.tolist() == pytest.approx([1.5, 4.0])
    assert (solved.cost, solved.rows[0]) == (pytest.approx(12.5), pytest.approx(1.5))


def test_a_further_row_holds_from_the_next_solution_on() -> None:
    programme = _programme(11.0)
    programme.solve()
    programme.restrict(np.array([1]), np.array([0]), np.array([0.5]))
    solved = programme.solve()
    assert solved.columns[1] <= 0.5 * solved.columns[0] + 1e-9
    assert solved.cost > 12.5


def test_in_whole_numbers_it_costs_more() -> None:
    programme = _programme(11.0)
    programme.solve()
    assert programme.whole(branches=10) == pytest.approx(14.0)


def test_a_programme_without_a_solution_says_so() -> None:
    with pytest.raises(SolverError, match="Infeasible"):
        _programme(11.0, most=1.0).solve()


def test_whoever_finds_no_solution_in_whole_numbers_proves_nothing() -> None:
    assert _programme(11.0, most=1.0).whole(branches=10) == -np.inf
