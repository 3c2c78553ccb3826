"""How the consolidator of a recorded cluster is set, in the words of a scenario's policies: what a replay needs.

`karpool run` writes it on its Lease, where `karpool record` finds it; a simulation knows it. What pools say, such
as grace periods and minimum savings, is on the pools.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from karpool.controller.ports import Intervals
from karpool.disruption.settings import DisruptionSettings, Scoring

ANNOTATION: Final = "karpool.sh/settings"
"""On the Lease of `karpool run`: its settings, as JSON."""
MOST_BYTES: Final = 10_000
_DECISIONS: Final = {
    "order": "order",
    "partition": "partition",
    "search": "search",
    "effort": "effort",
    "eviction_price": "evictionPrice",
    "weights": "weights",
    "spot_to_spot": "spotToSpot",
    "spot_floor": "spotFloor",
    "ignore_budgets": "ignoreBudgets",
    "terminate_first_repair": "terminateFirstRepair",
    "terminate_first_drift": "terminateFirstDrift",
    "pod_deletion_costs": "podDeletionCosts",
}
"""Fields of the settings, and what scenarios call them."""
_TIMINGS: Final = {
    "poll": "poll",
    "patience": "patience",
    "validation": "validation",
    "batch_idle": "batchIdle",
    "batch_most": "batchMost",
}
Settings = dict[str, Any]


def settings_of(decisions: DisruptionSettings, intervals: Intervals, *, ignore_dra_requests: bool) -> Settings:
    """The settings of a controller."""
    chosen: Settings = {written: getattr(decisions, name) for name, written in _DECISIONS.items()}
    chosen["ignoreDraRequests"] = ignore_dra_requests
    pacing = decisions.brakes.pacing
    pace = {
        "workloadPercent": pacing.workload_percent,
        "podsPercent": pacing.pods_percent,
        "readyWithin": f"{pacing.ready_within.total_seconds():g}s",
    }
    timings = {written: f"{getattr(intervals, name):g}s" for name, written in _TIMINGS.items()}
    found: Settings = {"policy": {"decisions": chosen, "pace": pace}, "timings": timings}
    if decisions.scheduler is not Scoring.ANY:
        chosen["foreseesScheduler"] = True
        found["policy"]["scheduler"] = decisions.scheduler.value
    plain: Settings = msgspec.to_builtins(found)
    return plain


def written(settings: Mapping[str, Any]) -> str:
    """Settings as an annotation."""
    return msgspec.json.encode(settings, order="sorted").decode()


def read(annotation: str) -> Settings | None:
    """Settings from an annotation; None if it has none that could be meant."""
    if not annotation or len(annotation) > MOST_BYTES:
        return None
    try:
        found: Any = msgspec.json.decode(annotation)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
