"""Plots over time as SVG, one line for each policy, so that a page needs no library."""

import math
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from html import escape
from itertools import groupby
from statistics import fmean
from typing import Final, NamedTuple

from karpool.report.formatting import age, amount
from karpool.report.plot_axes import Axis, axis
from karpool.report.plot_labels import anchor
from karpool.report.simulations.simulation_document import without_prices
from karpool.virtual.compare import Comparison
from karpool.virtual.curves import seconds
from karpool.virtual.recorder import ClusterSample, Run
from karpool.virtual.scenario import RECORDED

WIDTH: Final = 420
HEIGHT: Final = 210
LEFT, RIGHT, TOP, BOTTOM = 46, 410, 10, 184
COLOURS: Final = 8
_TIME_STEPS: Final = (300, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400, 172800, 604800)
_MOST_TICKS: Final = 6
_DAYS: Final = 2 * 86400
_MOST_POINTS: Final = 600


class Measure(NamedTuple):
    key: str
    title: str
    unit: str
    of: Callable[[ClusterSample], float | None]
    full: float | None = None
    """The top of the axis, where there is one."""


NODES: Final = Measure("nodes", "Nodes", "", lambda sample: sample.nodes)
PRICE: Final = Measure("price", "Price", "$/h", lambda sample: sample.price_per_hour)
MEASURES: Final = (
    NODES,
    PRICE,
    Measure("cpu", "CPU requested", "%", lambda sample: _percent(sample.cpu_utilization), 100.0),
    Measure("memory", "Memory requested", "%", lambda sample: _percent(sample.memory_utilization), 100.0),
    Measure("pending", "Pods pending", "", lambda sample: sample.pending),
    Measure("evictions", "Evictions so far", "", lambda sample: sample.evictions),
)


DEVIATION: Final = Measure("deviation", "Nodes more or fewer than recorded", "nodes", lambda sample: sample.nodes)
"""Of policies that are as the recorded one."""


class PlotLine(NamedTuple):
    """One policy's values at the times of a plot: of several runs the mean, and the least and the most."""

    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else ratio * 100


def _shown(comparison: Comparison) -> range:
    """The numbers of the samples that every plot shows; long runs show every n-th."""
    shortest = min(len(run.samples) for runs in comparison.runs.values() for run in runs)
    return range(0, shortest, max(1, math.ceil(shortest / _MOST_POINTS)))


def times(comparison: Comparison) -> list[float]:
    """The times that every plot shows, in seconds since the start of measuring."""
    first = next(iter(comparison.runs.values()))[0]
    return [first.samples[at].time for at in _shown(comparison)]


def lines(comparison: Comparison, measure: Measure) -> list[PlotLine]:
    """One line for each policy; that of what was recorded is broken where nobody looked."""
    shown = _shown(comparison)
    return [
        _line([_values(measure, runs, at) if name != RECORDED or _seen(comparison, at) else [] for at in shown])
        for name, runs in comparison.runs.items()
    ]


def deviation_lines(comparison: Comparison, faithful: Collection[str]) -> list[PlotLine]:
    """How many nodes these policies have more than there were; nothing for other policies, and where nobody looked."""
    recorded = comparison.runs[RECORDED][0]

    def values(name: str, runs: Sequence[Run], at: int) -> list[float | None]:
        known = name in faithful and recorded.nodes_known and _seen(comparison, at)
        return [run.samples[at].nodes - recorded.samples[at].nodes if known else None for run in runs]

    shown = _shown(comparison)
    return [_line([values(name, runs, at) for at in shown]) for name, runs in comparison.runs.items()]


def _seen(comparison: Comparison, at: int) -> bool:
    return comparison.seen(next(iter(comparison.runs.values()))[0].samples[at].time)


def _values(measure: Measure, runs: Sequence[Run], at: int) -> list[float | None]:
    """What to draw of runs at one moment."""
    return [None if _unknown(measure, run) else measure.of(run.samples[at]) for run in runs]


def _unknown(measure: Measure, run: Run) -> bool:
    return (measure is PRICE and without_prices(run)) or (measure is NODES and not run.nodes_known)


def _line(columns: Sequence[Sequence[float | None]]) -> PlotLine:
    known = [[value for value in column if value is not None] for column in columns]
    return PlotLine(
        [round(fmean(column), 3) if column else None for column in known],
        [min(column, default=None) for column in known],
        [max(column, default=None) for column in known],
    )


