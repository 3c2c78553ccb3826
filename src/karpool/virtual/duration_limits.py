"""How long the durations of a scenario may be: types of fields carry limits, and `duration_flaws` checks them."""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, get_args

import msgspec

from karpool.wire.duration import Duration, parse_duration
from karpool.wire.fields import Path, written_path
from karpool.wire.objects import Wire
from karpool.wire.problems import Flaw


class Limits(NamedTuple):
    """The shortest duration that makes sense, and whether `Never` does."""

    least: Duration
    never: bool = False

    def allow(self, length: Duration) -> bool:
        return self.never if length.nanos is None else length.nanos >= (self.least.nanos or 0)

    def __str__(self) -> str:
        return f"{self.least} or more, or Never" if self.never else f"{self.least} or more"


# Anything more frequent than once a second would make a run of hours take too long.
Interval = Annotated[Duration, Limits(parse_duration("1s"))]
Delay = Annotated[Duration, Limits(parse_duration("0s"))]
Stretch = Annotated[Duration, Limits(parse_duration("1s"), never=True)]
"""How long something lasts; with `Never` it does not end."""


def duration_flaws(value: Any, kind: Any = None, path: Path = ()) -> Iterator[Flaw]:
    """Durations in a value, at any depth, that are not within the limits of their fields."""
    if isinstance(value, Duration):
        limits = limits_of(kind)
        if limits is not None and not limits.allow(value):
            yield Flaw(written_path(path), "Duration", f"{value} is not allowed here; write {limits}")
    elif isinstance(value, Wire):
        for field in msgspec.structs.fields(value):
            yield from duration_flaws(getattr(value, field.name), field.type, (*path, field.encode_name))
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from duration_flaws(item, kind, (*path, number))


def limits_of(kind: Any) -> Limits | None:
    """The limits in a field's type: of a duration, of one that may be missing, or of a list of them."""
    for part in get_args(kind):
        limits = part if isinstance(part, Limits) else limits_of(part)
        if limits is not None:
            return limits
    return None
