"""What was measured of sweeps and fleets, what follows for large ones on paper, and how pages tell it.

Unknown figures are `?`: `pages(None)` is what stands in pages that nobody has measured for yet.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final

LOCAL_1: Final = "one local worker"
LOCAL_2: Final = "two local workers"
RAY: Final = "Ray, two raylets of one processor"
SETTINGS: Final = 200
CLUSTERS: Final = 10
SEEDS: Final = 3
WEEK: Final = 7 * 24
FLEET: Final = 10_000
NIGHT: Final = 6
"""Hours in which a fleet has to be planned."""
MACHINE: Final = 16
"""Processors of a node of the Ray cluster on paper."""
UNKNOWN: Final = "?"
_HOUR: Final = 3600
_EXACT: Final = 10
"""Core-hours from which on tenths say nothing."""


@dataclass(frozen=True)
class Planned:
    """A size of clusters, and the processor seconds that the plan of one takes."""

    nodes: int
    pods: int
    seconds: float


@dataclass(frozen=True)
class Figures:
    trials: int
    hours: int
    """Simulated, of each trial."""
    nodes: float
    """On the average of the trials."""
    seconds: Mapping[str, float]
    """By place: from the start of the workers to the last result."""
    same: bool
    """Whether all places gave the same bytes."""
    overhead: float
    """Seconds of a trial of one simulated second, the start of the worker included."""
    empty: int
    """How many of these were timed."""
    per_hour: float
    """Processor seconds of a simulated hour."""
    fleet: tuple[Planned, ...]
    on: date

    @property
    def speed_up(self) -> float:
        """How many times as quick two local workers are."""
        return self.seconds[LOCAL_1] / self.seconds[LOCAL_2]

    @property
    def ray_over_local(self) -> float | None:
        """How long Ray takes, with two local workers as 1."""
        return self.seconds[RAY] / self.seconds[LOCAL_2] if RAY in self.seconds else None

    @property
    def efficiency(self) -> float:
        """What of a second processor comes to use: on Ray, where that was measured."""
        return self.seconds[LOCAL_1] / (2 * self.seconds.get(RAY, self.seconds[LOCAL_2]))

    @property
    def sweep_core_hours(self) -> float:
        """Of a week of ten clusters under 200 settings, on three seeds each."""
        trials = SETTINGS * CLUSTERS * SEEDS
        return trials * (self.per_hour * WEEK + self.overhead) / _HOUR / self.efficiency

    def fleet_core_hours(self, planned: Planned) -> float:
        """Of 10,000 clusters."""
        return FLEET * planned.seconds / _HOUR / self.efficiency

    def plain(self) -> dict[str, Any]:
        """All of it for programs."""
        return {
            "benchmark": "sweep",
            **asdict(self),
            "seconds": {name: round(value, 2) for name, value in self.seconds.items()},
            "on": self.on.isoformat(),
            "speedUp": self.speed_up,
            "rayOverLocal": self.ray_over_local,
            "efficiency": self.efficiency,
            "sweepCoreHours": self.sweep_core_hours,
            "fleetCoreHours": {str(planned.nodes): self.fleet_core_hours(planned) for planned in self.fleet},
        }


def pages(found: Figures | None) -> dict[str, dict[str, str]]:
    """By page and mark: what stands there."""
    return {
        "performance.md": {"sweep-places": _places(found), "sweep-paper": _paper(found)},
        "sweep.md": {"sweep-figures": _of_sweeps(found)},
        "fleet.md": {"fleet-figures": _of_fleets(found)},
    }


def _places(found: Figures | None) -> str:
    lines = ["| where | seconds | times as quick as one worker |", "|---|---:|---:|"]
    for name in (LOCAL_1, LOCAL_2, RAY):
        taken = None if found is None else found.seconds.get(name)
        quick = None if found is None or taken is None else found.seconds[LOCAL_1] / taken
        lines.append(f"| {name} | {_number(taken, 1)} | {_number(quick, 2)} |")
    return "\n".join([*lines, "", _sentence(found)])


def _sentence(found: Figures | None) -> str:
    if found is None:
        return "Nobody has measured it on this page's machine yet."
    same = "gave the same bytes" if found.same else "gave DIFFERENT bytes"
    ray = (
        "" if found.ray_over_local is None else f" Ray took {found.ray_over_local:.2f} times as long as local workers."
    )
    return (
        f"{found.trials} trials of {found.hours} simulated hours, {found.nodes:.0f} nodes on average, measured on"
        f" {found.on:%Y-%m-%d}; all places {same}.{ray}\nA trial costs {found.overhead:.2f} s besides what it simulates"
        f" ({found.empty} trials of one simulated second, with the start of the worker); a simulated hour takes"
        f" {found.per_hour:.2f} s of a processor."
    )


def _paper(found: Figures | None) -> str:
    lines = [
        f"| what | a plan or trial | core-hours | nodes of {MACHINE} cores for {NIGHT} hours |",
        "|---|---:|---:|---:|",
    ]
    if found is None:
        return "\n".join([*lines, f"| {UNKNOWN} | {UNKNOWN} | {UNKNOWN} | {UNKNOWN} |"])
    for planned in found.fleet:
        hours = found.fleet_core_hours(planned)
        what = f"plan {FLEET:,} clusters of {planned.nodes:,} nodes and {planned.pods:,} pods"
        lines.append(f"| {what} | {planned.seconds:.1f} s | {_core_hours(hours)} | {machines(hours):,} |")
    hours, trial = found.sweep_core_hours, found.per_hour * WEEK + found.overhead
    what = f"try {SETTINGS} settings on a week of {CLUSTERS} clusters of {found.nodes:.0f} nodes, {SEEDS} seeds each"
    lines.append(f"| {what} | {trial:,.0f} s | {_core_hours(hours)} | {machines(hours):,} |")
    return "\n".join(lines)


def _of_sweeps(found: Figures | None) -> str:
    if found is None:
        return "What a sweep takes is [measured](performance.md#sweeps-and-fleets)."
    hours = found.sweep_core_hours
    return (
        f"{SETTINGS} settings on a week of {CLUSTERS} clusters of {found.nodes:.0f} nodes, on {SEEDS} seeds each, take"
        f" {_core_hours(hours)} core-hours [on paper](performance.md#sweeps-and-fleets):\n"
        f"{_nodes(hours)}, and less where hopeless settings are stopped."
    )


def _of_fleets(found: Figures | None) -> str:
    if found is None:
        return "What the plans of a fleet take is [measured](performance.md#sweeps-and-fleets)."
    told = [
        f"{planned.nodes:,} nodes each {_core_hours(hours)} core-hours, {_nodes(hours)}"
        for planned in found.fleet
        for hours in [found.fleet_core_hours(planned)]
    ]
    begin = f"{FLEET:,} clusters each night take [on paper](performance.md#sweeps-and-fleets), with"
    return "\n".join([begin, ";\n".join(told) + "."])


def machines(core_hours: float) -> int:
    """How many nodes the Ray cluster needs to be done in a night."""
    return max(1, -(-round(core_hours) // (NIGHT * MACHINE)))


def _nodes(core_hours: float) -> str:
    count = machines(core_hours)
    return f"a Ray cluster of {count:,} node{'' if count == 1 else 's'} of {MACHINE} cores for {NIGHT} hours"


def _core_hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= _EXACT else f"{hours:.1f}"


def _number(value: float | None, digits: int) -> str:
    return UNKNOWN if value is None else f"{value:,.{digits}f}"
