"""How fast scale-downs follow each other: a pool starts one per sleep interval, however often drains are checked.

A pool with `maxConcurrentScaleDowns` is limited by that number alone.
"""

from datetime import datetime

from karpool.compaction.config import Config, PoolConfig
from karpool.compaction.decide import CompactionDecision, PoolCount
from karpool.compaction.settings import CompactionSettings


def next_start(config: PoolConfig, count: PoolCount, now: datetime, settings: CompactionSettings) -> datetime | None:
    """When a pool may start its next scale-down; None: now."""
    if count.last_started is None or config.max_in_progress is not None:
        return None
    # A start in the future, written by a clock that is ahead, must not block the pool.
    due = min(count.last_started, now) + settings.sleep
    return due if now < due else None


def paced_pools(decision: CompactionDecision, config: Config, settings: CompactionSettings) -> dict[str, datetime]:
    counts = {count.name: count for count in decision.pools}
    names = (chosen.pool for chosen in decision.chosen)
    starts = {name: next_start(config.pool(name), counts[name], decision.time, settings) for name in names}
    return {name: due for name, due in starts.items() if due is not None}
