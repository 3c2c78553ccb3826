"""A calendar of budgets as one self-contained HTML page: a strip for each day, drawn in the chosen time zone."""

from collections.abc import Iterator
from datetime import datetime, time, timedelta, tzinfo
from html import escape
from typing import Final

from karpool.report.calendars.budget_document import AllowedPart, BudgetCalendar, PoolCalendarPart, ReasonCalendarPart
from karpool.report.calendars.budget_words import alike, moment, number, pool_heading
from karpool.report.html import render_page

_MINUTES: Final = 24 * 60
_ROOM_FOR_NUMBER: Final = 40
_HOURS_MARKED: Final = (0, 6, 12, 18)


def budget_page(document: BudgetCalendar, zone: tzinfo) -> str:
    since, until = moment(document.time, zone), moment(document.until, zone)
    return render_page(
        "budgets.html",
        "budgets.css",
        (),
        {},
        headline=escape(f"{since} to {until}, times in {document.time_zone}"),
        pools="".join(_pool(pool, zone) for pool in document.pools) or "<p>There are no NodePools.</p>",
        stops=_stops(document),
    )


def _stops(document: BudgetCalendar) -> str:
    if not document.stops:
        return ""
    listed = "".join(f"<li><b>{escape(stop.code)}</b> {escape(stop.message)}</li>" for stop in document.stops)
    return f'<section class="card"><h2>What holds them now, whatever budgets allow</h2><ul>{listed}</ul></section>'


def _pool(pool: PoolCalendarPart, zone: tzinfo) -> str:
    calendars = "".join(_reasons(names, part, zone) for names, part in alike(pool.reasons))
    return f'<section class="card"><h2>{escape(pool_heading(pool))}</h2>{calendars}</section>'


def _reasons(names: str, part: ReasonCalendarPart, zone: tzinfo) -> str:
    days = "".join(_day(day, entries, zone) for day, entries in _days(part, zone))
    whys = "".join(
        f"<li>{escape(why)}</li>" for why in dict.fromkeys(entry.why for entry in part.calendar if entry.why)
    )
    now = f"now {number(part.remaining_now)}"
    strips = f'<div class="days">{_hours()}{days}</div>'
    return f'<h3>{escape(names)} <small>{now}</small></h3>{strips}<ul class="why">{whys}</ul>'


def _hours() -> str:
    marks = "".join(f'<text x="{_share(hour * 60)}" y="12">{hour:02}:00</text>' for hour in _HOURS_MARKED)
    return f'<span></span><svg class="hours">{marks}</svg>'


def _days(part: ReasonCalendarPart, zone: tzinfo) -> Iterator[tuple[datetime, list[AllowedPart]]]:
    """The days of the time zone, each with what touches it."""
    day = datetime.combine(part.calendar[0].start.astimezone(zone).date(), time.min, zone)
    while day < part.calendar[-1].end:
        following = datetime.combine((day + timedelta(days=1)).date(), time.min, zone)
        yield day, [entry for entry in part.calendar if entry.start < following and day < entry.end]
        day = following


def _day(day: datetime, entries: list[AllowedPart], zone: tzinfo) -> str:
    bars = "".join(_bar(day, entry, zone) for entry in entries)
    name = escape(f"{day:%a %d %b}")
    return f'<span class="day">{name}</span><svg>{bars}</svg>'


def _bar(day: datetime, entry: AllowedPart, zone: tzinfo) -> str:
    """A stretch within a day, by the clock on the wall; its number says what its colour says."""
    start, end = _minute(day, entry.start, zone), _minute(day, entry.end, zone)
    kind = "none" if entry.allowed == 0 else "any" if entry.allowed is None else "some"
    told = f"{moment(entry.start, zone)} to {moment(entry.end, zone)}: {number(entry.allowed)}"
    middle = _share((start + end) / 2)
    label = f'<text x="{middle}" y="18">{number(entry.allowed)}</text>' if end - start > _ROOM_FOR_NUMBER else ""
    box = f'<rect class="{kind}" x="{_share(start)}" y="0" width="{_share(max(0, end - start))}" height="100%"/>'
    return f"<g><title>{escape(told)}</title>{box}{label}</g>"


def _share(minutes: float) -> str:
    return f"{100 * minutes / _MINUTES:.4g}%"


def _minute(day: datetime, when: datetime, zone: tzinfo) -> int:
    there = when.astimezone(zone)
    if there.date() != day.date():
        return 0 if there.date() < day.date() else _MINUTES
    return there.hour * 60 + there.minute
