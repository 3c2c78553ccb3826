"""Back-off after commands that were dropped when they were to start: their nodes could not be read, or have changed.

Nothing was written for such a command, so this is kept in memory: a new controller may try at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.reasons import ReasonCode, clock
from karpool.model.reasons import Reason


class DroppedCommand(NamedTuple):
    """The last dropped command of a node, and how often in a row one was dropped."""

    reason: Reason
    at: datetime
    tries: int = 1


Dropped = Mapping[str, DroppedCommand]
"""By name of a node."""


def after_drop(
    dropped: Dropped, nodes: Iterable[str], reason: Reason, settings: BrakeSettings, now: datetime
) -> dict[str, DroppedCommand]:
    """What is remembered when a command about nodes is dropped now; what is long past is forgotten."""
    kept = {name: known for name, known in dropped.items() if now - known.at < settings.drops_forgotten_after}
    listed = list(nodes)
    tries = 1 + max((kept[name].tries for name in listed if name in kept), default=0)
    return {**kept, **dict.fromkeys(listed, DroppedCommand(reason, now, tries))}


def dropped_lately(
    dropped: Dropped, pool_of: Callable[[str], str], settings: BrakeSettings, now: datetime
) -> Iterator[Stop]:
    """A stop for each node of a command that was dropped lately."""
    for name, known in sorted(dropped.items()):
        until = settings.after_drops(known.at, known.tries)
        if now < until:
            reason = known.reason
            how_often = "" if known.tries == 1 else f", {known.tries} in a row"
            why = f"a command was dropped ({reason.code}: {reason.object} {reason.message}){how_often}"
            message = f"is left alone until {clock(until, now)}: {why}"
            yield Stop(ReasonCode.COMMAND_DROPPED, message, f"Node {name}", pool_of(name), until, name)
