"""Beside another controller, only pools that say so are Karpool's business: those with budgets for it."""

from collections.abc import Iterator
from datetime import datetime

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.reasons import ReasonCode
from karpool.model.labels import BUDGETS
from karpool.model.objects import Objects


def not_opted_in(objects: Objects, settings: BrakeSettings, _now: datetime) -> Iterator[Stop]:
    """A stop for each pool without the annotation; what the annotation says is for budgets to read."""
    if not settings.opted_in_only:
        return
    for pool in objects.node_pools:
        if BUDGETS not in pool.metadata.annotations:
            message = f"has no annotation {BUDGETS}, so Karpool leaves it alone"
            yield Stop(ReasonCode.NOT_OPTED_IN, message, f"NodePool {pool.name}", pool.name, halts=True)
