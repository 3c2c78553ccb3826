"""Durations as Kubernetes and Karpenter write them: `30s`, `1h30m`, `Never`."""

import re
from datetime import timedelta
from functools import lru_cache
from typing import Final

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(r"([0-9]+)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_LARGEST: Final = 2**63 - 1
_LONGEST: Final = 100


class Duration:
    """A length of time in nanoseconds, or `Never`; immutable and hashable."""

    __slots__ = ("delta", "nanos")
    nanos: int | None
    delta: timedelta | None
    """The same as a timedelta; `Never` is None."""

    def __init__(self, nanos: int | None) -> None:
        object.__setattr__(self, "nanos", nanos)
        object.__setattr__(self, "delta", None if nanos is None else timedelta(microseconds=nanos // 1000))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name}")

    def __reduce__(self) -> tuple[type["Duration"], tuple[int | None]]:
        return Duration, (self.nanos,)

    @property
    def never(self) -> bool:
        """Whether this stands for an event that does not come."""
        return self.nanos is None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"

    def __str__(self) -> str:
        if self.nanos is None:
            return "Never"
        text, rest = "", abs(self.nanos)
        for unit in ("h", "m", "s", "ms", "us", "ns"):
            count, rest = divmod(rest, _UNITS[unit])
            if count:
                text += f"{count}{unit}"
        return ("-" if self.nanos < 0 else "") + (text or "0s")


NEVER: Final = Duration(None)


@lru_cache(maxsize=4096)
def parse_duration(text: str) -> Duration:
    """Read a duration of one or several number-and-unit groups, or `Never`."""
    if text == "Never":
        return NEVER
    body = text[1:] if text[:1] in ("+", "-") else text
    nanos, position = 0, 0
    for match in _PART.finditer(body[:_LONGEST]):
        if match.start() != position:
            break
        fraction = match[2] or ""
        nanos += int(match[1] + fraction) * _UNITS[match[3]] // 10 ** len(fraction)
        position = match.end()
    if (position != len(body) or not body) and body != "0":
        message = f"{text[:40]!r} is not a duration; write numbers with units h, m, s such as 30s or 1h30m, or Never"
        raise ValueError(message)
    if nanos > _LARGEST:
        raise ValueError(f"{text[:40]!r} is longer than any duration may be (about 292 years)")
    return Duration(-nanos if text.startswith("-") else nanos)


def go_duration(length: timedelta) -> str:
    """A length as Go prints it: `1m0s`, `1h0m0s`, `45s`; parts of a second are cut off."""
    whole = int(length.total_seconds())
    hours, minutes, seconds = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
