"""The time of day by the clocks of the API servers, and whether it can be trusted.

Ages and timeouts compare the time now with timestamps that servers wrote. No single clock is believed: neither the
local one, which may be wrong or be set, nor one `Date` of one response. The time counts steadily from a moment on which
clocks agreed; the median of the last responses draws it along slowly, and only a lasting majority makes it jump.

Clocks that agree are seconds apart all the same: `earliest` and `latest` are the ends of what the time may be. While
responses disagree, the time is in doubt: `doubt` says why, and `earliest` stands still, so that whatever becomes
allowed by passing time does not.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from statistics import median_low
from typing import Final

import structlog

from karpool.kube.clock import steady_seconds

_log = structlog.get_logger()
TOLERANCE: Final = 15.0
"""By how many seconds clocks may differ and still agree: those of several servers do."""
SLEW: Final = 0.01
"""How fast the time is drawn to what servers say, in seconds per second."""
MEMORY: Final = 120.0
"""How long a response counts, in seconds before the newest one."""
CORROBORATED: Final = 10.0
"""For how many seconds all responses must say the same before another time is believed that the local clock has too."""
CONTRADICTED: Final = 600.0
"""The same for a time that the local clock contradicts, later or earlier: by an earlier one, windows that forbid begin
late."""
_MOST_TURNS: Final = 15
_FEWEST_TURNS: Final = 5
_TURN: Final = 1.0
"""Responses within so many seconds count as one, so that a burst from one server does not outvote the others."""
_MOST_IN_A_TURN: Final = 31
_FRACTION: Final = 1.0
"""By how many seconds a clock may be ahead of the `Date` that it tells, which has whole seconds."""
_LONGEST_SLEW: Final = 60.0
_FORMAT: Final = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True, slots=True)
class _Answer:
    """How far a server's clock was ahead of the steady one, when the response came: not less, and not more."""

    at: float
    low: float
    high: float

    def differs(self, offset: float) -> float:
        """By how much it is ahead of an offset; negative if it is behind, zero as far as can be told."""
        return max(0.0, self.low - offset) + min(0.0, self.high - offset)


@dataclass(slots=True)
class _Turn:
    """The responses of about a second; the one in the middle speaks for them."""

    answers: list[_Answer]

    @property
    def at(self) -> float:
        return self.answers[0].at

    @property
    def full(self) -> bool:
        return len(self.answers) >= _MOST_IN_A_TURN

    def answer(self) -> _Answer:
        middle = median_low([entry.low + entry.high for entry in self.answers])
        return next(entry for entry in self.answers if entry.low + entry.high == middle)


@dataclass(frozen=True, slots=True)
class _Belief:
    """What readers see; replaced as a whole, so that another thread sees no half of it."""

    offset: float
    behind: float = 0.0
    """By how many seconds the slowest server that agrees is behind."""
    ahead: float = _FRACTION
    """By how many seconds the fastest server that agrees may be ahead."""
    doubt: str = ""
    sure: float | None = None
    """While in doubt: the latest time that was certain."""


