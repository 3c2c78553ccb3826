"""A sweep in a terminal: the settings, the cheapest first, and which of them no other beats."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from karpool.report.formatting import UNKNOWN, age, amounts, count
from karpool.report.price_words import prices_words
from karpool.report.simulations.sweep_document import MeasurePart, SettingPart, SweepDocument

if TYPE_CHECKING:
    from karpool.report.table_layout import TableColumn
    from karpool.report.terminal import Screen

_MOST_ROWS: Final = 30
_FRONT: Final = "front"
_STOPPED: Final = "stopped"
_WAITS: Final = "pods wait"


def headline(document: SweepDocument) -> str:
    """What was tried, in a line."""
    tried = f"{count(len(document.settings), 'setting')}, {count(len(document.trials), 'trial')}"
    lengths = sorted({part.length_seconds for part in document.inputs})
    length = age(lengths[0]) if len(lengths) == 1 else f"{age(lengths[0])} to {age(lengths[-1])}"
    return f"{', '.join(part.name for part in document.inputs)}: {length}, {tried}, {count(document.seeds, 'seed')}"


def print_sweep(document: SweepDocument, screen: "Screen") -> None:
    from karpool.report.terminal import right

    screen.line(screen.text(headline(document), "bold"))
    screen.line("")
    if not document.settings:
        screen.line("No setting was tried.")
        return
    shown = ranked(document)[:_MOST_ROWS]
    names = list(shown[0].setting)
    columns: list[str | TableColumn] = [
        right("no"),
        "",
        *names,
        right("cost"),
        right("evictions"),
        right("waiting"),
        right("launches"),
    ]
    rows = [
        [
            str(part.number),
            state(part),
            *(part.setting[name] for name in names),
            *(text.replace("±", "+-") if screen.plain else text for text in written),
        ]
        for part, written in zip(shown, numbers(shown, document), strict=True)
    ]
    screen.table(columns, rows)
    screen.line("")
    for line in notes(document, len(shown)):
        screen.line(line)


def ranked(document: SweepDocument) -> list[SettingPart]:
    """The front first, then the others, each the cheapest first."""
    return sorted(document.settings, key=lambda part: (not part.on_front, part.measures["cost"].mean, part.number))


def state(part: SettingPart) -> str:
    """What is to be known of a setting, in a word."""
    return _FRONT if part.on_front else _STOPPED if part.stopped else _WAITS if part.pods_wait else ""


def numbers(parts: Sequence[SettingPart], document: SweepDocument) -> Iterator[tuple[str, ...]]:
    """Cost, evictions, time that pods waited, and launches of settings, each with its interval."""
    measures = [part.measures for part in parts]
    incomplete = {trial.number for trial in document.trials if trial.result.unpriced_node_hours}
    return zip(
        _costs([each["cost"] for each in measures], [part.number in incomplete for part in parts]),
        _counted([each["evictions"] for each in measures]),
        (_waiting(each["pendingPodSeconds"]) for each in measures),
        _counted([each["nodesLaunched"] for each in measures]),
        strict=True,
    )


def _costs(column: Sequence[MeasurePart], incomplete: Sequence[bool]) -> Iterator[str]:
    """`incomplete`: which of them leave out nodes whose price nobody knows."""
    known = [
        None if part and not measure.mean else measure.mean for measure, part in zip(column, incomplete, strict=True)
    ]
    for text, measure, part in zip(amounts(known), column, incomplete, strict=True):
        decimals = len(text.partition(".")[2])
        rest = f" + {UNKNOWN}" if part else ""
        yield UNKNOWN if text == UNKNOWN else f"{text}{_reach(measure, f',.{decimals}f')} ${rest}"


def _counted(column: Sequence[MeasurePart]) -> Iterator[str]:
    whole = all(measure.mean.is_integer() and measure.high is None for measure in column)
    for measure in column:
        yield f"{measure.mean:{',.0f' if whole else ',.1f'}}{_reach(measure, ',.1f')}"


def _waiting(measure: MeasurePart) -> str:
    return age(measure.mean) + (f" ± {age(measure.high - measure.mean)}" if measure.high is not None else "")


def _reach(measure: MeasurePart, digits: str) -> str:
    return "" if measure.high is None else f" ± {measure.high - measure.mean:{digits}}"


def notes(document: SweepDocument, shown: int) -> list[str]:
    """What a reader has to know of the numbers."""
    lines = [f"{_FRONT}: no other setting is as cheap and evicts as few pods. --choose NO prints a patch."]
    if any(part.stopped for part in document.settings):
        lines.append(f"{_STOPPED}: another setting is better with 95% confidence; its further seeds were left out.")
    if any(part.pods_wait for part in document.settings):
        lines.append(f"{_WAITS}: pods had no node for much longer than under another setting; its cost says nothing.")
    if len(document.settings) > shown:
        lines.append(f"{len(document.settings) - shown} more settings are in --output json and html.")
    if document.seeds > 1:
        lines.append("+- is half of the 95% confidence interval over seeds.")
    lines.extend(
        f"Nothing was recorded during {age(part.gap_seconds)} of {part.name}: demand stayed as it was. How faithful a"
        f" replay is: karpool simulate {part.name}"
        for part in document.inputs
        if part.gap_seconds
    )
    if not document.complete:
        lines.append("Not complete: not all trials were done.")
    unpriced = max((trial.result.unpriced_node_hours for trial in document.trials), default=0)
    if unpriced:
        lines.append(
            f"Costs are incomplete: up to {unpriced:,.1f} node-hours of a trial have no known price (?), so that nobody"
            " can say which setting is the cheapest."
        )
    if words := prices_words(document.prices):
        lines.append(words)
    return lines
