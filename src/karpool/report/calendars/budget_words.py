"""Words for calendars of budgets: moments in a time zone, numbers of nodes, and stretches of several reasons."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import pairwise
from typing import Final

from karpool.report.calendars.budget_document import AllowedPart, PoolCalendarPart, ReasonCalendarPart
from karpool.report.formatting import count

ANY: Final = "any"


@dataclass(frozen=True)
class Stretch:
    """A stretch of time in which nothing changes for any of several reasons."""

    start: datetime
    end: datetime
    parts: tuple[AllowedPart, ...]


def moment(when: datetime, zone: tzinfo) -> str:
    return f"{when.astimezone(zone):%a %d %b %H:%M}"


def number(allowed: int | None) -> str:
    return ANY if allowed is None else f"{allowed:,}"


def alike(reasons: Sequence[ReasonCalendarPart]) -> list[tuple[str, ReasonCalendarPart]]:
    """Reasons that budgets treat alike, as one, under all their names."""
    groups: dict[tuple[object, ...], list[ReasonCalendarPart]] = {}
    for part in reasons:
        groups.setdefault((part.calendar, part.remaining_now), []).append(part)
    return [(", ".join(part.reason for part in group), group[0]) for group in groups.values()]


def stretches(reasons: Sequence[ReasonCalendarPart]) -> list[Stretch]:
    """The calendars of several reasons, cut where any of them changes."""
    edges = sorted({edge for reason in reasons for part in reason.calendar for edge in (part.start, part.end)})
    return [Stretch(start, end, tuple(_at(reason, start) for reason in reasons)) for start, end in pairwise(edges)]


def _at(reason: ReasonCalendarPart, when: datetime) -> AllowedPart:
    return next(part for part in reason.calendar if part.start <= when < part.end)


def pool_heading(pool: PoolCalendarPart) -> str:
    busy = f", {pool.busy:,} of them not ready or on the way out" if pool.busy else ""
    where = f", budgets of its {pool.source}" if pool.source == "annotation" else ""
    nodes = f"{count(pool.nodes, 'node')}{' supposed' if pool.supposed else ''}"
    return f"NodePool {pool.name}: {nodes}{busy}{where}"
