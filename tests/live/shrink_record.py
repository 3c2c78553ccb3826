"""What becomes of a live cluster that shrinks: when it rests, and which launches were for minutes only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

SHORT_LIVED = 600.0
"""Seconds: nodes that go sooner were launched for nothing."""


@dataclass
class ShrinkRecord:
    """Is told again and again what there is; all times are seconds of one clock."""

    began: float
    first: frozenset[str]
    """The NodeClaims from before."""
    pods_left: int
    """How many pods there are once the shrink itself has happened; who leaves from then on is evicted."""
    quiet: float
    """Without a change for so long, a cluster has settled."""
    longest: float
    """How long it may take to settle."""
    settled: float | None = None
    """When the last change was before it first settled, since the beginning; None: it has not settled."""
    launched: dict[str, float] = field(default_factory=dict)
    evicted: set[str] = field(default_factory=set)
    _gone: set[str] = field(default_factory=set)
    _pods: Mapping[str, str] = field(default_factory=dict)
    _shrunk: bool = False
    _state: object = None
    _changed: float = 0.0
    _now: float = 0.0

    def look(self, now: float, claims: Mapping[str, bool], running: Mapping[str, str], pods: int) -> None:
        """`claims`: whether each is being deleted; `running`: the nodes of pods that run; `pods`: how many in all."""
        self._now = now
        for name in claims.keys() - self.first - self.launched.keys():
            self.launched[name] = now
        self._gone |= {name for name, at in self.launched.items() if name not in claims and now - at < SHORT_LIVED}
        if self._shrunk:
            self.evicted |= self._pods.keys() - running.keys()
        self._shrunk = self._shrunk or pods == self.pods_left
        self._pods = dict(running)
        if (state := (dict(claims), self._pods)) != self._state:
            self._state, self._changed = state, now
        elif self.settled is None and now - self._changed >= self.quiet:
            self.settled = self._changed - self.began

    @property
    def short_lived(self) -> int | None:
        """How many launched nodes went within `SHORT_LIVED`; None: nobody has watched them for so long."""
        return len(self._gone) if self._watched else None

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to watch, or the time is over."""
        passed = self._now - self.began
        if self.settled is None:
            return passed >= self.longest
        return self._watched or passed >= self.longest + SHORT_LIVED + self.quiet

    @property
    def _watched(self) -> bool:
        """Whether it has settled, and the last launch is longer ago than it would have to last."""
        if self.settled is None:
            return False
        return all(self._now - at >= SHORT_LIVED + self.quiet for at in self.launched.values())
