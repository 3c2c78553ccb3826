"""A process on the virtual cluster: with caches and a clock of its own, it can die, hang and be cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from tests.robustness.recorder import HistoryRecorder
from tests.robustness.virtual_clock import DoubtfulClock, TrueClock
from tests.robustness.watches import Watches

if TYPE_CHECKING:
    from tests.robustness.injector import FaultInjector

RESTART: Final = 3.0
"""How long a killed process takes to be back, in seconds."""


class Process:
    """What faults can do to every process; what it does by itself is up to those that derive from it."""

    name: str

    def __init__(self, number: int, recorder: HistoryRecorder, injector: FaultInjector) -> None:
        self.number = number
        self.recorder = recorder
        self.injector = injector
        self.queue = recorder.queue
        self.watches = Watches(recorder, self.take_in)
        self.runs = False
        """Whether there is a process."""
        self.life = 0
        self.frozen = False
        self.disconnected = 0
        """How many faults keep it from hearing of changes, for so long that it knows."""
        self.doubted: dict[str, str] = {}

    # -- what a process does -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start with nothing but what the server says."""
        self.life += 1
        self.runs = True
        self.disconnected = 0
        self.doubted = {}
        self.identity = f"{self.name}-{self.number}-{self.life}"
        self.clock = DoubtfulClock(self.queue) if self.injector.skews else TrueClock(self.queue)
        self.hear_time()

    def ended(self) -> None:
        """Forget what was under way: the process is gone."""

    def thawed(self) -> None:
        """Go on after standing still."""

    def step_down(self) -> None:
        """Stop in good order."""

    def follow(self) -> None:
        """Start or stop working as connections allow."""

    def take_in(self) -> None:
        """Take in events that have arrived."""

    # -- life and death ------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """End at once, without a goodbye; another process starts soon."""
        if not self.runs:
            return
        self.runs = False
        self.life += 1
        self.ended()
        self.watches.close()
        self.queue.after(RESTART, self.start)

    def freeze(self, seconds: float) -> None:
        """Stand still, as a process does that gets no processor."""
        self.frozen = True
        self.queue.after(seconds, self._thaw)

    def _thaw(self) -> None:
        self.frozen = False
        if self.runs:
            self.thawed()

    def later(self, delay: float, step: Callable[[], object]) -> None:
        """Go on after a delay, in this life only; a process that stands still does so later."""
        self.queue.after(delay, partial(self._later, self.life, step))

    def _later(self, life: int, step: Callable[[], object]) -> None:
        if life != self.life:
            return
        if self.frozen:
            self.queue.after(1.0, partial(self._later, life, step))
        else:
            step()

    # -- the clock -----------------------------------------------------------------------------------------------

    @property
    def moment(self) -> datetime:
        return self.clock.moment

    @property
    def earliest(self) -> datetime:
        return self.clock.earliest

    @property
    def latest(self) -> datetime:
        return self.clock.latest

    @property
    def doubt(self) -> str:
        return self.clock.doubt

    def hear_time(self) -> None:
        """Take note of the date of an answer."""
        self.clock.answered(self.injector.ahead(self))

    def set_clock(self, ahead: float) -> None:
        self.clock.set_local(ahead)

    # -- watches -------------------------------------------------------------------------------------------------

    def doubt_watches(self, plurals: Iterable[str]) -> None:
        """Know that watches are silent and may be stalled."""
        self.doubted.update(dict.fromkeys(plurals, "its watch is silent"))

    def trust_watches(self, plurals: Iterable[str]) -> None:
        for plural in plurals:
            self.doubted.pop(plural, None)

    def disconnect(self) -> None:
        self.disconnected += 1
        self.follow()

    def reconnect(self, kinds: tuple[str, ...], *, gone: bool) -> None:
        """Watch again: from where the watch was, or with everything listed anew."""
        self.disconnected = max(0, self.disconnected - 1)
        if self.runs and gone:
            for kind in kinds:
                self.watches.list_again(kind)
        self.follow()
