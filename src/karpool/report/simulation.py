"""What a simulation found, as other programs read it: for each policy the numbers of its run, or means of several.

The same seed gives the same bytes. With several seeds each number is a mean, `confidence` has its 95% interval, and
`difference` the mean difference to the first policy on the same seeds, with its interval.
"""

from typing import Any, Final

import msgspec

from karpool.report.document import API_VERSION
from karpool.virtual.compare import Comparison, Run
from karpool.virtual.curves import seconds
from karpool.virtual.ledger import Summary
from karpool.virtual.statistics import Estimate, estimate, paired

KIND: Final = "Simulation"
Numbers = dict[str, float | None]
_DIGITS: Final = 6


class Simulation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The document."""

    api_version: str = API_VERSION
    kind: str = KIND
    scenario: str
    description: str
    seed: int
    seeds: int
    length_seconds: float
    policies: dict[str, dict[str, Any]]


def simulation_document(comparison: Comparison) -> Simulation:
    """The document of a comparison."""
    scenario, seeds = comparison.scenario, comparison.seeds
    first = next(iter(comparison.runs))
    base = numbers(comparison.runs[first])
    several = len(seeds) > 1
    return Simulation(
        scenario=scenario.name,
        description=scenario.description,
        seed=seeds[0],
        seeds=len(seeds),
        length_seconds=seconds(scenario.length),
        policies={
            name: _means(numbers(runs), None if name == first else base) if several else _plain(runs[0].summary)
            for name, runs in comparison.runs.items()
        },
    )


def to_json(document: Simulation) -> bytes:
    """The document as JSON for a program and a patient person."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def numbers(runs: tuple[Run, ...]) -> dict[str, list[float | None]]:
    """Each number of a summary by its name, one for each run."""
    plain = [_plain(run.summary) for run in runs]
    return {key: [summary[key] for summary in plain] for key in plain[0]}


def _plain(summary: Summary) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(summary)
    return built


def _means(values: dict[str, list[float | None]], base: dict[str, list[float | None]] | None) -> dict[str, Any]:
    found = {key: estimate(entry) for key, entry in values.items()}
    made: dict[str, Any] = {key: None if entry is None else round(entry.mean, _DIGITS) for key, entry in found.items()}
    made["confidence"] = {key: _interval(entry) for key, entry in found.items()}
    if base is not None:
        made["difference"] = {key: _difference(paired(entry, base[key])) for key, entry in values.items()}
    return made


def _interval(entry: Estimate | None) -> tuple[float, float] | None:
    if entry is None or entry.low is None or entry.high is None:
        return None
    return round(entry.low, _DIGITS), round(entry.high, _DIGITS)


def _difference(entry: Estimate | None) -> dict[str, Any] | None:
    return None if entry is None else {"mean": round(entry.mean, _DIGITS), "confidence": _interval(entry)}
