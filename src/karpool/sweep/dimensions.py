"""What is tried: each dimension is a knob of a what-if and the values that it takes."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import msgspec

from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.pool_knobs import (
    BalancedK,
    Budgets,
    ConsolidateAfter,
    ConsolidationPolicy,
    GracePeriod,
    MinimumSavings,
    PoolKnob,
    PoolWeight,
)
from karpool.disruption.what_if.setting_knobs import (
    EvictionPrice,
    NodeFee,
    Ordering,
    Partitioning,
    SpotToSpot,
    WeightsMode,
)
from karpool.disruption.what_if.type_knobs import AddTypes, ForbidTypes, OnlyTypes, TypesKnob
from karpool.wire.duration import Duration, parse_duration
from karpool.wire.objects import decode_value
from karpool.wire.problems import InputError, suggestion

Setting = tuple[tuple[str, str], ...]
"""A value for each dimension, both as they are written."""
TODAY: Final = "today"
"""The value that leaves everything as it is."""
_KNOBS: Final[tuple[type[Knob], ...]] = (
    ConsolidateAfter,
    GracePeriod,
    ConsolidationPolicy,
    BalancedK,
    Budgets,
    MinimumSavings,
    PoolWeight,
    OnlyTypes,
    ForbidTypes,
    AddTypes,
    NodeFee,
    EvictionPrice,
    SpotToSpot,
    Partitioning,
    Ordering,
    WeightsMode,
)
NAMES: Final[Mapping[str, type[Knob]]] = {str(kind.__struct_config__.tag): kind for kind in _KNOBS}
_RANGE: Final = re.compile(r"(?P<low>[^.]+(?:\.\d+)?)\.\.(?P<high>.+)")
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
        raise _wrong(f"{text!r} should be NAME=V1,V2 such as consolidateAfter=30s,5m,30m")
    span = _span(name, written)
    values = () if span is not None else tuple(dict.fromkeys(part.strip() for part in written.split(",")))
    if len(values) > _MOST_VALUES:
        raise _wrong(f"{name} has {len(values)} values; at most {_MOST_VALUES} are possible")
    for value in values or (span.write(span.low), span.write(span.high)) if span is not None else values:
        knob_of(name, value)
    return Dimension(name, values, span)


def knobs_of(setting: Setting) -> tuple[Knob, ...]:
    """The knobs that make a cluster follow a setting."""
    return tuple(knob for name, value in setting if (knob := knob_of(name, value)) is not None)


def knob_of(name: str, value: str) -> Knob | None:
    """The knob for a value; None for what is so today."""
    bare, at, pool = name.partition("@")
    kind = NAMES.get(bare)
    if kind is None:
        raise _wrong(f"there is no setting {bare!r}; there are {', '.join(NAMES)}{suggestion(bare, NAMES)}")
    if at and not issubclass(kind, PoolKnob):
        raise _wrong(f"{bare} is not a NodePool's; leave @{pool} out")
    if value == TODAY:
        return None
    fields: dict[str, Any] = {"nodePool": pool} if at else {}
    if issubclass(kind, TypesKnob):
        fields["instanceTypes"] = value.split("+")
    else:
        fields["value"] = value
    try:
        return msgspec.convert({"knob": bare, **fields}, type=kind, dec_hook=decode_value, strict=False)
    except msgspec.ValidationError as error:
        raise _wrong(f"{name}={value}: {error}") from None


def _span(name: str, written: str) -> Span | None:
    found = _RANGE.fullmatch(written)
    if found is None:
        return None
    try:
        return _span_between(found["low"], found["high"])
    except ValueError:
        message = f"{name}: {written!r} is not a range; write two durations, numbers or percentages such as 30s..2h"
        raise _wrong(message) from None


def _span_between(low: str, high: str) -> Span:
    write: Callable[[float], str]
    if low.endswith("%") and high.endswith("%"):
        least, most, write = float(low[:-1]), float(high[:-1]), _percent
    elif low[-1].isdigit() and high[-1].isdigit():
        least, most, write = float(low), float(high), _number
    else:
        least, most, write = _seconds(low), _seconds(high), _duration
    if not math.isfinite(most) or not 0 <= least < most:
        raise ValueError(low, high)
    return Span(least, most, write, logarithmic=write is _duration and least > 0)


def _seconds(text: str) -> float:
    nanos = parse_duration(text).nanos
    if nanos is None:
        raise ValueError(text)
    return nanos / _SECOND


def _duration(value: float) -> str:
    return str(Duration(round(value) * _SECOND))


def _percent(value: float) -> str:
    return f"{round(value)}%"


def _number(value: float) -> str:
    return f"{value:.3g}"


def _wrong(message: str) -> InputError:
    return InputError.at("--set", message)
