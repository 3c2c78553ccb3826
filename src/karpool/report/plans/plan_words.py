"""What a plan comes to, in sentences: how far it is from the least possible, and what part of it would do."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from karpool.disruption.reasons import ReasonCode, clock
from karpool.model.headroom import RESOLVED
from karpool.model.managers import ManagerKind
from karpool.model.reasons import Reason
from karpool.report.formatting import amounts, count, names_of, per_hour, per_month, percent, sentence
from karpool.report.plans.document import (
    BlockerPart,
    BufferPart,
    LowerBoundPart,
    PlanDocument,
    PoolSizePart,
    StopPart,
    TotalsPart,
)
from karpool.report.plans.forecast_document import ForecastPart
from karpool.report.price_words import prices_words
from karpool.wire.duration import Duration

_BLOCKERS: Final[dict[str, str]] = {
    ReasonCode.POD_DO_NOT_DISRUPT: "pods marked do-not-disrupt",
    ReasonCode.POD_DISRUPTION_BUDGET: "PodDisruptionBudgets",
    ReasonCode.NODE_DO_NOT_DISRUPT: "nodes marked do-not-disrupt",
    ReasonCode.NOT_MANAGED: "nodes without a NodePool",
    ReasonCode.POD_NOT_SAFE_TO_EVICT: "pods that are not safe to evict",
    ReasonCode.POD_LOCAL_STORAGE: "pods with data on their node",
    ReasonCode.POD_NOT_REPLICATED: "pods without a controller",
    ReasonCode.SYSTEM_POD: "kube-system pods without a PodDisruptionBudget",
    ReasonCode.SCALE_DOWN_DISABLED: "nodes with scale-down-disabled",
    ReasonCode.GROUP_AT_MINIMUM: "minimum sizes of node groups",
    ReasonCode.BUDGET_EXHAUSTED: "budgets of NodePools",
    ReasonCode.CONSOLIDATE_AFTER_WINDOW: "consolidateAfter",
    ReasonCode.CONSOLIDATE_AFTER_NEVER: "consolidateAfter: Never",
    ReasonCode.POLICY_WHEN_EMPTY: "policies of NodePools",
    ReasonCode.GRACE_PERIOD: "grace periods",
}
_UNSOLD: Final = frozenset({ManagerKind.FARGATE, ManagerKind.VIRTUAL, ManagerKind.WINDOWS, ManagerKind.AUTOPILOT})
_BLOCKERS_SHOWN: Final = 3
_LEAST_SHARE: Final = 0.01
_STOPS_SHOWN: Final = 5


def plan_words(plan: PlanDocument) -> tuple[str, ...]:
    """Sentences about bound, curve, forecast, rates, each buffer, and prices; none where there is nothing to say."""
    return (*summary_words(plan), *filter(None, [prices_words(plan.prices)]))


def summary_words(plan: PlanDocument) -> tuple[str, ...]:
    """The same for pages that say elsewhere where prices come from."""
    sentences = (
        bound_words(plan.lower_bound, unpriced=plan.after.unpriced_nodes > 0),
        curve_words(plan),
        forecast_words(plan.forecast),
        pace_words(plan),
        *map(size_words, plan.pool_sizes),
        *map(buffer_words, plan.buffers),
    )
    return tuple(text for text in sentences if text)


def nothing_words(plan: PlanDocument) -> str:
    """What is said of a plan without steps."""
    if plan.nodes:
        return "Nothing to do at this time; below is why each node stays."
    if plan.unschedulable:
        return "There are no nodes, so there is nothing to plan; pending pods wait for whoever launches nodes here."
    return "There are no nodes, so there is nothing to plan."


class PriceRow(NamedTuple):
    """The price of a plan before and after, and what it saves an hour and a month; a `+ ?` is what nobody knows."""

    before: str
    after: str
    saved: str
    saved_per_month: str


def price_row(plan: PlanDocument) -> PriceRow:
    """What a plan is worth, all with as many decimals; what is known of it is told even if the rest is not."""
    savings = plan.savings
    saved = savings.price_per_hour
    known = savings.known_per_hour if saved is None and savings.known_per_hour else saved
    before, after, less = amounts((plan.before.price_per_hour, plan.after.price_per_hour, known))
    rest = " + ?" if known is not None and saved is None else ""
    # Of a whole that is more than what is known, it is less.
    at_most = "at most " if savings.percent and plan.before.unpriced_nodes else ""
    return PriceRow(
        f"{before} $/h{_rest(plan.before)}",
        f"{after} $/h{_rest(plan.after)}",
        f"{less} $/h{rest} ({at_most}{percent(savings.percent)})",
        f"{per_month(known)}{rest}",
    )


def _rest(totals: TotalsPart) -> str:
    return " + ?" if totals.unpriced_nodes and totals.price_per_hour else ""


def stop_words(plan: PlanDocument) -> tuple[str, ...]:
    """A sentence for each brake that holds everything or a pool, those of everything first."""
    ordered = sorted(plan.stops, key=lambda stop: stop.node_pool is not None)
    shown = [_stopped(stop) for stop in ordered[:_STOPS_SHOWN]]
    more = len(ordered) - len(shown)
    return (*shown, f"And {more:,} more of the kind; each node says which.") if more else tuple(shown)


def _stopped(stop: StopPart) -> str:
    what = "Nothing" if stop.node_pool is None else f"Nothing of NodePool {stop.node_pool}"
    reason = sentence(Reason(stop.code, stop.message, stop.object))
    return f"{what} is disrupted at this time. {stop.code}: {reason}"


def forecast_words(forecast: ForecastPart | None) -> str:
    """What a plan comes to once the scheduler chooses places, beside what it has; empty if nobody asked."""
    if forecast is None:
        return ""
    chosen = f"once kube-scheduler chooses places ({forecast.scheduler})"
    planned, expected = forecast.planned, forecast.expected
    if forecast.reason:
        return f"What comes of this {chosen} is not known: {forecast.reason}."
    if (planned.evictions, planned.launches) == (0, 0) == (expected.evictions, expected.launches):
        return ""
    price, as_planned = amounts((expected.price_per_hour, planned.price_per_hour))
    return (
        f"O{chosen[1:]}: about {price} $/h, {count(expected.evictions or 0, 'eviction')}, "
        f"{_launches(expected.launches or 0)}; "
        f"the plan has {as_planned} $/h, {planned.evictions:,} and {planned.launches:,}."
    )


def _launches(number: int) -> str:
    return "1 launch" if number == 1 else f"{number:,} launches"


def pace_words(plan: PlanDocument) -> str:
    """How long rates make a plan take, if they make it wait."""
    last = max((command.begins for command in plan.commands if command.begins is not None), default=plan.time)
    if last <= plan.time:
        return ""
    waits = Duration(round((last - plan.time).total_seconds()) * 10**9)
    return f"Rates spread the steps over {waits}: the last can begin at {clock(last, plan.time)}."


def size_words(size: PoolSizePart) -> str:
    """What a pool of fixed size does about its size, which no step of a plan does."""
    price = size.price_per_hour
    change = "? $/h" if price is None else f"{'-' if price < 0 else '+'}{per_hour(abs(price))}"
    ways = [f"loses {names_of(size.loses)}"] if size.loses else []
    ways += [f"gets {size.gets:,} more"] if size.gets else []
    return f"Beside the plan, NodePool {size.node_pool} {' and '.join(ways)} by itself: {change}."


def buffer_words(buffer: BufferPart) -> str:
    """What room a CapacityBuffer keeps, and what that costs."""
    about = f"CapacityBuffer {buffer.name}"
    if buffer.reason != RESOLVED:
        return f"{about} keeps no room: {buffer.message}."
    if not buffer.pods:
        return f"{about} asks for no room."
    missing = buffer.pods - buffer.placed
    lacking = f"; {missing:,} more would need a new node" if missing else ""
    cost = f", which costs {per_hour(buffer.price_per_hour)}" if buffer.placed else ""
    return f"{about} keeps room for {count(buffer.placed, 'pod')} on {count(len(buffer.nodes), 'node')}{cost}{lacking}."


def bound_words(bound: LowerBoundPart | None, *, unpriced: bool = False) -> str:
    """How far from the least possible a plan ends, and what makes that so much."""
    if bound is None:
        return ""
    least = per_hour(bound.price_per_hour) + (" for nodes of known price" if unpriced else "")
    if bound.distance_percent is None:
        return f"The least possible is {least}."
    near = round(bound.distance_percent, 1)
    distance = (
        f"Within {percent(near)} of the least possible ({least})" if near else f"This is the least possible ({least})"
    )
    blockers = ", ".join(_blockers(bound))
    if not blockers:
        return f"{distance}."
    return f"{distance}. Of that bound {blockers}; what lifting one would save, `karpool blockers` says."


def _blockers(bound: LowerBoundPart) -> Iterator[str]:
    dearest = sorted(bound.blockers, key=lambda blocker: -blocker.price_per_hour)
    for blocker in dearest[:_BLOCKERS_SHOWN]:
        if blocker.price_per_hour >= _LEAST_SHARE * bound.price_per_hour > 0:
            yield f"{blocker_words(blocker)} make {100 * blocker.price_per_hour / bound.price_per_hour:.0f} %"


def blocker_words(blocker: BlockerPart) -> str:
    """What a blocker is called."""
    return _BLOCKERS.get(blocker.code, blocker.code)


def curve_words(plan: PlanDocument) -> str:
    """What about half of the evictions would save, if the plan evicts pods in several steps."""
    points = plan.curve
    prices = [point.price_per_hour for point in points if point.price_per_hour is not None]
    if not points or len(prices) < len(points) or plan.savings.price_per_hour is None:
        return ""
    most, saved = points[-1].evictions, prices[0] - prices[-1]
    between = [point for point in points if 0 < point.evictions < most]
    if not between or saved <= 0:
        return ""
    # Steps that evict nothing come for nothing: of those with as many evictions, the last.
    half = min(between, key=lambda point: (abs(2 * point.evictions - most), -point.step))
    share = 100 * (prices[0] - prices[half.step]) / saved
    steps = "step 1" if half.step == 1 else f"steps 1 to {half.step:,}"
    return f"The first {half.evictions:,} of {most:,} evictions ({steps}) bring {share:.0f} % of the savings."


def unpriced_words(plan: PlanDocument) -> str:
    """How many nodes no price speaks of, and how their prices could be told; empty if all are known."""
    unpriced = max(plan.before.unpriced_nodes, plan.after.unpriced_nodes)
    return f"{count(unpriced, 'node')} of unknown price not counted{_who_names_prices(plan)}." if unpriced else ""


def _who_names_prices(plan: PlanDocument) -> str:
    """How the prices that are unknown could be told; empty if nothing can, as for Fargate."""
    lost = [node for node in plan.nodes if node.price_per_hour is None and node.managed_by not in _UNSOLD]
    typed = any(node.instance_type for node in lost)
    managers = {node.managed_by for node in lost if not node.instance_type}
    ways = (
        (typed, "--catalog FILE or --price names prices of types"),
        (ManagerKind.NODE_GROUP in managers, "--groups FILE names prices of groups"),
        (ManagerKind.NOBODY in managers, "--pool-label makes nodes groups, whose prices --groups FILE names"),
    )
    return "".join(f"; {way}" for holds, way in ways if holds)
