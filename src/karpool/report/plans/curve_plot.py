"""The price of a cluster against the pods that a plan evicts, as SVG."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from karpool.report.formatting import amount, count, per_hour
from karpool.report.plans.document import CurvePart, LowerBoundPart
from karpool.report.plot_axes import Axis, axis
from karpool.report.plot_labels import anchor

WIDTH: Final = 460
HEIGHT: Final = 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 446, 12, 164
_MOST_DOTS: Final = 60


def curve_plot(points: Sequence[CurvePart], bound: LowerBoundPart | None) -> str:
    """The points as a line, and the least possible price as another; empty if nothing is evicted or a price unknown."""
    prices = [point.price_per_hour for point in points if point.price_per_hour is not None]
    if len(prices) < len(points) or not points or not points[-1].evictions:
        return ""
    across = axis(0, points[-1].evictions, _LEFT, _RIGHT, whole=True)
    up = axis(0, max(prices if bound is None else [*prices, bound.price_per_hour]), _BOTTOM, _TOP)
    label = escape(_described(points, bound), quote=True)
    places = [(across.at(point.evictions), up.at(price)) for point, price in zip(points, prices, strict=True)]
    body = [*_grid(across, up), *_least(up, bound), _line(places), *_dots(places, points)]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(body)}</svg>'


def _described(points: Sequence[CurvePart], bound: LowerBoundPart | None) -> str:
    first, last = points[0], points[-1]
    text = f"From {per_hour(first.price_per_hour)} to {per_hour(last.price_per_hour)}"
    least = "" if bound is None else f"; the least possible is {per_hour(bound.price_per_hour)}"
    return f"{text} with {count(last.evictions, 'eviction')}{least}"


def _grid(across: Axis, up: Axis) -> Iterator[str]:
    for value in up.ticks:
        y = up.at(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text class="tick" x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{amount(value)}</text>'
    for value in across.ticks:
        x, text = across.at(value), f"{value:,.0f}"
        yield f'<text class="tick" x="{x}" y="{_BOTTOM + 16}" text-anchor="{anchor(x, text, WIDTH)}">{text}</text>'
    middle = (_LEFT + _RIGHT) / 2
    yield f'<text class="tick" x="{middle}" y="{_BOTTOM + 32}" text-anchor="middle">evictions</text>'


def _least(up: Axis, bound: LowerBoundPart | None) -> Iterator[str]:
    if bound is not None:
        y = up.at(bound.price_per_hour)
        yield f'<line class="least" x1="{_LEFT}" x2="{_RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text class="tick" x="{_LEFT + 4}" y="{y - 4}">least possible</text>'


def _line(places: Sequence[tuple[float, float]]) -> str:
    path = "L".join(f"{x} {y}" for x, y in places)
    return f'<path class="falls" d="M{path}"/>'


def _dots(places: Sequence[tuple[float, float]], points: Sequence[CurvePart]) -> Iterator[str]:
    if len(points) > _MOST_DOTS:
        return
    for (x, y), point in zip(places, points, strict=True):
        when = f"After step {point.step}" if point.step else "Today"
        text = f"{when}: {per_hour(point.price_per_hour)}, {count(point.evictions, 'eviction')}"
        yield f'<circle class="dot" cx="{x}" cy="{y}" r="3"><title>{text}</title></circle>'
