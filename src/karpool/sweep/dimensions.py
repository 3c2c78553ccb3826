"""What is tried: each dimension is a knob of a what-if and the values that it takes."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Final

from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.pool_knobs import (
    BalancedK,
    Budgets,
    ConsolidateAfter,
    GracePeriod,
    MinimumSavingsKnob,
    PoolWeight,
)
from karpool.disruption.what_if.setting_knobs import EvictionPriceKnob, NodeFee
from karpool.sweep.values import kind_of, knob_of, refuse_value, wrong
from karpool.wire.duration import Duration, parse_duration

Setting = tuple[tuple[str, str], ...]
"""A value for each dimension, both as they are written."""
_RANGE: Final = re.compile(r"(?P<low>.+?)\.\.(?P<high>.+)")
_SECOND: Final = 10**9
_MOST_VALUES: Final = 1000


@dataclass(frozen=True, slots=True)
class Span:
    """All values between two: durations in whole seconds, percentages, or numbers."""

    low: float
    high: float
    write: Callable[[float], str]
    logarithmic: bool = False

    def drawn(self, random: Random) -> str:
        """One value, as it is written."""
        if self.logarithmic:
            return self.write(math.exp(random.uniform(math.log(self.low), math.log(self.high))))
        return self.write(random.uniform(self.low, self.high))


@dataclass(frozen=True, slots=True)
class Dimension:
    name: str
    values: tuple[str, ...] = ()
    span: Span | None = None

    def drawn(self, random: Random) -> str:
        """One value by chance."""
        return random.choice(self.values) if self.span is None else self.span.drawn(random)


def read_dimension(text: str) -> Dimension:
    """A dimension from `NAME=V1,V2` or `NAME=LOW..HIGH`; `NAME@POOL` is of one NodePool."""
    name, equals, written = text.partition("=")
    if not equals or not written:
        raise wrong(f"{text!r} should be NAME=V1,V2 such as consolidateAfter=30s,5m,30m")
    span = _span(name, written)
    values = () if span is not None else tuple(dict.fromkeys(part.strip() for part in written.split(",")))
    if "" in values:
        raise wrong(f"{text!r} has no value between two commas, or at an end")
    if len(values) > _MOST_VALUES:
        raise wrong(f"{name} has {len(values)} values; at most {_MOST_VALUES} are possible")
    for value in values if span is None else (span.write(span.low), span.write(span.high)):
        refuse_value(name, value)
    return Dimension(name, values, span)


def knobs_of(setting: Setting) -> tuple[Knob, ...]:
    """The knobs that make a cluster follow a setting."""
    return tuple(knob for name, value in setting if (knob := knob_of(name, value)) is not None)


def _span(name: str, written: str) -> Span | None:
    found = _RANGE.fullmatch(written)
    if found is None:
        return None
    units = _UNITS.get(kind_of(name))
    if units is None:
        raise wrong(f"{name} has no ranges, as {written!r} is one; list values, divided by commas")
    span = _span_between(found["low"], found["high"], units)
    if span is None:
        example = " or ".join(unit.example for unit in units)
        raise wrong(
            f"{name}: {written!r} is not a range from a lower value to a higher one; write one such as {example}"
        )
    return span


def _span_between(low: str, high: str, units: "tuple[_Unit, ...]") -> Span | None:
    for unit in units:
        try:
            least, most = unit.read(low), unit.read(high)
        except ValueError:
            continue
        if math.isfinite(most) and 0 <= least < most:
            return Span(least, most, unit.write, logarithmic=unit is _DURATIONS and least > 0)
    return None


def _seconds(text: str) -> float:
    nanos = parse_duration(text).nanos
    if nanos is None:
        raise ValueError(text)
    return nanos / _SECOND


def _duration(value: float) -> str:
    return str(Duration(round(value) * _SECOND))


def _percentage(text: str) -> float:
    """`0` is nothing in all units."""
    if text != "0" and not text.endswith("%"):
        raise ValueError(text)
    share = float(text.removesuffix("%"))
    if not share.is_integer():
        raise ValueError(text)
    return share


def _percent(value: float) -> str:
    return f"{round(value)}%"


def _number(value: float) -> str:
    return format(Decimal(f"{value:.3g}"), "f")


def _whole(value: float) -> str:
    return str(round(value))


@dataclass(frozen=True, slots=True)
class _Unit:
    """How the ends of a range are written, and what is between them."""

    read: Callable[[str], float]
    write: Callable[[float], str]
    example: str


_DURATIONS: Final = _Unit(_seconds, _duration, "30s..2h")
_PERCENTAGES: Final = _Unit(_percentage, _percent, "5%..50%")
_NUMBERS: Final = _Unit(float, _number, "0..0.05")
_WHOLE_NUMBERS: Final = _Unit(int, _whole, "1..20")
_UNITS: Final[Mapping[type[Knob], tuple[_Unit, ...]]] = {
    ConsolidateAfter: (_DURATIONS,),
    GracePeriod: (_DURATIONS,),
    Budgets: (_WHOLE_NUMBERS, _PERCENTAGES),
    MinimumSavingsKnob: (_NUMBERS, _PERCENTAGES),
    BalancedK: (_Unit(float, _number, "0.5..4"),),
    PoolWeight: (_WHOLE_NUMBERS,),
    NodeFee: (_NUMBERS,),
    EvictionPriceKnob: (_NUMBERS,),
}
"""What the values of a knob lie between; those that are words have no ranges."""
