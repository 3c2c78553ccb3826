"""What conditions on plans may speak of."""

from typing import Final

from karpool.report.formatting import HOURS_PER_MONTH
from karpool.report.plans.condition import Metric, Values
from karpool.report.plans.document import PlanDocument, PlannedCommand, TotalsPart

PER_HOUR: Final = "$/h"
PER_MONTH: Final = "$/month"
_MONEY: Final = (PER_HOUR, PER_MONTH)
_PERCENT: Final = "%"
_COUNT: Final = ("",)

PLAN_METRICS: Final = {
    "savings": Metric((_PERCENT, *_MONEY), "what the plan saves"),
    "price": Metric(_MONEY, "what the nodes cost after it"),
    "nodes": Metric(_COUNT, "nodes after it"),
    "removed": Metric(_COUNT, "nodes of today that go"),
    "evictions": Metric(_COUNT, "pods that are moved or ended"),
    "steps": Metric(_COUNT, "steps of the plan"),
    "pending": Metric(_COUNT, "pods that no node of today can take"),
    "unpriced": Metric(_COUNT, "nodes of unknown price today"),
    "distance": Metric((_PERCENT,), "how far its price is above the least possible"),
}


def plan_values(plan: PlanDocument) -> Values:
    bound = plan.lower_bound
    return {
        "savings": {_PERCENT: plan.savings.percent, **money(plan.savings.price_per_hour)},
        "price": money(known_price(plan.after)),
        "nodes": {"": plan.after.nodes},
        "removed": {"": sum(node.verdict != "keep" for node in plan.nodes)},
        "evictions": {"": evictions_of(plan)},
        "steps": {"": len(plan.commands)},
        "pending": {"": len(plan.unschedulable)},
        "unpriced": {"": plan.before.unpriced_nodes},
        "distance": {_PERCENT: None if bound is None else bound.distance_percent},
    }


def money(per_hour: float | None) -> dict[str, float | None]:
    """An amount by the hour and by the month."""
    return {PER_HOUR: per_hour, PER_MONTH: None if per_hour is None else per_hour * HOURS_PER_MONTH}


def known_price(totals: TotalsPart) -> float | None:
    """The price of all nodes; None if that of one is not known."""
    return None if totals.unpriced_nodes else totals.price_per_hour


def evictions_of(plan: PlanDocument) -> int:
    """How many times a pod is moved or ended; pods that were pending move for nothing."""
    return sum(map(_evicted, plan.commands))


def _evicted(command: PlannedCommand) -> int:
    moved = sum(place.source is not None for place in command.placements)
    return moved + len(command.ended) + len(command.displaced)
