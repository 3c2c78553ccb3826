"""What it costs, in disruption rather than money, to move pods away from a node."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from karpool.model.deletion_cost import has_own_cost
from karpool.model.labels import DISRUPTION_COST, POD_DELETION_COST
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod

NODE_BASE: Final = 1.0
_LOWEST: Final = -10.0
_HIGHEST: Final = 10.0
_PER_DELETION_COST: Final = 2.0**27
_PER_PRIORITY: Final = 2.0**25
_NUMBER: Final = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_SMALLEST: Final = -(2**31)
_LARGEST: Final = 2**31 - 1


def deletion_cost(pod: Pod) -> float | None:
    """What the pod's owner says its deletion costs; 0 if nothing is said, None if that is no number."""
    return _cost(pod, POD_DELETION_COST)


def disruption_cost(pod: Pod, *, by_deletion_cost: bool = True) -> float | None:
    """What is said of the cost of disrupting a pod, where it is said, else of deleting it.

    A deletion cost that Karpool wrote says where the pod is, not what it is worth; none counts without
    `by_deletion_cost`.
    """
    annotations = pod.metadata.annotations
    if DISRUPTION_COST in annotations:
        return _cost(pod, DISRUPTION_COST)
    return _cost(pod, POD_DELETION_COST) if by_deletion_cost and not has_own_cost(annotations) else 0.0


def unreadable_cost(pod: Pod) -> str | None:
    """The annotation of a pod's cost that is there and is no whole number of 32 bits, so that it counts as 0."""
    told = next((name for name in (DISRUPTION_COST, POD_DELETION_COST) if name in pod.metadata.annotations), None)
    return told if told is not None and _cost(pod, told) is None else None


def unreadable_costs_notice(pods: Iterable[Pod]) -> str:
    """A sentence about pods whose cost cannot be read; empty if there is none."""
    found = [(pod.key, annotation) for pod in pods if (annotation := unreadable_cost(pod)) is not None]
    if not found:
        return ""
    first, annotation = min(found)
    those = f"the cost of pod {first}" if len(found) == 1 else f"the cost of {len(found):,} pods, such as {first},"
    return f"{those} ({annotation}) is no 32-bit number and counts as 0"


def _cost(pod: Pod, annotation: str) -> float | None:
    text = pod.metadata.annotations.get(annotation)
    if text is None:
        return 0.0
    cost = int(text) if _NUMBER.fullmatch(text) else None
    return None if cost is None or not _SMALLEST <= cost <= _LARGEST else float(cost)


def eviction_cost(pod: Pod, *, by_deletion_cost: bool = True) -> float:
    """One for an ordinary pod, more for expensive and important ones, between -10 and 10."""
    said = disruption_cost(pod, by_deletion_cost=by_deletion_cost) or 0.0
    cost = 1.0 + said / _PER_DELETION_COST + (pod.spec.priority or 0) / _PER_PRIORITY
    return min(_HIGHEST, max(_LOWEST, cost))


def eviction_weight(pod: Pod, *, by_deletion_cost: bool = True) -> float:
    """For how many ordinary pods an eviction counts where evictions have a price; never less than none."""
    return max(0.0, eviction_cost(pod, by_deletion_cost=by_deletion_cost))


def lifetime_remaining(claim: NodeClaim, now: datetime) -> float:
    """The share of a node's life that is still before it; all of it if it does not expire."""
    whole, created = claim.spec.expire_after.delta, claim.metadata.creation_timestamp
    if whole is None or created is None:
        return 1.0
    if not whole:
        return 0.0
    return min(1.0, max(0.0, (whole - (now - created)) / whole))


def lifetime_cost(cost: float, claim: NodeClaim, now: datetime) -> float:
    """The eviction cost of all pods on a node, less the older the node is."""
    return cost * lifetime_remaining(claim, now)


def reschedule_cost(costs: Iterable[float]) -> float:
    """One for the node, and the eviction cost of each of its pods that needs another place."""
    return NODE_BASE + sum(max(0.0, cost) for cost in costs)


def savings_ratio(price: float | None, cost: float) -> float:
    """Money saved for each unit of disruption; a node of unknown price saves nothing that could be relied on."""
    return (price or 0.0) / cost