def plot(comparison: Comparison, measure: Measure, drawn: Sequence[PlotLine]) -> str:
    at = times(comparison)
    most = measure.full or max((v for entry in drawn for v in entry.high if v is not None), default=0.0)
    least = min((v for entry in drawn for v in entry.low if v is not None), default=0.0)
    span = at[-1] if at and at[-1] else 1.0
    whole = not measure.unit or measure is DEVIATION
    frame = _Frame(span, axis(min(0.0, least), most or 1.0, BOTTOM, TOP, whole=whole))
    label = escape(f"{measure.title} over {age(seconds(comparison.scenario.length))}", quote=True)
    body = [*_gaps(frame, comparison), *_value_axis(frame, measure), *_time_axis(frame, comparison)]
    if len(comparison.seeds) > 1:
        body += [_band(frame, at, entry, number) for number, entry in enumerate(drawn)]
    body += [_path(frame, at, entry.mean, number) for number, entry in enumerate(drawn)]
    hair = f'<line class="hair" x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{BOTTOM}" visibility="hidden"/>'
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}" data-measure="{measure.key}">'
        f"{''.join(body)}{hair}</svg>"
    )


class _Frame(NamedTuple):
    span: float
    values: Axis

    def x(self, time: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * time / self.span, 1)

    def y(self, value: float) -> float:
        return self.values.at(min(value, self.values.ticks[-1]))


def _value_axis(frame: _Frame, measure: Measure) -> list[str]:
    elements = []
    for value in frame.values.ticks:
        y = frame.y(value)
        text = amount(value) if measure.unit == "$/h" else f"{value:,.4g}"
        elements.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y}" y2="{y}"/>')
        elements.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{text}</text>')
    return elements


def _time_axis(frame: _Frame, comparison: Comparison) -> list[str]:
    begin = measured_from(comparison)
    step = next((step for step in _TIME_STEPS if frame.span / step <= _MOST_TICKS), _TIME_STEPS[-1])
    first = -(begin.hour * 3600 + begin.minute * 60 + begin.second) % step
    elements = []
    time = float(first)
    while time <= frame.span:
        x, text = frame.x(time), clock(begin, time, days=frame.span > _DAYS)
        at = anchor(x, text, WIDTH)
        elements.append(f'<text class="tick" x="{x}" y="{BOTTOM + 18}" text-anchor="{at}">{text}</text>')
        time += step
    return elements


def measured_from(comparison: Comparison) -> datetime:
    """When measuring started, in the time of the cluster."""
    scenario = comparison.scenario
    return scenario.start + timedelta(seconds=seconds(scenario.warm_up))


def clock(begin: datetime, time: float, *, days: bool = False) -> str:
    """A time of day, with the weekday in long runs."""
    return f"{begin + timedelta(seconds=time):{'%a %H:%M' if days else '%H:%M'}}"


def _gaps(frame: _Frame, comparison: Comparison) -> list[str]:
    """Where nobody looked at the recorded cluster, as areas."""
    shapes = []
    for since, until in comparison.gaps:
        if since < frame.span:
            x = frame.x(since)
            width = max(1.0, round(frame.x(min(until, frame.span)) - x, 1))
            area = f'x="{x}" y="{TOP}" width="{width}" height="{BOTTOM - TOP}"'
            shapes.append(f'<rect class="gap" {area}><title>nothing was recorded</title></rect>')
    return shapes


def _path(frame: _Frame, at: Sequence[float], values: Sequence[float | None], number: int) -> str:
    steps, pen = [], "M"
    for time, value in zip(at, values, strict=True):
        if value is None:
            pen = "M"
            continue
        steps.append(f"{pen}{frame.x(time)} {frame.y(value)}")
        pen = "L"
    return f'<path class="line s{number % COLOURS}" d="{"".join(steps)}"/>'


def _band(frame: _Frame, at: Sequence[float], entry: PlotLine, number: int) -> str:
    areas = []
    whole = groupby(zip(at, entry.low, entry.high, strict=True), key=lambda point: point[1] is not None)
    for known in (list(points) for is_known, points in whole if is_known):
        there = [f"{frame.x(time)} {frame.y(high or 0.0)}" for time, _, high in known]
        back = [f"{frame.x(time)} {frame.y(low or 0.0)}" for time, low, _ in reversed(known)]
        areas.append(f"M{'L'.join(there + back)}Z")
    return f'<path class="band b{number % COLOURS}" d="{"".join(areas)}"/>' if areas else ""
