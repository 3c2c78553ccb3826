"""A person has paused a pool: the annotation `karpool.sh/paused` on the NodePool, whose value may say why."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.reasons import ReasonCode
from karpool.model.labels import PAUSED
from karpool.model.objects import Objects
from karpool.wire.problems import one_line

_LONGEST_REASON: Final = 200


def pauses(objects: Objects, _settings: BrakeSettings, _now: datetime) -> Iterator[Stop]:
    """A stop for each pool that is paused; any value of the annotation pauses, so that a slip does not disrupt."""
    for pool in objects.node_pools:
        text = pool.metadata.annotations.get(PAUSED)
        if text is not None:
            message = f"is paused by its annotation {PAUSED}{_said(text)}"
            yield Stop(ReasonCode.PAUSED, message, f"NodePool {pool.name}", pool.name, halts=True)


def _said(text: str) -> str:
    """What a person wrote, as the end of a sentence; `true` and nothing say no more than the annotation does."""
    said = one_line(text.strip()[:_LONGEST_REASON])
    return "" if said in ("", "true") else f": {said}"
