"""A calendar of budgets for people."""

from datetime import tzinfo
from typing import Final

from karpool.report.calendars.budget_document import BudgetCalendar, PoolCalendarPart
from karpool.report.calendars.budget_words import alike, moment, number, pool_heading, stretches
from karpool.report.terminal import Screen, right

_MOST_SHOWN: Final = 40


def print_budgets(document: BudgetCalendar, zone: tzinfo, screen: Screen, *, everything: bool = False) -> None:
    since, until = moment(document.time, zone), moment(document.until, zone)
    screen.line(f"How many nodes may go at once from {since} to {until}, times in {document.time_zone}")
    if any(pool.supposed for pool in document.pools):
        screen.line("Percentages are of the nodes that are supposed; none of them is busy.")
    else:
        screen.line("Percentages are of the nodes of today; busy nodes count against `now` only.")
    for pool in document.pools:
        _print_pool(pool, zone, screen, everything=everything)
    if not document.pools:
        screen.line("There are no NodePools.")
    if document.stops:
        screen.heading("What holds them now, whatever budgets allow")
        for stop in document.stops:
            screen.line(f"{stop.code}: {stop.message}")


def _print_pool(pool: PoolCalendarPart, zone: tzinfo, screen: Screen, *, everything: bool) -> None:
    screen.heading(pool_heading(pool))
    groups = alike(pool.reasons)
    names = ["all reasons"] if len(groups) == 1 else [name for name, _ in groups]
    reasons = [part for _, part in groups]
    rows = [["now", "", *(number(part.remaining_now) for part in reasons)]]
    cut = stretches(reasons)
    shown = cut if everything else cut[:_MOST_SHOWN]
    for stretch in shown:
        allowed = [number(part.allowed) for part in stretch.parts]
        rows.append([moment(stretch.start, zone), moment(stretch.end, zone), *allowed])
    screen.table(["from", "to", *(right(name) for name in names)], rows)
    if len(shown) < len(cut):
        screen.line(f"… and {len(cut) - len(shown):,} more; --all lists every one")
    for why in dict.fromkeys(part.why for stretch in shown for part in stretch.parts if part.why):
        screen.line(f"  {why}")
