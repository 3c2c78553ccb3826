"""A simulation in a terminal: policies side by side, each with its difference to the first."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from karpool.report.formatting import UNKNOWN, age, amount
from karpool.report.simulations.simulation_document import Simulation, money_words, recording_words
from karpool.virtual.scenario import RECORDED

if TYPE_CHECKING:
    from karpool.report.terminal import Screen

_NOTHING_RAN: Final = "Nothing ran: there were no pods and no nodes."
_MANY: Final = 10


class Row(NamedTuple):
    title: str
    key: str
    write: Callable[[float], str]
    less_is_better: bool | None = None


def whole(value: float) -> str:
    """A count; means of counts keep one digit."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def _share(value: float) -> str:
    return f"{value * 100:.1f} %"


def _money(value: float) -> str:
    return f"{amount(value)} $"


ROWS: Final = (
    Row("cost", "cost", _money, less_is_better=True),
    Row("node-hours", "nodeHours", whole, less_is_better=True),
    Row("CPU requested, mean", "cpuUtilization", _share, less_is_better=False),
    Row("memory requested, mean", "memoryUtilization", _share, less_is_better=False),
    Row("evictions", "evictions", whole, less_is_better=True),
    Row("pods deleted at deadlines", "evictionsForced", whole, less_is_better=True),
    Row("moves per pod", "movesPerPod", lambda value: f"{value:.2f}", less_is_better=True),
    Row("time pods waited", "pendingPodSeconds", age, less_is_better=True),
    Row("nodes launched", "nodesLaunched", whole),
    Row("node lifetime, median", "nodeLifetimeSecondsMedian", age),
    Row("time PDBs held pods", "pdbWaitSeconds", age),
    Row("spot interruptions", "interruptions", whole),
    Row("nodes at the end", "nodesAtEnd", whole),
    Row("pods at the end", "podsAtEnd", whole),
    Row("pods waiting at the end", "pendingPodsAtEnd", whole, less_is_better=True),
)


def written(row: Row, numbers: dict[str, Any]) -> str:
    """A number of a policy; of several seeds with its interval's half width."""
    value = numbers[row.key]
    rest = f" + {UNKNOWN}" if _in_part(row, numbers) else ""
    if value is None:
        return UNKNOWN
    interval = numbers.get("confidence", {}).get(row.key)
    text = row.write(value)
    if not interval or interval[0] == interval[1]:
        return f"{text}{rest}"
    reach = interval[1] - value
    return f"{text} ± {f'{reach:,.2f} $' if row.write is _money else row.write(reach)}{rest}"


def _in_part(row: Row, numbers: dict[str, Any]) -> bool:
    """Whether a cost leaves something out, as prices of some nodes are not known."""
    return row.write is _money and bool(numbers.get("unpricedNodeHours"))


def difference(row: Row, numbers: dict[str, Any], base: dict[str, Any]) -> str:
    """By how much a number differs from the first policy's; empty where that says nothing."""
    mine, theirs = numbers[row.key], base[row.key]
    if mine is None or not theirs or row.key == "podsAtEnd":
        return ""
    if _in_part(row, numbers) or _in_part(row, base):
        return UNKNOWN
    if mine == theirs:
        return "="
    if row.write is _share:
        return f"{(mine - theirs) * 100:+.1f} points"
    times = mine / theirs
    return f"x {times:,.0f}" if times >= _MANY else f"{(times - 1) * 100:+.1f} %"


def shown_rows(document: Simulation) -> list[Row]:
    """The rows that have something to say: numbers that are zero everywhere are left out."""
    return [
        row for row in ROWS if any(policy[row.key] or _in_part(row, policy) for policy in document.policies.values())
    ]


def nothing_ran(document: Simulation) -> str:
    """Why there is no table, and what to do about it."""
    hint = "None were recorded." if RECORDED in document.policies else "Describe pods under workloads."
    return f"{_NOTHING_RAN} {hint}"


def headline(document: Simulation) -> str:
    runs = f"seed {document.seed}" if document.seeds == 1 else f"{document.seeds} seeds from {document.seed}"
    return f"{document.scenario or 'scenario'}: {age(document.length_seconds)}, {runs}"


def print_simulation(document: Simulation, screen: "Screen") -> None:
    from karpool.report.terminal import right

    screen.line(screen.text(headline(document), "bold"))
    if document.description:
        screen.line(document.description)
    screen.line("")
    if not shown_rows(document):
        screen.line(nothing_ran(document))
        return
    names = list(document.policies)
    base = document.policies[names[0]]
    rows = []
    for row in shown_rows(document):
        cells = [row.title, _cell(written(row, base), plain=screen.plain)]
        for name in names[1:]:
            policy = document.policies[name]
            cells += [_cell(written(row, policy), plain=screen.plain), difference(row, policy, base)]
        rows.append(cells)
    compared = (
        column for name in names[1:] for column in (right(name), right("", spare=1, name=f"{name} against {names[0]}"))
    )
    screen.table(("", right(names[0]), *compared), rows)
    screen.line("")
    screen.line(_note(document, names[0]))
    for words in recording_words(document):
        screen.line(words)
    if words := money_words(document):
        screen.line(words)


def _cell(text: str, *, plain: bool) -> str:
    return text.replace("±", "+-") if plain else text


def _note(document: Simulation, first: str) -> str:
    unsure = " +- is half of the 95% confidence interval." if document.seeds > 1 else ""
    compared = f"Percentages compare with {first}. " if len(document.policies) > 1 else ""
    return f"{compared}Amounts are requests, not usage.{unsure}"
