"""Cost against evictions of all settings as SVG: those that no other beats are joined and numbered."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from karpool.report.formatting import amount, count
from karpool.report.plot_axes import Axis, axis
from karpool.report.plot_labels import anchor
from karpool.report.simulations.sweep_document import SettingPart, SweepDocument

WIDTH: Final = 720
HEIGHT: Final = 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 704, 14, 312


def sweep_plot(document: SweepDocument) -> str:
    """The settings as points; empty if there are none."""
    if not document.settings:
        return ""
    front = [part for part in document.settings if part.on_front]
    front.sort(key=lambda part: part.measures["evictions"].mean)
    across = _axis_of(document.settings, front, "evictions", (_LEFT, _RIGHT))
    up = _axis_of(document.settings, front, "cost", (_BOTTOM, _TOP))
    label = escape(_described(document, front), quote=True)
    body = [
        *_grid(across, up),
        *(_dot(part, across, up) for part in document.settings if not part.on_front),
        _line(front, across, up),
        *(whisker for part in front for whisker in _whiskers(part, across, up)),
        *(_dot(part, across, up) for part in front),
    ]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(body)}</svg>'


def _axis_of(
    settings: Sequence[SettingPart], front: Sequence[SettingPart], name: str, ends: tuple[float, float]
) -> Axis:
    """Room for all means, and for the intervals of the front."""
    values = [part.measures[name].mean for part in settings]
    for part in front:
        measure = part.measures[name]
        values += [end for end in (measure.low, measure.high) if end is not None]
    return axis(max(0.0, min(values)), max(values), *ends)


def _described(document: SweepDocument, front: Sequence[SettingPart]) -> str:
    return f"{count(len(document.settings), 'setting')}; no other beats these: " + "; ".join(map(words, front))


def words(part: SettingPart) -> str:
    """A setting with its cost and evictions."""
    setting = ", ".join(f"{name} {value}" for name, value in part.setting.items())
    measures = part.measures
    return f"{part.number}: {setting}: {amount(measures['cost'].mean)} $, {measures['evictions'].mean:,.1f} evictions"


def _grid(across: Axis, up: Axis) -> Iterator[str]:
    for value in up.ticks:
        y = up.at(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text class="tick" x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{amount(value)} $</text>'
    for value in across.ticks:
        x, text = across.at(value), f"{value:,g}"
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{_BOTTOM}"/>'
        yield f'<text class="tick" x="{x}" y="{_BOTTOM + 16}" text-anchor="{anchor(x, text, WIDTH)}">{text}</text>'
    middle = (_LEFT + _RIGHT) / 2
    yield f'<text class="tick" x="{middle}" y="{_BOTTOM + 34}" text-anchor="middle">evictions</text>'


def _place(part: SettingPart, across: Axis, up: Axis) -> tuple[float, float]:
    return across.at(part.measures["evictions"].mean), up.at(part.measures["cost"].mean)


def _line(front: Sequence[SettingPart], across: Axis, up: Axis) -> str:
    """Steps: between two points of the front, more evictions alone buy nothing."""
    path, last = "", 0.0
    for part in front:
        x, y = _place(part, across, up)
        path += f"L{x} {last}L{x} {y}" if path else f"M{x} {y}"
        last = y
    return f'<path class="front" d="{path}"/>' if path else ""


def _whiskers(part: SettingPart, across: Axis, up: Axis) -> Iterator[str]:
    x, y = _place(part, across, up)
    evictions, cost = part.measures["evictions"], part.measures["cost"]
    if evictions.low is not None and evictions.high is not None:
        low, high = across.at(max(across.ticks[0], evictions.low)), across.at(evictions.high)
        yield f'<line class="whisker" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>'
    if cost.low is not None and cost.high is not None:
        low, high = up.at(max(up.ticks[0], cost.low)), up.at(cost.high)
        yield f'<line class="whisker" x1="{x}" x2="{x}" y1="{low}" y2="{high}"/>'


def _dot(part: SettingPart, across: Axis, up: Axis) -> str:
    x, y = _place(part, across, up)
    title = f"<title>{escape(words(part))}</title>"
    if not part.on_front:
        return f'<circle class="beaten" cx="{x}" cy="{y}" r="3.5">{title}</circle>'
    number = f'<text class="mark" x="{x + 7}" y="{y - 6}">{part.number}</text>'
    return f'<circle class="chosen" cx="{x}" cy="{y}" r="4.5">{title}</circle>{number}'
