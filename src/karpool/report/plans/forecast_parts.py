"""From what came of a plan on a virtual cluster to a part of its document."""

from karpool.disruption.plan import Plan
from karpool.report.plans.forecast_document import ForecastCounts, ForecastPart
from karpool.virtual.applied_plan import Forecast


def forecast_part(plan: Plan, found: Forecast, *, foreseen: bool) -> ForecastPart:
    """What a plan has, and what it came to; `foreseen`: whether it was made for that scheduler."""
    known = plan.after.nodes == 0 or plan.after.unpriced < plan.after.nodes
    return ForecastPart(
        scheduler=found.scheduler,
        foreseen=foreseen,
        planned=ForecastCounts(
            price_per_hour=plan.after.price if known else None,
            evictions=sum(len(step.command.evicted) for step in plan.steps),
            launches=sum(len(step.command.new_nodes) for step in plan.steps),
        ),
        expected=ForecastCounts(
            price_per_hour=found.price if known else None, evictions=found.evictions, launches=found.launches
        ),
        reason=found.unknown,
    )
