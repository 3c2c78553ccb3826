"""Budgets that never let a node of a pool go, or too few to replace the pool's nodes within a week."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from karpool.disruption.budgets import UNLIMITED, Interval, calendar
from karpool.disruption.command import Cause
from karpool.lint.cluster import LintedCluster
from karpool.lint.finding import Finding, LintCode, Remedy, Rule, Severity
from karpool.lint.remedies import without_budgets
from karpool.model.annotations import annotation_path
from karpool.model.labels import BUDGETS
from karpool.model.nodepool import NodePool

DAYS: Final = 7
REPLACEMENT_TIME: Final = timedelta(minutes=10)
"""What it takes, by experience, to launch a node, move the pods of another to it, and end that one."""


def find_never_open(cluster: LintedCluster) -> Iterator[Finding]:
    for pool in cluster.pools:
        calendars = _calendars(cluster, pool)
        closed = [cause for cause, week in calendars.items() if not any(entry.allowed for entry in week)]
        if closed:
            reasons = "any reason" if len(closed) == len(Cause) else " and ".join(closed)
            why = calendars[closed[0]][0].why
            said = f": {why.message}" if why else ""
            message = f"lets no node go for {reasons} in the next {DAYS} days{said}"
            opened = Remedy(partial(without_budgets, name=pool.name), budgets=True)
            yield Finding(f"NodePool {pool.name}", message, _field(pool), opened)


def find_too_slow(cluster: LintedCluster) -> Iterator[Finding]:
    for pool in cluster.pools:
        nodes = len(cluster.nodes_of.get(pool.name, ()))
        week = _calendars(cluster, pool)[Cause.DRIFTED]
        replaceable = _replaceable(week)
        if nodes and 0 < replaceable < nodes:
            open_for = sum((entry.end - entry.start for entry in week if entry.allowed), timedelta(0))
            hours = f"{open_for / timedelta(hours=1):.4g} hours"
            minutes = int(REPLACEMENT_TIME / timedelta(minutes=1))
            message = (
                f"lets drifted nodes go in {hours} of the next {DAYS} days: time to replace {replaceable} of its "
                f"{nodes} nodes, at {minutes} minutes each"
            )
            yield Finding(f"NodePool {pool.name}", message, _field(pool))


def _calendars(cluster: LintedCluster, pool: NodePool) -> dict[Cause, list[Interval]]:
    size = max(1, len(cluster.nodes_of.get(pool.name, ())))
    annotated = BUDGETS in pool.metadata.annotations
    return {
        cause: calendar(pool, cause, size, cluster.now, timedelta(days=DAYS), annotated=annotated) for cause in Cause
    }


def _replaceable(week: Sequence[Interval]) -> int:
    """How many nodes can be replaced one after the other, as many at once as is allowed."""
    if any(entry.allowed >= UNLIMITED for entry in week):
        return UNLIMITED
    return sum(entry.allowed * ((entry.end - entry.start) // REPLACEMENT_TIME) for entry in week)


def _field(pool: NodePool) -> str:
    return annotation_path(BUDGETS) if BUDGETS in pool.metadata.annotations else "spec.disruption.budgets"


NEVER_OPEN = Rule(
    code=LintCode.BUDGET_NEVER_OPENS,
    severity=Severity.WARNING,
    title="Budgets that never let a node go",
    why="Nodes stay whatever they cost, also empty ones, and drifted ones keep old images.",
    action="Open a window each week, with a schedule and a duration; `karpool budgets` shows what it allows.",
    find=find_never_open,
    manifests=True,
)
TOO_SLOW = Rule(
    code=LintCode.BUDGET_TOO_SLOW,
    severity=Severity.WARNING,
    title="Budgets too narrow to keep up with drift",
    why="A new image or a change of the pool makes all nodes drift, and the next one comes before they are replaced.",
    action="Allow more nodes at once or longer windows, at least for the reason Drifted.",
    find=find_too_slow,
)
