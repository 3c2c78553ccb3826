"""Schedules of budgets: five cron fields, or `@daily` and its like, in UTC.

The fields are read here, strictly, and handed to cronsim as plain lists of numbers. So its extensions (`L`, `W`, `#`,
weekday 7, seconds) never reach it, and steps and open days mean what they mean to Kubernetes controllers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from cronsim import CronSim

_MACROS: Final = {
    "@annually": "0 0 1 1 *",
    "@yearly": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_NUMBER: Final = re.compile(r"\d{1,4}", re.ASCII)
_LONGEST_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True)
class _Field:
    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()

    def read(self, text: str) -> str:
        """The field as `*` or as a list of numbers."""
        chosen: set[int] = set()
        every = False
        for term in text.split(","):
            numbers = self._term(term)
            chosen.update(numbers)
            every |= term.partition("/")[0] in ("*", "?") and numbers.step == 1
        return "*" if every else ",".join(map(str, sorted(chosen)))

    def _term(self, term: str) -> range:
        base, slash, step_text = term.partition("/")
        step = self._digits(step_text, term) if slash else 1
        if step < 1:
            raise ValueError(f"its {self.name} field steps by 0 in {term!r}")
        if base in ("*", "?"):
            return range(self.low, self.high + 1, step)
        first_text, dash, last_text = base.partition("-")
        first = self._number(first_text, term)
        # A single number with a step runs on to the end of the field.
        last = self._number(last_text, term) if dash else self.high if slash else first
        if last < first:
            raise ValueError(f"the range {term!r} of its {self.name} field runs backwards")
        return range(first, last + 1, step)

    def _number(self, text: str, term: str) -> int:
        if text.lower() in self.words:
            return self.low + self.words.index(text.lower())
        number = self._digits(text, term)
        if not self.low <= number <= self.high:
            raise ValueError(f"{number} in its {self.name} field is not within {self.low} to {self.high}")
        return number

    def _digits(self, text: str, term: str) -> int:
        if not _NUMBER.fullmatch(text):
            raise ValueError(f"its {self.name} field does not understand {term[:20]!r}")
        return int(text)


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day-of-month", 1, 31),
    _Field("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    _Field("day-of-week", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)


@dataclass(frozen=True, slots=True)
class Schedule:
    text: str
    fields: str

    def next_after(self, moment: datetime) -> datetime:
        """The first hit strictly after a moment."""
        return next(CronSim(self.fields, moment.astimezone(UTC)))

    def last_until(self, moment: datetime) -> datetime:
        """The last hit that is not after a moment."""
        second = moment.astimezone(UTC).replace(microsecond=0)
        return next(CronSim(self.fields, second + timedelta(seconds=1), reverse=True))

    def active(self, now: datetime, duration: timedelta) -> bool:
        """Whether a hit has happened and `duration` has not passed since."""
        return self.next_after(now - duration) <= now

    def windows(self, start: datetime, end: datetime, duration: timedelta) -> Iterator[tuple[datetime, datetime]]:
        """The stretches between start and end in which the schedule is active; those that touch are one."""
        if duration <= timedelta(0):
            return
        opened = self.next_after(start - duration)
        while opened < end:
            closed = opened + duration
            while closed < end and (longer := self.last_until(closed) + duration) > closed:
                closed = longer
            yield opened, closed
            opened = self.next_after(closed)


@lru_cache(maxsize=1024)
def parse_schedule(text: str) -> Schedule:
    """Read five cron fields or a name such as `@daily`; a ValueError says what is wrong."""
    parts = _MACROS.get(text.strip(), text).split()
    if len(parts) != len(_FIELDS):
        known = ", ".join(_MACROS)
        raise ValueError(
            f"{text[:60]!r} is not a schedule: expected five fields (minute, hour, day of month, month, day of week) "
            f"in UTC, or one of {known}"
        )
    try:
        fields = [field.read(part) for field, part in zip(_FIELDS, parts, strict=True)]
        _must_come(*fields[2:])
    except ValueError as problem:
        raise ValueError(f"{text[:60]!r} is not a schedule: {problem}") from None
    return Schedule(text, " ".join(fields))


def _must_come(days: str, months: str, weekdays: str) -> None:
    """Refuse dates that no year has; with a day of the week given as well, either of the two is enough."""
    if weekdays != "*" or "*" in (days, months):
        return
    longest = max(_LONGEST_MONTHS[int(month) - 1] for month in months.split(","))
    first = min(map(int, days.split(",")))
    if first > longest:
        raise ValueError(f"the months it names never have a day {first}")
