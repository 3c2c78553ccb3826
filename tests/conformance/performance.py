"""What the performance suite measures in each phase of a spec, and between which thresholds that has to be."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

THRESHOLDS_VARIABLE = "KARPENTER_PERF_THRESHOLDS"
OWN_MEMORY = 512.0
"""MiB that Karpool's Deployment asks for: its memory is compared with that where a Go heap has to be smaller."""
_SUFFIX = "_performance_report.json"
_NANOSECONDS = 1e9
# What the suite calls a figure, and what we do.
_FIGURES = {
    "TotalTime": "seconds",
    "TotalReservedCPUUtil": "cpu",
    "TotalReservedMemoryUtil": "memory",
    "KarpenterP95HeapMB": "heap",
    "KarpenterAvgCPUCores": "cores",
}
_REPORT = re.compile(r'(\w+), err := Report\w+WithOutput\(.*"(\w+)"\)')
_EXPECTED = re.compile(r'Expect\((\w+)\.(\w+)\)\.To\(BeNumerically\("([<>])", \w+Threshold\("([^"]+)", ([^)]+)\)\)')


@dataclass(frozen=True)
class Phase:
    """Figures of one phase: shares of what the nodes have, MiB of which five of a hundred samples are above, cores."""

    name: str
    seconds: float
    nodes: int
    disrupted: int
    cpu: float
    memory: float
    heap: float
    resident: float
    cores: float


@dataclass(frozen=True)
class Bounds:
    """What the suite asks of a phase: `<` or `>` and the value, by figure."""

    key: str = ""
    """The name by which the bounds of a phase can be changed."""
    by_figure: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    def broken(self, phase: Phase) -> set[str]:
        """The figures that are not as they have to be."""
        return {
            name
            for name, (sign, value) in self.by_figure.items()
            if not (getattr(phase, name) < value if sign == "<" else getattr(phase, name) > value)
        }


def read_reports(folder: Path) -> tuple[Phase, ...]:
    """The phases that a run of the suite has written down, in their order."""
    found = [(path, json.loads(path.read_text(encoding="utf-8"))) for path in folder.glob(f"*{_SUFFIX}")]
    found.sort(key=lambda pair: pair[1]["timestamp"])
    return tuple(_phase(path.name.removesuffix(_SUFFIX), report) for path, report in found)


def _phase(name: str, report: Mapping[str, Any]) -> Phase:
    return Phase(
        name=name,
        seconds=round(report["total_time"] / _NANOSECONDS, 1),
        nodes=report["total_nodes"],
        disrupted=report["pods_disrupted"],
        cpu=round(report["total_reserved_cpu_utilization"], 4),
        memory=round(report["total_reserved_memory_utilization"], 4),
        heap=round(report["karpenter_p95_heap_mb"], 1),
        resident=round(report["karpenter_p95_memory_mb"], 1),
        cores=round(report["karpenter_avg_cpu_cores"], 3),
    )


def bounds_of(sources: Iterable[Path]) -> dict[str, Bounds]:
    """The bounds of each phase, from the files of the suite."""
    found: dict[str, Bounds] = {}
    for path in sources:
        text = path.read_text(encoding="utf-8")
        phases = dict(_REPORT.findall(text))
        for report, figure, sign, key, value in _EXPECTED.findall(text):
            known = found.get(phases[report], Bounds()).by_figure
            found[phases[report]] = Bounds(key, {**known, _FIGURES[figure]: (sign, _value(value))})
    return found


def _value(written: str) -> float:
    """A number, or minutes as Go writes them."""
    minutes = re.fullmatch(r"(\d+)\*time\.Minute", written)
    return 60.0 * int(minutes[1]) if minutes else float(written)


def own_bounds(bounds: Mapping[str, Bounds]) -> dict[str, Bounds]:
    """As for Karpenter, but for memory: a Python process has no Go heap, and all that it has is compared."""
    return {
        name: Bounds(one.key, {**one.by_figure, "heap": ("<", max(OWN_MEMORY, one.by_figure["heap"][1]))})
        for name, one in bounds.items()
    }


def changed_heaps(bounds: Mapping[str, Bounds]) -> str:
    """What tells the suite of these bounds of memory."""
    return json.dumps({one.key: {"heap_mb": one.by_figure["heap"][1]} for one in bounds.values()})


def shortfalls(phases: Iterable[Phase], bounds: Mapping[str, Bounds]) -> list[str]:
    """What was measured beyond a threshold, in words, such as `scale_out`: 129 s, asked: < 120."""
    found = []
    for phase in phases:
        bound = bounds.get(phase.name, Bounds())
        for figure in sorted(bound.broken(phase)):
            sign, value = bound.by_figure[figure]
            measured, unit = _text(figure, getattr(phase, figure)), _UNITS.get(figure, "")
            found.append(f"`{phase.name}`: {measured}{unit}, asked: {sign} {_text(figure, value)}{unit}")
    return found


def table(
    measured: Mapping[str, Mapping[str, tuple[Phase, float | None]]],
    bounds: Mapping[str, Bounds],
    controllers: Mapping[str, str],
) -> str:
    """Phases of each controller, with the load of the machine, between thresholds; what is beyond one is bold."""
    rows = [
        f"| phase | | {' | '.join(_COLUMNS.values())} |",
        f"|---|---|{'---:|' * len(_COLUMNS)}",
    ]
    for name, bound in bounds.items():
        if not any(name in phases for phases in measured.values()):
            continue
        asked = {figure: f"{sign} {_text(figure, value)}" for figure, (sign, value) in bound.by_figure.items()}
        rows.append(_row(f"`{name}`", "threshold", asked))
        for controller, title in controllers.items():
            phase, load = measured.get(controller, {}).get(name, (None, None))
            if phase is not None:
                broken = bound.broken(phase)
                told = {
                    figure: f"**{_text(figure, value)}**" if figure in broken else _text(figure, value)
                    for figure, value in asdict(phase).items()
                    if figure != "name"
                }
                told["load"] = "?" if load is None else f"{load:.0f}"
                rows.append(_row("", title, told))
    return "\n".join(rows)


_COLUMNS = {
    "seconds": "s",
    "nodes": "nodes",
    "disrupted": "pods disrupted",
    "cpu": "CPU reserved",
    "memory": "memory reserved",
    "heap": "heap, MiB",
    "resident": "resident, MiB",
    "cores": "cores",
    "load": "load",
}


_UNITS = {"seconds": " s", "cpu": " of CPU", "memory": " of memory", "heap": " MiB", "cores": " cores"}


def _row(name: str, who: str, told: Mapping[str, str]) -> str:
    return f"| {' | '.join([name, who, *(told.get(column, '') for column in _COLUMNS)])} |"


def _text(figure: str, value: float) -> str:
    match figure:
        case "cpu" | "memory":
            return f"{value:.0%}"
        case "cores":
            return f"{value:.2f}"
        case _:
            return f"{value:.0f}"
