"""How faithful a replay is: what a policy that changes nothing comes to, against what was recorded.

Deviations are those of the replay: positive where it has more than there was.
"""

from statistics import fmean
from typing import Final

from karpool.report.document_part import DocumentPart
from karpool.report.formatting import age
from karpool.virtual.compare import Comparison
from karpool.virtual.curves import seconds
from karpool.virtual.recorder import Run
from karpool.virtual.scenario import RECORDED

_DIGITS: Final = 6
_MOST_POINTS: Final = 300


class FidelityPart(DocumentPart, frozen=True, kw_only=True):
    """Shares are of what was recorded; null where that was nothing."""

    cost: float | None
    node_hours: float | None
    evictions: float
    """How many more there were."""
    nodes_mean: float
    """How many nodes there were too many or too few, on average."""
    nodes_most: float
    nodes_most_after_seconds: float
    series: dict[str, list[float]]


def fidelities(comparison: Comparison) -> dict[str, FidelityPart]:
    """By policy, for those that are as the recorded one; where that is not known, that change no pools or scheduler."""
    recorded = comparison.runs.get(RECORDED)
    if recorded is None:
        return {}
    return {
        name: _fidelity(recorded[0], runs)
        for name, runs in comparison.runs.items()
        if name != RECORDED and _changes_nothing(comparison, name)
    }


def _changes_nothing(comparison: Comparison, name: str) -> bool:
    policy = comparison.scenario.policies[name]
    if comparison.as_recorded is not None:
        return policy == comparison.as_recorded
    return policy.disruption and not policy.pools and policy.scheduler is None and policy.compactor is None


def _fidelity(recorded: Run, runs: tuple[Run, ...]) -> FidelityPart:
    count = min(len(run.samples) for run in (recorded, *runs))
    stride = max(1, -(-count // _MOST_POINTS))
    chosen = range(0, count, stride)
    there = recorded.samples
    nodes = [fmean(run.samples[at].nodes for run in runs) - there[at].nodes for at in range(count)]
    price = [fmean(run.samples[at].price_per_hour for run in runs) - there[at].price_per_hour for at in chosen]
    evictions = [fmean(run.samples[at].evictions for run in runs) - there[at].evictions for at in chosen]
    worst = max(range(count), key=lambda at: abs(nodes[at]), default=0)
    return FidelityPart(
        cost=_share(fmean(run.summary.cost for run in runs), recorded.summary.cost),
        node_hours=_share(fmean(run.summary.node_hours for run in runs), recorded.summary.node_hours),
        evictions=fmean(run.summary.evictions for run in runs) - recorded.summary.evictions,
        nodes_mean=round(fmean(map(abs, nodes)), _DIGITS) if nodes else 0.0,
        nodes_most=nodes[worst] if nodes else 0.0,
        nodes_most_after_seconds=there[worst].time if nodes else 0.0,
        series={
            "seconds": [there[at].time for at in chosen],
            "nodes": [round(nodes[at], _DIGITS) for at in chosen],
            "pricePerHour": [round(value, _DIGITS) for value in price],
            "evictions": [round(value, _DIGITS) for value in evictions],
        },
    )


def _share(value: float, base: float) -> float | None:
    return round(value / base - 1, _DIGITS) if base else None


def fidelity_words(name: str, part: FidelityPart) -> str:
    """One sentence about one policy."""
    sums = ", ".join(
        f"{title} {'?' if share is None else f'{share * 100:+.1f} %'}"
        for title, share in (("cost", part.cost), ("node-hours", part.node_hours))
    )
    nodes = f"nodes differ by {part.nodes_mean:.1f} on average"
    most = f", at most by {part.nodes_most:+.3g} after {age(part.nodes_most_after_seconds)}" if part.nodes_most else ""
    return f"Fidelity of {name} to what was recorded: {sums}, evictions {part.evictions:+.3g}; {nodes}{most}."


def gap_words(comparison: Comparison) -> str:
    """How much of the time nobody saw anything; empty if all was seen."""
    length = seconds(comparison.scenario.length)
    unseen = sum(min(until, length) - since for since, until in comparison.gaps if since < length)
    return f"Nothing was recorded during {age(unseen)} of it: demand stayed as it was." if unseen else ""
