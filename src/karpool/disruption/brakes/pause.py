"""A person has paused a pool (annotation `karpool.sh/paused`) or everything (ConfigMap `karpool-pause`)."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.reasons import ReasonCode
from karpool.model.annotations import denies_pause
from karpool.model.labels import PAUSE_MAP, PAUSED
from karpool.model.objects import Objects
from karpool.wire.problems import one_line

REASON: Final = "reason"
"""The key of the ConfigMap that may say why."""
_LONGEST_REASON: Final = 200


def pauses(objects: Objects, settings: BrakeSettings, _now: datetime) -> Iterator[Stop]:
    """A stop of everything, and one for each pool that is paused; any value pauses, so that a slip does not disrupt."""
    for pause in objects.pauses:
        if pause.name == PAUSE_MAP and pause.metadata.namespace == settings.pause_namespace:
            message = f"pauses everything{_said(pause.data.get(REASON, ''))}"
            yield Stop(ReasonCode.PAUSED, message, f"ConfigMap {pause.key}", halts=True)
    for pool in objects.node_pools:
        text = pool.metadata.annotations.get(PAUSED)
        if text is not None:
            slip = " (any value pauses; remove the annotation to go on)" if denies_pause(text) else ""
            message = f"is paused by its annotation {PAUSED}{_said(text)}{slip}"
            yield Stop(ReasonCode.PAUSED, message, f"NodePool {pool.name}", pool.name, halts=True)


def _said(text: str) -> str:
    """What a person wrote, as the end of a sentence; `true` and nothing say no more than the annotation does."""
    said = one_line(text.strip()[:_LONGEST_REASON])
    return "" if said in ("", "true") else f": {said}"
