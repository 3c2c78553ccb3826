"""What the budgets of pools allow when: the calendar of `karpool budgets`, as a document."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal

from msgspec import field

from karpool.disruption.budgets import UNLIMITED, calendar
from karpool.disruption.command import Cause
from karpool.disruption.context import DecisionContext
from karpool.model.node_group import NodeGroup
from karpool.model.nodepool import NodePool
from karpool.report.document_part import API_VERSION, DocumentPart
from karpool.report.plans.document import DisruptionReason, StopPart


class AllowedPart(DocumentPart, frozen=True, kw_only=True):
    """A stretch of time, how many nodes may go at once in it (None: any number), and the budget that says so."""

    start: datetime = field(name="from")
    end: datetime = field(name="to")
    allowed: int | None
    why: str


class ReasonCalendarPart(DocumentPart, frozen=True, kw_only=True):
    """What budgets allow for one reason: now, with nodes that are busy, and in the days to come, if none is."""

    reason: DisruptionReason
    allowed_now: int | None
    remaining_now: int | None
    calendar: tuple[AllowedPart, ...]


class PoolCalendarPart(DocumentPart, frozen=True, kw_only=True):
    """The budgets of a pool: how many nodes they count, how many of these are busy, and where they are written.

    `supposed`: whether the number of nodes was not read, but given or assumed.
    """

    name: str
    nodes: int
    supposed: bool = False
    busy: int
    source: Literal["spec", "annotation"]
    reasons: tuple[ReasonCalendarPart, ...]


class BudgetCalendar(DocumentPart, frozen=True, kw_only=True):
    """The calendars of all pools. Moments are in UTC; `time_zone` is the one that tables and pages show."""

    api_version: Literal["karpool.sh/v1"] = API_VERSION
    kind: Literal["BudgetCalendar"] = "BudgetCalendar"
    time: datetime
    until: datetime
    time_zone: str
    pools: tuple[PoolCalendarPart, ...]
    stops: tuple[StopPart, ...] = ()
    """Brakes that hold pools now, whatever their budgets allow."""
    warnings: tuple[str, ...] = ()


def budget_calendar(
    context: DecisionContext,
    pools: Iterable[NodePool],
    length: timedelta,
    *,
    nodes: int | None = None,
    time_zone: str = "UTC",
    warnings: tuple[str, ...] = (),
) -> BudgetCalendar:
    """What budgets of pools allow from the context's moment on; `nodes`: as if each pool had so many."""
    listed = [pool for pool in pools if not isinstance(pool, NodeGroup)]
    names = {pool.name for pool in listed}
    return BudgetCalendar(
        time=context.now,
        until=context.now + length,
        time_zone=time_zone,
        pools=tuple(_pool_part(context, pool, length, nodes) for pool in listed),
        stops=tuple(
            StopPart(code=stop.code, message=stop.message, object=stop.object, node_pool=stop.pool, until=stop.until)
            for stop in context.policies.stops
            if stop.node is None and (stop.pool is None or stop.pool in names)
        ),
        warnings=warnings,
    )


def _pool_part(context: DecisionContext, pool: NodePool, length: timedelta, nodes: int | None) -> PoolCalendarPart:
    census = context.pool_census(pool.name)
    size = census.nodes if nodes is None else nodes
    annotated = context.settings.annotated_budgets
    return PoolCalendarPart(
        name=pool.name,
        nodes=size,
        supposed=nodes is not None,
        busy=census.busy,
        source="annotation" if annotated else "spec",
        reasons=tuple(_reason_part(context, pool, cause, length, size, supposed=nodes is not None) for cause in Cause),
    )


def _reason_part(
    context: DecisionContext, pool: NodePool, cause: Cause, length: timedelta, size: int, *, supposed: bool
) -> ReasonCalendarPart:
    annotated = context.settings.annotated_budgets
    week = calendar(pool, cause, size, context.now, length, annotated=annotated)
    now = context.budgeted(pool, cause)
    return ReasonCalendarPart(
        reason=cause.value,
        allowed_now=_number(week[0].allowed if supposed else now.allowed),
        remaining_now=_number(week[0].allowed if supposed else now.remaining),
        calendar=tuple(
            AllowedPart(
                start=entry.start,
                end=entry.end,
                allowed=_number(entry.allowed),
                why="" if entry.why is None else entry.why.message,
            )
            for entry in week
        ),
    )


def _number(allowed: int) -> int | None:
    return None if allowed >= UNLIMITED else allowed
