"""How fast scale-downs follow each other: of a pool one at each regular look, however often nodes in progress are seen.

A pool that says how many may be in progress at once (`maxConcurrentScaleDowns`) is held by that number alone.
"""

from datetime import datetime

from karpool.compaction.config import Config, PoolConfig
from karpool.compaction.decide import CompactionDecision, PoolCount
from karpool.compaction.settings import CompactionSettings


def next_begin(config: PoolConfig, count: PoolCount, now: datetime, settings: CompactionSettings) -> datetime | None:
    """When a pool may begin its next scale-down; None: now, as far as its pace is concerned."""
    if count.last_begun is None or config.max_in_progress is not None:
        return None
    # A clock that is ahead must not put the next look off for good.
    due = min(count.last_begun, now) + settings.sleep
    return due if now < due else None


def held_back(decision: CompactionDecision, config: Config, settings: CompactionSettings) -> dict[str, datetime]:
    """The pools whose chosen node has to wait for the next regular look, each with the time of that."""
    counts = {count.name: count for count in decision.pools}
    pools = (chosen.pool for chosen in decision.chosen)
    found = {name: next_begin(config.pool(name), counts[name], decision.time, settings) for name in pools}
    return {name: due for name, due in found.items() if due is not None}
