"""`--fail-if`: an exit status of its own when a condition holds."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from karpool.cli.errors import CONDITION_MET, say
from karpool.report.plans.condition import Condition, ConditionError, Metric, Values, parse_condition, told

F = TypeVar("F", bound=Callable[..., Any])


class Expression(click.ParamType[tuple[str, Condition]]):
    """A condition, with the text that it was read from."""

    name = "condition"

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        self._metrics = metrics

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Condition]:
        try:
            return str(value), parse_condition(str(value), self._metrics)
        except ConditionError as error:
            self.fail(f"{str(value)[:80]!r} {error}", param, ctx)


def fail_if_option(metrics: Mapping[str, Metric], example: str) -> Callable[[F], F]:
    return click.option(
        "--fail-if",
        metavar="CONDITION",
        type=Expression(metrics),
        help=f"End with exit status {CONDITION_MET} if this holds, such as '{example}'.",
    )


def metrics_help(metrics: Mapping[str, Metric]) -> str:
    """Lines for a command's help: each name, its units and what it is."""
    lines = []
    for name, metric in metrics.items():
        units = " ".join(unit or "number" for unit in metric.units)
        lines.append(f"  {name:<10} {units:<15} {metric.meaning}")
    return "\n".join(lines)


def judged(expression: tuple[str, Condition] | None, values: Values) -> int:
    """The exit status; a condition that hangs on something unknown counts as met, and a line says so."""
    if expression is None:
        return 0
    text, condition = expression
    holds = condition.holds(values)
    if holds is False:
        return 0
    verdict = "holds" if holds else "cannot be ruled out"
    return say(f"--fail-if {text}: this {verdict}: {told(condition, values)}", CONDITION_MET)
