"""Measures the price that no plan can bring the cluster below, beside the decisions."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog

from karpool.observability.metrics import Metrics
from karpool.optimization.problem import FleetProblem

_log = structlog.get_logger()
BOUND_EVERY: Final = timedelta(minutes=5)
Work = Callable[[], None]


def in_a_thread(work: Work) -> None:
    """Start work that nobody waits for."""
    threading.Thread(target=work, name="bound", daemon=True).start()


class BoundMeter:
    """Solves one problem at a time, every few minutes."""

    def __init__(
        self, metrics: Metrics, clock: Callable[[], datetime], *, beside: Callable[[Work], None] = in_a_thread
    ) -> None:
        self._metrics = metrics
        self._clock = clock
        self._beside = beside
        self._busy = False
        self._asked: datetime | None = None

    def ask(self) -> bool:
        """Whether a new problem is wanted; one that is asked for in vain is not asked for again at once."""
        now = self._clock()
        due = not self._busy and (self._asked is None or now - self._asked >= BOUND_EVERY)
        if due:
            self._asked = now
        return due

    def measure(self, problem: FleetProblem) -> None:
        """Solve a problem, and report the bound when it is there."""
        self._busy = True
        self._beside(lambda: self._solve(problem))

    def _solve(self, problem: FleetProblem) -> None:
        # Only here: the solver takes a while to load.
        from karpool.optimization.bound import lower_bound
        from karpool.optimization.programme import SolverError

        try:
            self._metrics.price_lower_bound(max(0.0, lower_bound(problem).price))
        except SolverError as error:
            _log.warning("no lower bound of the cluster's price", why=str(error))
        finally:
            self._busy = False
