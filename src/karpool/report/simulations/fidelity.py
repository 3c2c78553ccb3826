"""How faithful a replay is: what a policy that changes nothing comes to, against what was recorded.

Deviations are those of the replay: positive where it has more than there was.
"""

from collections.abc import Callable, Collection, Sequence
from statistics import fmean
from typing import Final

from karpool.report.document_part import DocumentPart
from karpool.report.formatting import UNKNOWN, age
from karpool.virtual.compare import Comparison
from karpool.virtual.curves import seconds
from karpool.virtual.recorder import ClusterSample, Run, RunSummary
from karpool.virtual.scenario import RECORDED

_DIGITS: Final = 6
_MOST_POINTS: Final = 300
_FAR: Final = 0.1


class FidelityPart(DocumentPart, frozen=True, kw_only=True):
    """Shares are of what was recorded; null where that was nothing."""

    cost: float | None
    node_hours: float | None
    evictions: float | None
    """How many more there were; null if the recording does not say who was evicted."""
    nodes_mean: float | None
    """How many nodes there were too many or too few, on average; null if nobody saw nodes, or never looked."""
    nodes_most: float | None
    nodes_most_after_seconds: float | None
    series: dict[str, list[float | None]]
    """Null in gaps."""


def fidelities(comparison: Comparison) -> dict[str, FidelityPart]:
    """By policy, for those that are as the recorded one; where that is not known, that change no pools or scheduler."""
    recorded = comparison.runs.get(RECORDED)
    if recorded is None:
        return {}
    return {
        name: _fidelity(recorded[0], runs, comparison.seen)
        for name, runs in comparison.runs.items()
        if name != RECORDED and _changes_nothing(comparison, name)
    }


def _changes_nothing(comparison: Comparison, name: str) -> bool:
    policy = comparison.scenario.policies[name]
    if comparison.as_recorded is not None:
        return policy == comparison.as_recorded
    return policy.disruption and not policy.pools and policy.scheduler is None and policy.compactor is None


def _fidelity(recorded: Run, runs: tuple[Run, ...], seen: Callable[[float], bool]) -> FidelityPart:
    """How far runs are from what was recorded; what was in a gap, nobody knows."""
    count = min(len(run.samples) for run in (recorded, *runs))
    chosen = range(0, count, max(1, -(-count // _MOST_POINTS)))
    there = recorded.samples[:count]
    watched = [at for at in range(count) if seen(there[at].time)]

    def column(of: Callable[[ClusterSample], float | None], known: Collection[int]) -> list[float | None]:
        return [_difference([run.samples[at] for run in runs], there[at], of) if at in known else None for at in chosen]

    looked = frozenset(watched)
    machines = looked if recorded.nodes_known else ()
    nodes = {at: fmean(run.samples[at].nodes for run in runs) - there[at].nodes for at in watched if machines}
    worst = max(nodes, key=lambda at: abs(nodes[at]), default=None)
    return FidelityPart(
        cost=_share(runs, recorded, lambda summary: summary.cost),
        node_hours=_share(runs, recorded, lambda summary: summary.node_hours),
        evictions=_more_evictions(runs, recorded),
        nodes_mean=round(fmean(map(abs, nodes.values())), _DIGITS) if nodes else None,
        nodes_most=None if worst is None else nodes[worst],
        nodes_most_after_seconds=None if worst is None else there[worst].time,
        series={
            "seconds": [there[at].time for at in chosen],
            "nodes": column(lambda sample: sample.nodes, machines),
            "pricePerHour": column(lambda sample: sample.price_per_hour, machines),
            "evictions": column(lambda sample: sample.evictions, looked),
        },
    )


def _difference(
    samples: Sequence[ClusterSample], there: ClusterSample, of: Callable[[ClusterSample], float | None]
) -> float | None:
    """By how much the mean of runs differs at one moment; None if either is not known."""
    base, values = of(there), [value for value in map(of, samples) if value is not None]
    return None if base is None or not values else round(fmean(values) - base, _DIGITS)


def _more_evictions(runs: Sequence[Run], recorded: Run) -> float | None:
    base, known = recorded.summary.evictions, [run.summary.evictions for run in runs]
    values = [value for value in known if value is not None]
    return None if base is None or not values else fmean(values) - base


def _share(runs: Sequence[Run], recorded: Run, of: Callable[[RunSummary], float]) -> float | None:
    base = of(recorded.summary)
    return round(fmean(of(run.summary) for run in runs) / base - 1, _DIGITS) if base else None


def fidelity_words(name: str, part: FidelityPart, seeds: int) -> str:
    """One sentence about one policy; where it is far off, also that more seeds would tell more than one."""
    far = any(abs(share or 0.0) > _FAR for share in (part.cost, part.node_hours))
    hint = "; one seed; --seeds 5 tells more" if far and seeds == 1 else ""
    sums = ", ".join(
        f"{title} {UNKNOWN if share is None else f'{share * 100:+.1f} %'}"
        for title, share in (("cost", part.cost), ("node-hours", part.node_hours))
    )
    evictions = UNKNOWN if part.evictions is None else f"{part.evictions:+.3g}"
    return f"Fidelity of {name} to what was recorded: {sums}, evictions {evictions}; {_node_words(part)}{hint}."


def _node_words(part: FidelityPart) -> str:
    if part.nodes_mean is None:
        return "by how many nodes they differ is not known"
    words = f"nodes differ by {part.nodes_mean:.1f} on average"
    if not part.nodes_most or part.nodes_most_after_seconds is None:
        return words
    return f"{words}, at most by {part.nodes_most:+.3g} after {age(part.nodes_most_after_seconds)}"


def gap_words(comparison: Comparison) -> str:
    """How much of the time nobody saw anything; empty if all was seen."""
    length = seconds(comparison.scenario.length)
    unseen = sum(min(until, length) - since for since, until in comparison.gaps if since < length)
    return f"Nothing was recorded during {age(unseen)} of it: demand stayed as it was." if unseen else ""
