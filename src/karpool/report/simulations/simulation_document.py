"""The results of a simulation as other programs read them: for each policy the numbers of its run, or means.

The same seed gives the same bytes. With several seeds each number is a mean, `confidence` has its 95% interval, and
`difference` the mean difference to the first policy on the same seeds, with its interval. `pools` has each NodePool's
part, and `series` the course over time in columns; both are means, too.
"""

import re
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, Final

import msgspec

from karpool.report.document_part import API_VERSION, DocumentPart
from karpool.report.plans.document import PricesPart
from karpool.report.price_words import prices_parts, prices_words
from karpool.report.simulations.fidelity import FidelityPart, fidelities, fidelity_words, gap_words
from karpool.virtual.compare import Comparison
from karpool.virtual.curves import seconds
from karpool.virtual.recorder import Run
from karpool.virtual.scenario import RECORDED
from karpool.virtual.statistics import Estimate, estimate, paired

Numbers = dict[str, float | None]
_DIGITS: Final = 6
_MOST_POINTS: Final = 300
SERIES: Final = {
    "nodes": "nodes",
    "pods": "pods",
    "pricePerHour": "price_per_hour",
    "cpuUtilization": "cpu_utilization",
    "memoryUtilization": "memory_utilization",
    "pendingPods": "pending",
    "evictions": "evictions",
}
"""The columns of a series, and the fields of a sample with their values."""
_OF_NODES: Final = ("cost", "nodeHours", "nodesLaunched", "nodesEnded", "nodesAtEnd")
_NUMBERS: Final = re.compile(rb"\[\n\s+([-+.\deEnul,\s]*?)\n\s+\]")


class Simulation(DocumentPart, frozen=True, kw_only=True):
    api_version: str = API_VERSION
    kind: str = "Simulation"
    scenario: str
    description: str
    seed: int
    seeds: int
    length_seconds: float
    prices: tuple[PricesPart, ...] = ()
    policies: dict[str, dict[str, Any]]
    fidelity: dict[str, FidelityPart] = {}
    """Of a recording: how policies that change nothing differ from it."""
    gaps: str = ""
    """Of a recording: how much of it nobody saw, in a sentence."""


def simulation_document(comparison: Comparison) -> Simulation:
    scenario, seeds = comparison.scenario, comparison.seeds
    first = next(iter(comparison.runs))
    base = numbers(comparison.runs[first])
    several = len(seeds) > 1
    priced = any(run.summary.cost for runs in comparison.runs.values() for run in runs)
    return Simulation(
        scenario=scenario.name,
        description=scenario.description,
        seed=seeds[0],
        seeds=len(seeds),
        length_seconds=seconds(scenario.length),
        prices=prices_parts(origin for origin in comparison.used if priced or not origin.known),
        policies={
            name: {
                **(_means(numbers(runs), None if name == first else base) if several else _plain(runs[0])),
                "pools": pools(runs),
                "series": series(runs, comparison.seen if name == RECORDED else None),
            }
            for name, runs in comparison.runs.items()
        },
        fidelity=fidelities(comparison),
        gaps=gap_words(comparison),
    )


def to_json(document: Simulation) -> bytes:
    """The document as indented JSON, each column of numbers on one line."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2)
    return _NUMBERS.sub(lambda column: b"[" + b" ".join(column[1].split()) + b"]", text)


def without_prices(run: Run) -> bool:
    """Whether nobody knows what anything in a run costs, so that its zeros are no prices."""
    return not run.nodes_known or (not run.summary.cost and run.summary.unpriced_node_hours > 0)


def numbers(runs: tuple[Run, ...]) -> dict[str, list[float | None]]:
    plain = [_plain(run) for run in runs]
    return {key: [summary[key] for summary in plain] for key in plain[0]}


def pools(runs: Sequence[Run]) -> dict[str, Numbers]:
    plain = [_plain_pools(run) for run in runs]
    return {
        name: {key: _mean([entry[name][key] for entry in plain]) for key in share} for name, share in plain[0].items()
    }


def _plain_pools(run: Run) -> dict[str, Numbers]:
    built: dict[str, Numbers] = msgspec.to_builtins(run.pools)
    if without_prices(run):
        return {name: {**share, "cost": None if share["nodeHours"] else 0.0} for name, share in built.items()}
    return built


def series(runs: Sequence[Run], seen: Callable[[float], bool] | None = None) -> dict[str, list[float | None]]:
    """The samples over time, on average over the runs: every n-th, and the last; null where nobody looked."""
    shortest = min(len(run.samples) for run in runs)
    stride = max(1, -(-(shortest - 1) // (_MOST_POINTS - 1)))
    chosen = sorted({*range(0, shortest, stride), *range(shortest)[-1:]})
    columns: dict[str, list[float | None]] = {"seconds": [runs[0].samples[at].time for at in chosen]}
    for name, field in SERIES.items():
        columns[name] = [_mean([getattr(run.samples[at], field) for run in runs]) for at in chosen]
    if any(map(without_prices, runs)):
        columns["pricePerHour"] = [None] * len(chosen)
    if not all(run.nodes_known for run in runs):
        columns["nodes"] = [None] * len(chosen)
    if seen is not None:
        unseen = [number for number, at in enumerate(chosen) if not seen(runs[0].samples[at].time)]
        for name in SERIES:
            for number in unseen:
                columns[name][number] = None
    return columns


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) <= 1:
        return known[0] if known else None
    return round(fmean(known), _DIGITS)


def _plain(run: Run) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(run.summary)
    unknown = _OF_NODES if not run.nodes_known else ("cost",) if without_prices(run) else ()
    return {**built, **dict.fromkeys(unknown)}


def _means(values: dict[str, list[float | None]], base: dict[str, list[float | None]] | None) -> dict[str, Any]:
    estimates = {key: estimate(entry) for key, entry in values.items()}
    means: dict[str, Any] = {
        key: None if entry is None else round(entry.mean, _DIGITS) for key, entry in estimates.items()
    }
    means["confidence"] = {key: _interval(entry) for key, entry in estimates.items()}
    if base is not None:
        means["difference"] = {key: _difference(paired(entry, base[key])) for key, entry in values.items()}
    return means


def _interval(entry: Estimate | None) -> tuple[float, float] | None:
    if entry is None or entry.low is None or entry.high is None:
        return None
    return round(entry.low, _DIGITS), round(entry.high, _DIGITS)


def _difference(entry: Estimate | None) -> dict[str, Any] | None:
    return None if entry is None else {"mean": round(entry.mean, _DIGITS), "confidence": _interval(entry)}


def recording_words(document: Simulation) -> list[str]:
    """Of a recording: how far to trust the comparison."""
    said = [fidelity_words(name, part, document.seeds) for name, part in document.fidelity.items()]
    return [*said, document.gaps] if document.gaps else said


def money_words(document: Simulation) -> str:
    """Where prices come from, and what they leave out; empty if there is nothing to say."""
    left_out = max((policy.get("unpricedNodeHours") or 0 for policy in document.policies.values()), default=0)
    missing = f"Costs are incomplete: up to {left_out:,.1f} node-hours have no known price (?)." if left_out else ""
    return " ".join(filter(None, (missing, prices_words(document.prices))))
