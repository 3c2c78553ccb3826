"""How many nodes of a pool may be disrupted at once, now and in the days to come.

The tightest budget that is active and names the reason binds. A budget that cannot be read stops the whole pool:
somebody wanted to limit something, and nobody knows what.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from karpool.disruption.reasons import ReasonCode
from karpool.model.annotations import AnnotationError, annotated_budgets
from karpool.model.cron import Schedule, parse_schedule
from karpool.model.nodepool import Budget, NodePool
from karpool.model.reading.unreadable import unreadable_reason
from karpool.model.reasons import Reason

UNLIMITED: Final = 2**31 - 1
_WHOLE: Final = 100
_NODES: Final = re.compile(r"(?P<number>\d{1,18})(?P<percent>%?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many nodes may be disrupted at once, how many of these are left, and which budget says so."""

    allowed: int
    remaining: int
    why: Reason | None = None

    def exhausted(self, pool: NodePool) -> Reason:
        """Why no further node of the pool may go."""
        return self.why or Reason(ReasonCode.BUDGET_EXHAUSTED, "no budget is left", pool.subject)


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of time in which the same number of nodes may be disrupted at once."""

    start: datetime
    end: datetime
    allowed: int
    why: Reason | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A budget whose hours could be read, and its place in the list as people count."""

    place: int
    budget: Budget
    schedule: Schedule | None
    duration: timedelta

    def active(self, now: datetime, uncertainty: timedelta) -> bool:
        """Whether it is active at any of the times that it may be."""
        return self.schedule is None or self.schedule.active(now + uncertainty, self.duration + uncertainty)

    def applies(self, reason: str) -> bool:
        return self.budget.reasons is None or reason in self.budget.reasons

    def windows(self, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
        if self.schedule is None:
            return [(start, end)]
        return list(self.schedule.windows(start, end, self.duration))

    def __str__(self) -> str:
        hours = f", {self.budget.schedule} for {self.budget.duration}" if self.schedule else ""
        reasons = "" if self.budget.reasons is None else f", for {' and '.join(self.budget.reasons) or 'no reason'}"
        return f"budget {self.place} (nodes {self.budget.nodes}{reasons}{hours})"


class BudgetError(ValueError):
    """A budget that cannot be read: which one, and what is wrong with it."""


def allowed(
    pool: NodePool,
    reason: str,
    nodes: int,
    busy: int,
    now: datetime,
    *,
    uncertainty: timedelta = timedelta(0),
    annotated: bool = False,
) -> Allowance:
    """How many of a pool's nodes may be disrupted for a reason (`Empty`, `Drifted`, `Underutilized`, `Unhealthy`).

    Busy nodes, those not ready or on their way out, count against it. With `annotated`, budgets in the pool's
    annotation replace those in its spec. It may be later than now by as much as the uncertainty: a budget whose window
    may have begun binds, and so does one whose window may not have ended.
    """
    if pool.unreadable:
        return Allowance(0, 0, unreadable_reason("NodePool", pool))
    try:
        entries = _read(pool, annotated=annotated)
    except BudgetError as problem:
        return Allowance(0, 0, _unreadable(pool, problem))
    return _allowance(pool, [entry for entry in entries if entry.active(now, uncertainty)], reason, nodes, busy)


def calendar(
    pool: NodePool, reason: str, nodes: int, start: datetime, length: timedelta, *, annotated: bool = False
) -> list[Interval]:
    """What will be allowed when, from a moment on, if the pool keeps its size and no node is busy."""
    end = start + length
    if pool.unreadable:
        return [Interval(start, end, 0, unreadable_reason("NodePool", pool))]
    try:
        entries = _read(pool, annotated=annotated)
    except BudgetError as problem:
        return [Interval(start, end, 0, _unreadable(pool, problem))]
    hours = {entry.place: entry.windows(start, end) for entry in entries}
    edges = {edge for windows in hours.values() for window in windows for edge in window if start < edge < end}
    intervals: list[Interval] = []
    for since, until in pairwise(sorted({start, end} | edges)):
        active = [entry for entry in entries if _within(hours[entry.place], since)]
        allowance = _allowance(pool, active, reason, nodes, busy=0)
        longer = bool(intervals) and intervals[-1].why == allowance.why
        intervals.append(Interval(intervals.pop().start if longer else since, until, allowance.allowed, allowance.why))
    return intervals


def _within(windows: Sequence[tuple[datetime, datetime]], moment: datetime) -> bool:
    begun = bisect_right(windows, moment, key=lambda window: window[0])
    return begun > 0 and moment < windows[begun - 1][1]


def _allowance(pool: NodePool, active: Iterable[_Entry], reason: str, nodes: int, busy: int) -> Allowance:
    """What the active entries allow; each must be readable, also those for other reasons."""
    try:
        limits = [(_limit(entry, nodes), entry) for entry in active]
    except BudgetError as problem:
        return Allowance(0, 0, _unreadable(pool, problem))
    applying = [(limit, entry) for limit, entry in limits if entry.applies(reason)]
    if not applying:
        return Allowance(UNLIMITED, UNLIMITED)
    limit, entry = min(applying, key=lambda pair: pair[0])
    return Allowance(limit, max(0, limit - busy), _bound(pool, entry, limit, nodes, busy=busy))


def _limit(entry: _Entry, nodes: int) -> int:
    """How many nodes an entry allows; shares are rounded up."""
    text = str(entry.budget.nodes)
    written = _NODES.fullmatch(text)
    if written and not written["percent"]:
        return min(int(written["number"]), UNLIMITED)
    if written and int(written["number"]) <= _WHOLE:
        return -(-int(written["number"]) * nodes // _WHOLE)
    raise BudgetError(f"budget {entry.place}: nodes is {text[:20]!r}, neither a whole number nor 0% to 100%")


def _read(pool: NodePool, *, annotated: bool) -> tuple[_Entry, ...]:
    try:
        budgets = annotated_budgets(pool) if annotated else None
    except AnnotationError as problem:
        raise BudgetError(str(problem)) from problem
    if budgets is None:
        budgets = pool.spec.disruption.budgets
    return tuple(_entry(place, budget) for place, budget in enumerate(budgets, start=1))


def _entry(place: int, budget: Budget) -> _Entry:
    length = None if budget.duration is None else budget.duration.delta
    if budget.schedule is None and budget.duration is None:
        return _Entry(place, budget, None, timedelta(0))
    if budget.schedule is None or length is None:
        missing = "duration" if budget.schedule is not None else "schedule"
        raise BudgetError(f"budget {place}: schedule and duration go together, and there is no {missing}")
    try:
        return _Entry(place, budget, parse_schedule(budget.schedule), length)
    except ValueError as problem:
        raise BudgetError(f"budget {place}: {problem}") from problem


def _bound(pool: NodePool, entry: _Entry, limit: int, nodes: int, *, busy: int) -> Reason:
    taken = f"; {busy} {'is' if busy == 1 else 'are'} on the way out or not ready" if busy else ""
    several = f"{limit} of {nodes} nodes" if nodes > 1 else f"{limit or 'no'} node{'s' * (limit > 1)}"
    message = f"{entry} allows {several} at once{taken}"
    return Reason(ReasonCode.BUDGET_EXHAUSTED, message, pool.subject)


def _unreadable(pool: NodePool, problem: BudgetError) -> Reason:
    message = f"{problem}; until that is put right, no node of the pool is disrupted"
    return Reason(ReasonCode.BUDGET_INVALID, message, pool.subject)
