"""How many replicas there should be over time: hours, ramps, bursts and noise."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from random import Random
from typing import Annotated, Final, Literal

import msgspec

from karpool.virtual.duration_limits import Delay, Interval, Stretch
from karpool.wire.duration import Duration, parse_duration
from karpool.wire.objects import Wire

DAY: Final = 86400.0
Share = Annotated[float, msgspec.Meta(ge=0.0)]
ClockTime = Annotated[str, msgspec.Meta(pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$")]
AtLeastOne: Final = msgspec.Meta(min_length=1)


class ScenarioPart(Wire, forbid_unknown_fields=True):
    """Base of everything in a scenario; unknown fields are refused."""


def seconds(length: Duration) -> float:
    """A duration in seconds; `Never` has no end."""
    return math.inf if length.nanos is None else length.nanos / 1e9


class Hour(ScenarioPart):
    """The value at a time of every day (UTC)."""

    at: ClockTime
    value: Share


class CurveStep(ScenarioPart):
    after: Delay
    value: Share


class Bursts(ScenarioPart):
    every: Interval
    length: Stretch
    height: Share


class Noise(ScenarioPart):
    """The standard deviation of the value, as a share of itself, and how often it changes."""

    share: Share
    every: Interval = parse_duration("5m")


class Curve(ScenarioPart):
    """A value over time.

    Hours of the day are joined by straight ramps, or hold until the next one if `shape` is `steps`; steps since the
    start replace them from their time on. Bursts and noise come on top.
    """

    base: Share = 1.0
    hours: Annotated[tuple[Hour, ...], AtLeastOne] = ()
    steps: Annotated[tuple[CurveStep, ...], AtLeastOne] = ()
    shape: Literal["ramps", "steps"] = "ramps"
    bursts: Bursts | None = None
    noise: Noise | None = None
    least: Share = 0.0
    every: Interval = parse_duration("1m")
    """How often the replicas follow the curve, as with a horizontal pod autoscaler."""


class CurveEvaluator:
    """Evaluates a curve from a start on; times must not go back."""

    def __init__(self, curve: Curve, start: datetime, random: Random) -> None:
        self.curve = curve
        self._midnight = start.hour * 3600.0 + start.minute * 60.0 + start.second
        self._hours = sorted((of_day(hour.at), hour.value) for hour in curve.hours)
        self._steps = sorted((seconds(step.after), step.value) for step in curve.steps)
        self._random = random
        self._bursts: list[float] = []
        self._next_burst = 0.0
        self._next_noise = 0.0
        self._factor = 1.0

    def value(self, time: float) -> float:
        """The curve so many seconds after the start."""
        plain = self._plain(time)
        return max(self.curve.least, plain * self._noise(time) + self._burst_height(time))

    def whole(self, time: float) -> int:
        return math.floor(self.value(time) + 0.5)

    def _plain(self, time: float) -> float:
        at = bisect_right(self._steps, time, key=lambda step: step[0])
        if at:
            return self._steps[at - 1][1]
        if not self._hours:
            return self.curve.base
        return _over_the_day(self._hours, (time + self._midnight) % DAY, ramps=self.curve.shape == "ramps")

    def _noise(self, time: float) -> float:
        noise = self.curve.noise
        if noise is None:
            return 1.0
        while time >= self._next_noise:
            self._factor = max(0.0, self._random.gauss(1.0, noise.share))
            self._next_noise += seconds(noise.every)
        return self._factor

    def _burst_height(self, time: float) -> float:
        bursts = self.curve.bursts
        if bursts is None:
            return 0.0
        while self._next_burst <= time:
            if self._next_burst:
                self._bursts.append(self._next_burst + seconds(bursts.length))
            self._next_burst += max(1.0, self._random.expovariate(1.0 / seconds(bursts.every)))
        self._bursts = [end for end in self._bursts if end > time]
        return bursts.height * len(self._bursts)


def of_day(text: ClockTime) -> float:
    """A time of day in seconds since midnight."""
    hour, _, minute = text.partition(":")
    return int(hour) * 3600.0 + int(minute) * 60.0


def _over_the_day(hours: Sequence[tuple[float, float]], time: float, *, ramps: bool) -> float:
    at = bisect_right(hours, time, key=lambda hour: hour[0])
    since, before = hours[at - 1]
    if not ramps:
        return before
    until, after = hours[at % len(hours)]
    whole = (until - since) % DAY or DAY
    return before + (after - before) * ((time - since) % DAY) / whole
