"""Gangs take room as a whole or not at all.

Gangs that do not fit as a whole are held back, in the order in which they are served, so that what is left goes to
others. Of gangs that are alike, as those of one kind of Job are, one that does not fit speaks for all.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Final

from karpool.cluster.gangs import Gang
from karpool.cluster.snapshot import Snapshot

Attempt = Callable[[Sequence[int]], Collection[int]]
"""Places pods, by row, beside whatever else there is; the rows of those without a place."""
_Shape = tuple[int, tuple[tuple[int, int], ...]]
_NOBODY: Final[Mapping[int, str]] = {}


def held_back(snapshot: Snapshot, waiting: Sequence[int], attempt: Attempt) -> Mapping[int, str]:
    """Waiting pods, by row, that must not take room because their gang does not fit as a whole, and why."""
    pods = snapshot.pods
    gangs = snapshot.gangs.waiting(pods.objects, waiting, pods.on_nodes())
    return _Selection(snapshot, waiting, gangs, attempt).held() if gangs else _NOBODY


class _Selection:
    """Which gangs fit beside the pods that belong to none."""

    def __init__(self, snapshot: Snapshot, waiting: Sequence[int], gangs: Sequence[Gang], attempt: Attempt) -> None:
        self._snapshot = snapshot
        self._gangs = gangs
        self._attempt = attempt
        members = set(chain.from_iterable(gang.rows for gang in gangs))
        self._others = [row for row in waiting if row not in members]
        self._kept: list[Gang] = []
        self._refused: dict[_Shape, int] = {}
        self._held: dict[int, str] = {}

    def held(self) -> Mapping[int, str]:
        complete = [gang for gang in self._gangs if gang.missing <= len(gang.rows)]
        for gang in self._gangs:
            if gang.missing > len(gang.rows):
                self._hold(gang, None)
        if complete:
            self._add(complete)
        return self._held

    def _add(self, gangs: Sequence[Gang]) -> None:
        """Keep gangs that fit; halves of those that do not fit together are tried one after the other."""
        gangs = [gang for gang in gangs if not self._refused_likewise(gang)]
        if not gangs:
            return
        tried = [*self._kept, *gangs]
        homeless = set(self._attempt([*self._others, *chain.from_iterable(gang.rows for gang in tried)]))
        placed = [len(gang.rows) - len(homeless.intersection(gang.rows)) for gang in tried]
        if all(number >= gang.missing for number, gang in zip(placed, tried, strict=True)):
            self._kept = tried
        elif len(gangs) == 1:
            self._refused[self._shape(gangs[0])] = placed[-1]
            self._hold(gangs[0], placed[-1])
        else:
            middle = len(gangs) // 2
            self._add(gangs[:middle])
            self._add(gangs[middle:])

    def _refused_likewise(self, gang: Gang) -> bool:
        """Hold back a gang that asks for what another one did not get."""
        placed = self._refused.get(self._shape(gang))
        if placed is not None:
            self._hold(gang, placed)
        return placed is not None

    def _shape(self, gang: Gang) -> _Shape:
        """What two gangs share that ask for the same."""
        classes = Counter(self._snapshot.pods.class_of[list(gang.rows)].tolist())
        return gang.missing, tuple(sorted(classes.items()))

    def _hold(self, gang: Gang, placed: int | None) -> None:
        self._held.update(dict.fromkeys(gang.rows, _why(gang, placed)))


def _why(gang: Gang, placed: int | None) -> str:
    """Why a gang is held back; `placed`: how many of its pods would have found room."""
    runs = f"its gang {gang.id} runs only together"
    if placed is None:
        here = f", and {gang.on_nodes} are on nodes" if gang.on_nodes else ""
        return f"{runs}: {gang.least} pods are needed{here}, but only {len(gang.rows)} wait"
    needed = f"{gang.missing} pods need room at once"
    if gang.least is None:
        needed += " (all that wait, for nobody says how many it needs)"
    if placed >= gang.missing:
        return f"{runs}: {needed}, which gangs before it take"
    return f"{runs}: {needed}, and there is room for {placed or 'none'}"
