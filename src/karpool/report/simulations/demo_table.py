"""The comparison of `karpool demo` in a terminal: a few sentences with its numbers."""

from typing import Final

from karpool.report.formatting import amount, count, per_hour, per_month
from karpool.report.simulations.simulation_plots import clock, measured_from
from karpool.report.table_layout import TableColumn
from karpool.report.terminal import Cell, Screen, right
from karpool.virtual.compare import Comparison
from karpool.virtual.recorder import ClusterSample

FIRST, COMPACTOR, KARPOOL = "autoscaler", "compactor", "karpool"
_HOUR: Final = 3600.0


def print_demo(comparison: Comparison, screen: Screen, report: str) -> None:
    """What happened, hour by hour, what was saved, and where the plots are."""
    samples = {name: runs[0].samples for name, runs in comparison.runs.items()}
    peak, night = samples[FIRST][0], samples[FIRST][-1]
    begin = measured_from(comparison)
    screen.heading(f"{clock(begin, 0)}, the peak")
    screen.line(
        f"{count(peak.nodes, 'node')} run {count(peak.pods, 'pod')}; {_percent(peak)} of their CPU is requested. "
        f"They cost {per_hour(peak.price_per_hour)}."
    )
    screen.heading(f"{clock(begin, _HOUR)}, the evening comes")
    screen.line(
        f"The deployments scale down to {count(night.pods, 'pod')}. Every node is left with a few, at "
        f"{_percent(night)}: too many for an autoscaler that looks at nodes under 50%, so nothing happens."
    )
    screen.line("Karpool moves the pods together, a few nodes at a time, within budgets, and removes what is empty.")
    screen.line("")
    _hours(comparison, screen, samples)
    _saved(comparison, screen, report)


def _percent(sample: ClusterSample) -> str:
    return "?" if sample.cpu_utilization is None else f"{sample.cpu_utilization * 100:.0f}%"


def _hours(comparison: Comparison, screen: Screen, samples: dict[str, tuple[ClusterSample, ...]]) -> None:
    begin = measured_from(comparison)
    most = samples[FIRST][0].nodes
    rows: list[list[Cell]] = []
    for at, sample in enumerate(samples[FIRST]):
        if sample.time % (_HOUR / 2):
            continue
        packed = samples[KARPOOL][at]
        counts = [str(entries[at].nodes) for entries in samples.values()]
        rows.append(
            [clock(begin, sample.time), str(sample.pods), *counts, _percent(packed), screen.bar(packed.nodes / most)]
        )
    nodes = (right(f"nodes: {name}") for name in samples)
    screen.table(("time", right("pods"), *nodes, right("CPU", spare=1), TableColumn("with Karpool", spare=2)), rows)


def _saved(comparison: Comparison, screen: Screen, report: str) -> None:
    first, last = comparison.runs[FIRST][0], comparison.runs[KARPOOL][0]
    base, mine = first.summary, last.summary
    saved = first.samples[-1].price_per_hour - last.samples[-1].price_per_hour
    compacted = comparison.runs[COMPACTOR][0].summary
    screen.heading("What that saves")
    screen.line(
        f"{count(base.nodes_at_end - mine.nodes_at_end, 'node')} of {base.nodes_at_end}, or {per_hour(saved)} "
        f"({saved / first.samples[-1].price_per_hour:.0%}) for the rest of the night. This evening cost "
        f"{amount(mine.cost)} $ instead of {amount(base.cost)} $; if it were always night, {per_month(saved)}."
    )
    screen.line(
        f"For that, {count(mine.evictions or 0, 'pod')} moved, each by an eviction that its PodDisruptionBudget"
        f" allowed. In sum they waited {mine.pending_pod_seconds:.0f} seconds for a new place."
    )
    screen.line(
        f"The compactor gets to {count(compacted.nodes_at_end, 'node')}, too: it drains nodes and leaves their removal "
        "to the autoscaler."
    )
    screen.line("")
    screen.line(f"Plots: {report}")
