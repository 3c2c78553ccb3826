"""Rules of disruption budgets and of the durations around them."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from karpool.model.cron import parse_schedule
from karpool.model.nodepool import Budget
from karpool.wire.problems import Flaw

_MOST: Final = 50
_NODES: Final = re.compile(r"(100|[0-9]{1,2})%|[0-9]{1,9}")
_CRON: Final = re.compile(r"@(annually|yearly|monthly|weekly|daily|midnight|hourly)|\S+(\s+\S+){4}")
_SPAN: Final = re.compile(r"([0-9]+[smh])+|Never")
_WINDOW: Final = re.compile(r"([0-9]+h([0-9]+m)?|[0-9]+m)(0s)?")
REASONS: Final = ("Underutilized", "Empty", "Drifted", "Unhealthy")


def span_flaws(written: Any, path: str, *, never: bool = True) -> Iterator[Flaw]:
    """What is wrong with the text of a duration of a pool or a claim."""
    if not isinstance(written, str):
        return
    if not never and written == "Never":
        yield Flaw(path, "Duration", "Never is not allowed here; write a duration such as 30m, or leave the field out")
    elif not _SPAN.fullmatch(written):
        example = "30s or 1h30m, or Never" if never else "30s or 1h30m"
        yield Flaw(path, "Duration", f"{written[:40]!r} is not allowed; write whole h, m and s such as {example}")


def budget_flaws(budgets: Sequence[Budget], written: Any, path: str) -> Iterator[Flaw]:
    """What an API server would refuse in a list of budgets; `written` is the same list as plain values."""
    if len(budgets) > _MOST:
        yield Flaw(path, "TooManyBudgets", f"{len(budgets)} budgets are too many; at most {_MOST} are allowed")
    for index, budget in enumerate(budgets):
        yield from _nodes_flaws(budget, f"{path}[{index}]")
        yield from _reason_flaws(budget, f"{path}[{index}]")
        yield from _window_flaws(budget, written[index], f"{path}[{index}]")


def schedule_flaws(budgets: Sequence[Budget], path: str) -> Iterator[Flaw]:
    """Schedules that an API server accepts and the controller cannot read."""
    for index, budget in enumerate(budgets):
        if budget.schedule is not None:
            try:
                parse_schedule(budget.schedule)
            except ValueError as error:
                yield Flaw(f"{path}[{index}].schedule", "Schedule", str(error))


def _nodes_flaws(budget: Budget, path: str) -> Iterator[Flaw]:
    if not _NODES.fullmatch(str(budget.nodes)):
        message = f"{str(budget.nodes)[:40]!r} is not a number of nodes; write 0 or more, or 0% to 100%"
        yield Flaw(f"{path}.nodes", "BudgetNodes", message)


def _reason_flaws(budget: Budget, path: str) -> Iterator[Flaw]:
    reasons = budget.reasons or ()
    if len(reasons) > _MOST:
        yield Flaw(
            f"{path}.reasons", "TooManyReasons", f"{len(reasons)} reasons are too many; at most {_MOST} are allowed"
        )
    for position, reason in enumerate(reasons):
        if reason not in REASONS:
            message = f"{reason[:40]!r} is not a reason; use one of {', '.join(REASONS)}"
            yield Flaw(f"{path}.reasons[{position}]", "BudgetReason", message)


def _window_flaws(budget: Budget, written: Any, path: str) -> Iterator[Flaw]:
    if budget.schedule is not None and budget.duration is None:
        yield Flaw(f"{path}.duration", "ScheduleAndDuration", "is missing; a schedule needs a duration such as 8h")
    if budget.duration is not None and budget.schedule is None:
        message = "is missing; a duration needs a schedule such as '0 9 * * mon-fri'"
        yield Flaw(f"{path}.schedule", "ScheduleAndDuration", message)
    if budget.schedule is not None and not _CRON.fullmatch(budget.schedule):
        message = f"{budget.schedule[:40]!r} is not a schedule; write five cron fields, or @daily and the like"
        yield Flaw(f"{path}.schedule", "Schedule", message)
    text = written.get("duration") if isinstance(written, dict) else None
    if isinstance(text, str) and not _WINDOW.fullmatch(text):
        message = f"{text[:40]!r} is not allowed; write whole hours and minutes such as 8h or 1h30m"
        yield Flaw(f"{path}.duration", "Duration", message)
