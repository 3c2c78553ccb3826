"""Stops: what a brake holds, and why."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from karpool.model.reasons import Reason


class Stop(NamedTuple):
    """No voluntary disruption of a pool, or of anything: a reason code, a sentence, and the object that is to blame."""

    code: str
    message: str
    object: str
    pool: str | None = None
    """The name of the pool; None: all of them."""
    until: datetime | None = None
    """When time alone lets go, if it does."""
    node: str | None = None
    """The one node that it keeps; None: all nodes of the pool."""
    halts: bool = False
    """Whether commands that are under way are rolled back, unless they have begun to delete their nodes."""
    spares_empty: bool = False
    """Whether nodes may go that leave nothing behind: no pod needs another place, and no node comes instead."""

    @property
    def reason(self) -> Reason:
        """The stop as the reason of a node that it keeps."""
        return Reason(self.code, self.message, self.object)


class Stops:
    """All stops of one moment."""

    def __init__(self, stops: Iterable[Stop] = ()) -> None:
        self._stops = tuple(stops)
        self._everywhere: list[Stop] = []
        self._of_pools: dict[str, list[Stop]] = {}
        self._of_nodes: dict[str, list[Stop]] = {}
        for stop in self._stops:
            if stop.node is not None:
                self._of_nodes.setdefault(stop.node, []).append(stop)
            elif stop.pool is not None:
                self._of_pools.setdefault(stop.pool, []).append(stop)
            else:
                self._everywhere.append(stop)

    def __iter__(self) -> Iterator[Stop]:
        return iter(self._stops)

    def __bool__(self) -> bool:
        return bool(self._stops)

    def of(self, pool: str, node: str = "", *, empty: bool = False) -> Stop | None:
        """What stops a pool, and perhaps one of its nodes, what stops most first; None if nothing does.

        `empty`: the node would leave nothing behind.
        """
        held = (*self._everywhere, *self._of_pools.get(pool, ()), *self._of_nodes.get(node, ()))
        return next((stop for stop in held if not (empty and stop.spares_empty)), None)

    def halting(self, pool: str) -> Stop | None:
        """What rolls commands of a pool back, if anything does."""
        return next((stop for stop in self._stops if stop.halts and stop.pool in (None, pool)), None)

    def next_release(self, now: datetime) -> datetime | None:
        """When time alone lets go of the next stop."""
        return min((stop.until for stop in self._stops if stop.until is not None and stop.until > now), default=None)


NO_STOPS = Stops()
