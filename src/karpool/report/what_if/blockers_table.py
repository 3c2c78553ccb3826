"""Blockers in a terminal, and as lines for a spreadsheet."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from karpool.report.csv_text import csv_text
from karpool.report.formatting import HOURS_PER_MONTH, UNKNOWN, amounts, count, names_of, per_hour
from karpool.report.table_layout import TableColumn
from karpool.report.terminal import Cell, Screen, right, wrapped
from karpool.report.what_if.what_if_document import BlockersDocument, LiftPart

_SHOWN: Final = 20
_UNKNOWN: Final = "What nodes cost is not known, so nobody can say what lifting anything is worth."
_HEAD: Final = (
    "owner",
    "codes",
    "objects",
    "namespaces",
    "workloads",
    "savingsPerHour",
    "savingsPerMonth",
    "computed",
    "atLeastPerHour",
    "atMostPerHour",
    "nodesHeld",
    "nodesHeldAlone",
    "nodesFewer",
    "evictions",
    "search",
    "lift",
)


def print_blockers(found: BlockersDocument, screen: Screen, *, everything: bool) -> None:
    """What the cluster comes to today, and a line for each blocker, those that are worth most first."""
    today = found.today
    screen.line(screen.text("Blockers", "bold"), f" as of {found.time:%Y-%m-%d %H:%M:%S} UTC; requests, not usage")
    if not today.nodes_before:
        screen.line("There are no nodes, so there is nothing that could be held.")
        return
    screen.line(
        f"Today's plan ends at {per_hour(today.price_after)} with {count(today.nodes_after, 'node')} (before:"
        f" {per_hour(today.price_before)}, {today.nodes_before:,}); {found.held:,} of these are held by something."
    )
    for line in _searches(found):
        screen.line(line)
    useful = [lift for lift in found.blockers if everything or _matters(lift)]
    shown = useful if everything else useful[:_SHOWN]
    if not shown:
        unknown = today.price_before is None
        screen.heading(_UNKNOWN if unknown else "Nothing that can be lifted keeps any money where it is.")
        return
    screen.heading("What lifting each alone is worth" + (f", by {found.by}" if found.by else ""))
    columns = (
        right("$/h"),
        right("$/month", spare=1),
        right("nodes", spare=2, name="nodes held (alone)"),
        TableColumn("what", wraps=True),
        wrapped("how"),
    )
    prices = amounts(price for lift in shown for price in _ends(lift))
    pairs = zip(prices[::2], prices[1::2], strict=True)
    screen.table(columns, (_row(lift, *pair, screen) for lift, pair in zip(shown, pairs, strict=True)))
    _say_what_is_not_known(found, shown, screen)


def _searches(found: BlockersDocument) -> Iterator[str]:
    """With what was planned; where some was looked for longer than the rest, how many."""
    counted = Counter(lift.search for lift in found.blockers if lift.search is not None)
    yield f"Planned with --search {_option(found.today_search)}."
    for search, many in counted.items():
        if search != found.today_search or len(counted) > 1:
            yield f"Lifted with --search {_option(search)}: {count(many, 'blocker')}."


def _option(search: str) -> str:
    return search.replace(", effort ", " --effort ")


def _matters(lift: LiftPart) -> bool:
    if lift.computed:
        return bool(lift.savings_per_hour)
    return bool(lift.lift) and lift.at_most != 0


def _say_what_is_not_known(found: BlockersDocument, shown: list[LiftPart], screen: Screen) -> None:
    computed = sum(lift.computed for lift in found.blockers)
    screen.line(f"nodes: held, and how many of them nothing else holds. {count(computed, 'blocker')} computed.")
    if any(lift.search is None for lift in shown):
        sign = "<=" if screen.plain else "≤"
        screen.line(f"{sign}: not computed, worth no more than that; --top N computes more.")
    if any(_in_haste(lift) for lift in shown):
        screen.line("0.1 to 2: worth at least 0.1, at most 2; not looked for longer yet: --refine N")
    hidden = len(found.blockers) - len(shown)
    if hidden:
        screen.line(f"and {hidden:,} more that are worth less, or nothing by themselves; --all lists them")


def _in_haste(lift: LiftPart) -> bool:
    """Whether only a search in haste has looked, so that it may be worth more."""
    return lift.search is not None and not lift.computed


def _ends(lift: LiftPart) -> tuple[float | None, float | None]:
    """What it is worth at least and at most, as far as that is known."""
    if lift.computed:
        return lift.savings_per_hour, lift.savings_per_hour
    return (lift.at_least if _in_haste(lift) else lift.at_most), lift.at_most


def _row(lift: LiftPart, least: str, most: str, screen: Screen) -> tuple[Cell, ...]:
    """`least`, `most`: what it is worth, as the column writes it."""
    months = [UNKNOWN if price is None else f"{price * HOURS_PER_MONTH:,.0f}" for price in _ends(lift)]
    known, month = _span(lift, least, most, screen), _span(lift, months[0], months[1], screen)
    held = f"{len(lift.nodes):,} ({lift.alone:,})" if lift.nodes else ""
    what = [f"{detail.code}: {detail.object or detail.message}" for detail in lift.blockers[:3]]
    if len(lift.blockers) > len(what):
        what.append(f"and {len(lift.blockers) - len(what):,} more")
    about = [lift.name, *(f"  {line}" for line in what)] if lift.name else what
    return (
        screen.text(known, "green"),
        month,
        held,
        screen.lines(about),
        names_of(lift.lift) or lift.blockers[0].message,
    )


def _span(lift: LiftPart, least: str, most: str, screen: Screen) -> str:
    """An amount, or between which two it is."""
    if _in_haste(lift):
        return f"{least} to {most}"
    return most if lift.computed or most == UNKNOWN else f"<= {most}" if screen.plain else f"≤ {most}"


def blockers_csv(found: BlockersDocument) -> str:
    """A line for each blocker under a head; what is not known is empty."""
    return csv_text(_HEAD, map(_fields, found.blockers))


def _fields(lift: LiftPart) -> tuple[object, ...]:
    details = lift.blockers
    return (
        lift.name,
        " ".join(dict.fromkeys(detail.code for detail in details)),
        "; ".join(dict.fromkeys(detail.object for detail in details if detail.object)),
        " ".join(sorted({name for detail in details for name in detail.namespaces})),
        "; ".join(dict.fromkeys(name for detail in details for name in detail.workloads)),
        lift.savings_per_hour,
        lift.savings_per_month,
        lift.computed,
        lift.at_least,
        lift.at_most,
        len(lift.nodes),
        lift.alone,
        lift.nodes_fewer,
        lift.evictions,
        lift.search,
        "; ".join(lift.lift),
    )
