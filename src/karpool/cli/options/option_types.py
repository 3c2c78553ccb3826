"""Types of option values whose errors say what would be right."""

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from karpool.disruption.settings import MOST_EVICTION_PRICE, MOST_SEED, DisruptionSettings, is_eviction_price
from karpool.wire.duration import parse_duration
from karpool.wire.problems import suggestion

if TYPE_CHECKING:
    from karpool.report.costs.costs import Grouping

_WHOLE: Final = 100
_DAY: Final = timedelta(days=1)
_LONGEST: Final = timedelta(days=366)
"""Per cent."""


class OneOf(click.Choice[str]):
    """One of several words; the error names the one that was probably meant."""

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__(tuple(words))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            self.fail(_unknown(value, self.choices), param, ctx)
        return str(value)


class Whole(click.IntRange):
    """A whole number in a range."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        low, high = self.min or 0, self.max
        wanted = f"{low:,} or more" if high is None else f"{low:,} to {high:,}"
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number; write {wanted}", param, ctx)
        if number < low or (high is not None and number > high):
            self.fail(f"{number} is out of range; write {wanted}", param, ctx)
        return number


class StrategyName(click.ParamType[str]):
    """The name of a search strategy."""

    name = "strategy"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value != DisruptionSettings().search:
            # Strategies come with the engine, which takes half a second to load; the default needs no look.
            from karpool.disruption.methods.search import STRATEGIES

            if value not in STRATEGIES:
                self.fail(_unknown(value, STRATEGIES), param, ctx)
        return str(value)


class EvictionPrice(click.ParamType[float]):
    """What one eviction must save, in $/h."""

    name = "price"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            price = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number; write $/h for one eviction, such as 0.004", param, ctx)
        if not is_eviction_price(price):
            self.fail(f"{value} is out of range; write $/h from 0 to {MOST_EVICTION_PRICE:,.0f}", param, ctx)
        return price


class GroupingOption(click.ParamType["Grouping"]):
    """What costs are added up by."""

    name = "grouping"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> "Grouping":
        from karpool.report.costs.costs import GroupingError, read_grouping

        try:
            return read_grouping(str(value))
        except GroupingError as problem:
            self.fail(str(problem), param, ctx)


class Percentage(click.ParamType[float]):
    """A share from 0 to 100."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            share = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number; write a percentage from 0 to 100, such as 45", param, ctx)
        if not 0 <= share <= _WHOLE:
            self.fail(f"{value} is out of range; write a percentage from 0 to 100, such as 45", param, ctx)
        return share


class Length(click.ParamType[timedelta]):
    """A length of time such as 10s or 1h30m; 0s for none."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        try:
            length = parse_duration(str(value)).delta
        except ValueError:
            length = None
        if length is None or length < timedelta(0):
            self.fail(f"{value!r} is not a length of time; write something like 3m, or 0s for none", param, ctx)
        return length


class Days(click.ParamType[timedelta]):
    """A length of time such as 7d or 36h."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        text = str(value)
        days = text.removesuffix("d")
        try:
            length = int(days) * _DAY if text.endswith("d") and days.isascii() else parse_duration(text).delta
        except (ValueError, OverflowError):
            length = None
        if length is None or not timedelta(0) < length <= _LONGEST:
            self.fail(f"{value!r} is not a length of time up to 366d; write something like 7d or 36h", param, ctx)
        return length


class Seed(click.ParamType[int]):
    """A seed of random choices."""

    name = "seed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            seed = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number", param, ctx)
        if abs(seed) > MOST_SEED:
            self.fail(f"{value} is too large; write a whole number of at most 18 digits", param, ctx)
        return seed


def _unknown(value: Any, words: Iterable[str]) -> str:
    known = sorted(words)
    return f"{value!r} is not one of {', '.join(known)}{suggestion(str(value), known)}"
