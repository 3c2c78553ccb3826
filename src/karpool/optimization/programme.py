"""The linear programme behind a bound: which machines, how many, and what is on them, with everything divisible."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from karpool.cluster.arrays import Array

if TYPE_CHECKING:
    import highspy


class SolverError(RuntimeError):
    """A programme that must have a solution was not solved."""


@dataclass(frozen=True, slots=True)
class Solved:
    """A solution and its duals."""

    columns: Array
    rows: Array
    """(rows,) duals."""
    price: float


class Programme:
    """Minimise cost subject to rows, built column by column."""

    def __init__(self, lower: Array, upper: Array) -> None:
        self._lower, self._upper = lower, upper
        self._cost: list[Array] = []
        self._most: list[Array] = []
        self._length: list[Array] = []
        self._rows: list[Array] = []
        self._values: list[Array] = []

    def add(self, cost: Array, most: Array, rows: Array, values: Array) -> None:
        """Add columns with as many entries each: `rows` and `values` are (columns, entries)."""
        self._cost.append(cost)
        self._most.append(most)
        filled = values != 0
        self._length.append(filled.sum(axis=1))
        self._rows.append(rows[filled])
        self._values.append(values[filled])

    def solve(self) -> Solved:
        """Solve it with HiGHS: one thread, so that the same programme has the same solution."""
        solver = self._solver()
        solver.run()
        status = solver.getModelStatus()
        if status != _statuses().kOptimal:
            raise SolverError(f"the linear programme ended as {solver.modelStatusToString(status)}")
        solution = solver.getSolution()
        return Solved(
            np.array(solution.col_value), np.array(solution.row_dual), float(solver.getInfo().objective_function_value)
        )

    def _solver(self) -> "highspy.Highs":
        import highspy

        cost, most = np.concatenate(self._cost), np.concatenate(self._most)
        length = np.concatenate(self._length)
        programme = highspy.HighsLp()
        programme.num_col_, programme.num_row_ = len(cost), len(self._lower)
        programme.col_cost_, programme.col_lower_, programme.col_upper_ = cost, np.zeros(len(cost)), most
        programme.row_lower_, programme.row_upper_ = self._lower, self._upper
        programme.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        programme.a_matrix_.start_ = np.concatenate(([0], np.cumsum(length))).astype(np.int32)
        programme.a_matrix_.index_ = np.concatenate(self._rows).astype(np.int32)
        programme.a_matrix_.value_ = np.concatenate(self._values)
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in _OPTIONS.items():
            solver.setOptionValue(option, value)
        solver.passModel(programme)
        return solver


_OPTIONS: Final[dict[str, bool | int | str]] = {"output_flag": False, "threads": 1, "random_seed": 1}


def _statuses() -> "type[highspy.HighsModelStatus]":
    import highspy

    return highspy.HighsModelStatus
