"""Linear programmes, built column by column and solved by HiGHS."""

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
    cost: float


class Programme:
    """Minimise cost subject to rows; columns are not below 0."""

    def __init__(self, lower: Array, upper: Array) -> None:
        self._lower, self._upper = lower, upper
        self._cost: list[Array] = []
        self._most: list[Array] = []
        self._length: list[Array] = []
        self._rows: list[Array] = []
        self._values: list[Array] = []
        self._solver: highspy.Highs | None = None

    def add(self, cost: Array, most: Array, rows: Array, values: Array) -> None:
        """Add columns with as many entries each: `rows` and `values` are (columns, entries)."""
        self._cost.append(cost)
        self._most.append(most)
        filled = values != 0
        self._length.append(filled.sum(axis=1))
        self._rows.append(rows[filled])
        self._values.append(values[filled])

    def solve(self) -> Solved:
        """Solve it, going on from the last solution if there is one; one thread, so that the same comes out again."""
        import highspy

        # From nothing, the primal simplex is the fastest; with further rows, the dual one goes on where it was.
        ways = [_DUAL] if self._solver is not None else [_PRIMAL, _DUAL]
        if self._solver is None:
            self._solver = self._loaded()
        for way in ways:
            self._solver.setOptionValue("simplex_strategy", way)
            self._solver.run()
            status = self._solver.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                break
        else:
            raise SolverError(f"the linear programme ended as {self._solver.modelStatusToString(status)}")
        solution = self._solver.getSolution()
        cost = float(self._solver.getInfo().objective_function_value)
        return Solved(np.array(solution.col_value), np.array(solution.row_dual), cost)

    @property
    def size(self) -> int:
        """How many columns it has."""
        return sum(len(cost) for cost in self._cost)

    def whole(self, branches: int) -> float:
        """A cost that no solution in whole numbers is below; infinitely low if the solver found none.

        HiGHS branches so many times at most: a limit of time would give another answer on another day.
        """
        import highspy

        solver = self._solver or self._loaded()
        columns = np.arange(self.size, dtype=np.int32)
        whole = np.full(self.size, int(highspy.HighsVarType.kInteger), dtype=np.uint8)
        solver.changeColsIntegrality(self.size, columns, whole)
        solver.setOptionValue("mip_max_nodes", branches)
        solver.run()
        proven = float(solver.getInfo().mip_dual_bound)
        # Today's fleet is a solution: whoever finds none has lost its way.
        return proven if np.isfinite(proven) else -np.inf

    def restrict(self, first: Array, second: Array, factor: Array) -> None:
        """Further rows for the next time: columns `first` are at most `factor` times columns `second`."""
        count = len(first)
        if self._solver is None or not count:
            return
        index = np.column_stack((first, second)).reshape(-1).astype(np.int32)
        values = np.column_stack((np.ones(count), -factor)).reshape(-1)
        start = np.arange(0, 2 * count, 2, dtype=np.int32)
        self._solver.addRows(count, np.full(count, -np.inf), np.zeros(count), 2 * count, start, index, values)

    def _loaded(self) -> "highspy.Highs":
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


_PRIMAL: Final = 4
_DUAL: Final = 1
_OPTIONS: Final[dict[str, bool | int | str]] = {"output_flag": False, "threads": 1, "random_seed": 1}