@dataclass(eq=False)
class ServerTime:
    """The time now, when called; `earliest` is for what passing time allows, `latest` for what it forbids."""

    wall: Callable[[], datetime]
    steady: Callable[[], float] = steady_seconds
    _turns: deque[_Turn] = field(default_factory=lambda: deque(maxlen=_MOST_TURNS), init=False)
    _dissent: list[_Answer] = field(default_factory=list, init=False)
    """Answers of the turns since the last one that agreed: the first, and the last ones."""
    _dissents: int = field(default=0, init=False)
    _agreed: bool = field(default=False, init=False)
    """Whether a server has ever agreed with the time that is believed."""
    _slewed: float | None = field(default=None, init=False)
    """When the time was last drawn along."""

    def __post_init__(self) -> None:
        offset = self._wall_offset()
        self._belief = _Belief(offset, doubt="no API server has told the time yet", sure=offset + self.steady())

    def __call__(self) -> datetime:
        return _moment(self._belief.offset + self.steady())

    @property
    def earliest(self) -> datetime:
        """The earliest time that it can be; it stands still while the time is in doubt."""
        belief = self._belief
        return _moment(belief.offset - belief.behind + self.steady() if belief.sure is None else belief.sure)

    @property
    def latest(self) -> datetime:
        """The latest time that it can be, by the servers that agree."""
        belief = self._belief
        return _moment(belief.offset + belief.ahead + self.steady())

    @property
    def doubt(self) -> str:
        """Why the time cannot be trusted; empty if it can."""
        return self._belief.doubt

    def observe(self, date: str, seconds: float) -> None:
        """Take note of the `Date` of a response that took so many seconds."""
        try:
            said = parsedate_to_datetime(date).astimezone(UTC).timestamp()
        except (ValueError, OverflowError):
            return
        now = self.steady()
        same_turn = bool(self._turns) and now - self._turns[-1].at < _TURN
        if same_turn and self._turns[-1].full:
            return  # a busy process hears thousands of them, and enough is enough
        # Dates have whole seconds, and it is not known when on its way the response was written.
        answer = _Answer(now, said - now, said + 1.0 - (now - seconds))
        if same_turn:
            self._turns[-1].answers.append(answer)
        else:
            self._finish_turn()
            self._turns.append(_Turn([answer]))
        self._judge(now)

    # -- judgement -----------------------------------------------------------------------------------------------

    def _finish_turn(self) -> None:
        """Count the last turn, which nothing is added to any more, among those that agree or those that do not."""
        if not self._turns:
            return
        answer = self._turns[-1].answer()
        if _agrees(answer, self._belief.offset):
            self._dissent, self._dissents = [], 0
            return
        if self._dissent and not _unanimous([*self._dissent, answer]):
            self._dissent, self._dissents = [], 0
        self._dissent = [*self._dissent[:1], *self._dissent[1:][-_FEWEST_TURNS:], answer]
        self._dissents += 1

    def _judge(self, now: float) -> None:
        believed = self._corroborated()
        if believed is not None:
            _log.warning(
                "the time of the API servers differs from what was believed, and is used now",
                before=str(self()),
                after=str(_moment(believed + now)),
            )
            first = self._dissent[0].at
            self._turns = deque((turn for turn in self._turns if turn.at >= first), maxlen=_MOST_TURNS)
            self._dissent, self._dissents, self._agreed, self._slewed = [], 0, True, now
            self._belief = _Belief(believed)
        answers = [turn.answer() for turn in self._turns if now - turn.at <= MEMORY]
        offset = self._belief.offset
        agreeing = [answer for answer in answers if _agrees(answer, offset)]
        self._agreed = self._agreed or bool(agreeing)
        doubt = self._doubt(answers, agreeing)
        if doubt:
            self._doubted(doubt, answers, now)
            return
        offset = self._slew(offset, agreeing, now)
        # The middle of a second speaks for it, but each server of it may be the one that has the time.
        heard = [answer for turn in self._turns if now - turn.at <= MEMORY for answer in turn.answers]
        agreeing = [answer for answer in heard if _agrees(answer, offset)]
        behind = -min((answer.differs(offset) for answer in agreeing), default=0.0)
        if self._belief.doubt:
            _log.info("the time is certain again", now=str(_moment(offset + now)))
        self._belief = _Belief(offset, behind=max(0.0, behind), ahead=_ahead(agreeing, offset))

    def _doubt(self, answers: Sequence[_Answer], agreeing: Sequence[_Answer]) -> str:
        """Why the time is in doubt: no server ever agreed, the last two do not, or more than a third does not."""
        offset = self._belief.offset
        last_two = answers[-2:]
        outvoted = 3 * len(agreeing) < 2 * len(answers)
        if self._agreed and not outvoted and any(_agrees(answer, offset) for answer in last_two):
            return ""
        odd = next((answer for answer in reversed(answers) if not _agrees(answer, offset)), None)
        if odd is None:
            return ""
        said, expected = _moment(odd.low + odd.at), _moment(offset + odd.at)
        return f"an API server says that it is {said:{_FORMAT}}, and it should be {expected:{_FORMAT}}"

    def _doubted(self, doubt: str, answers: Sequence[_Answer], now: float) -> None:
        """Keep the time that was certain; one that a server has not reached yet is not."""
        before = self._belief
        sure = before.offset - before.behind + now if before.sure is None else before.sure
        if not before.doubt:
            _log.warning("the time is in doubt", why=doubt)
        slowest = min(answer.differs(before.offset) for answer in answers)
        sure = min(sure, before.offset + slowest + now)
        self._belief = _Belief(before.offset, ahead=before.ahead, doubt=doubt, sure=sure)

    def _corroborated(self) -> float | None:
        """What servers have said with one voice for so long that it is believed."""
        if self._dissents < _FEWEST_TURNS:
            return None
        first, last = self._dissent[0], self._dissent[-1]
        offset = _middle(self._dissent)
        # At the start only the local clock speaks against the servers, and an earlier time lets nothing expire.
        first_time = not self._agreed and offset < self._belief.offset
        alike = abs(self._wall_offset() - offset) <= TOLERANCE
        needed = CORROBORATED if alike or first_time else CONTRADICTED
        return offset if last.at - first.at >= needed else None

    def _slew(self, offset: float, agreeing: Sequence[_Answer], now: float) -> float:
        """Draw the time to the median of what servers say, as fast as it may."""
        wanted = median_low(answer.differs(offset) for answer in agreeing)
        most = 0.0 if self._slewed is None else SLEW * min(now - self._slewed, _LONGEST_SLEW)
        self._slewed = now
        return offset + max(-most, min(most, wanted))

    def _wall_offset(self) -> float:
        return self.wall().timestamp() - self.steady()


def _agrees(answer: _Answer, offset: float) -> bool:
    return abs(answer.differs(offset)) <= TOLERANCE


def _ahead(answers: Sequence[_Answer], offset: float) -> float:
    """By how many seconds the fastest of the servers may be ahead of an offset."""
    return max((answer.low - offset for answer in answers if answer.low > offset), default=0.0) + _FRACTION


def _unanimous(answers: Sequence[_Answer]) -> bool:
    return max(answer.low for answer in answers) - min(answer.high for answer in answers) <= TOLERANCE


def _middle(answers: Sequence[_Answer]) -> float:
    """An offset that agrees with all, if there is one."""
    low, high = max(answer.low for answer in answers), min(answer.high for answer in answers)
    return (low + high) / 2


def _moment(timestamp: float) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=timestamp)
