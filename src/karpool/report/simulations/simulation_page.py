"""A simulation as one self-contained HTML page: plots over time and a table."""

from html import escape
from typing import Any, Final

from karpool.report.formatting import UNKNOWN, names_of
from karpool.report.html import about, render_page
from karpool.report.price_words import prices_words
from karpool.report.simulations.simulation_document import Simulation, money_words, recording_words
from karpool.report.simulations.simulation_plots import (
    COLOURS,
    DEVIATION,
    MEASURES,
    Measure,
    PlotLine,
    clock,
    deviation_lines,
    lines,
    measured_from,
    plot,
    times,
)
from karpool.report.simulations.simulation_table import (
    ROWS,
    Row,
    difference,
    headline,
    nothing_ran,
    shown_rows,
    written,
)
from karpool.virtual.compare import Comparison
from karpool.virtual.curves import DAY

_BIG: Final = next(row for row in ROWS if row.key == "cost")
_SMALL: Final = ("evictions", "nodesAtEnd", "pendingPodsAtEnd")


def simulation_page(document: Simulation, comparison: Comparison) -> str:
    drawn = {measure: lines(comparison, measure) for measure in MEASURES}
    if document.fidelity:
        drawn[DEVIATION] = deviation_lines(comparison, document.fidelity)
    plots = "".join(
        f'<figure class="card"><figcaption>{measure.title} <small>{measure.unit}</small></figcaption>'
        f"{plot(comparison, measure, entries)}</figure>"
        for measure, entries in drawn.items()
    )
    return render_page(
        "simulation.html",
        "simulation.css",
        ("simulation.js",),
        _data(document, comparison, drawn),
        title=escape(document.scenario or "scenario"),
        headline=escape(headline(document)),
        about=about(names_of(comparison.scenario.cluster), prices_words(document.prices)),
        description=escape(document.description),
        legend=_legend(document),
        totals=_totals(document),
        plots=plots,
        table=_table(document),
        note=_note(document),
    )


def _data(document: Simulation, comparison: Comparison, drawn: dict[Measure, list[PlotLine]]) -> dict[str, Any]:
    begin, at = measured_from(comparison), times(comparison)
    return {
        "policies": list(document.policies),
        "times": [clock(begin, time, days=document.length_seconds > DAY) for time in at],
        "units": {measure.key: measure.unit for measure in drawn},
        "values": {measure.key: [entry.mean for entry in entries] for measure, entries in drawn.items()},
    }


def _swatch(number: int) -> str:
    at = number % COLOURS
    return f'<svg class="swatch" viewBox="0 0 28 8" aria-hidden="true"><path class="line s{at}" d="M1 4H27"/></svg>'


def _legend(document: Simulation) -> str:
    return "".join(f"<li>{_swatch(number)}<b>{escape(name)}</b></li>" for number, name in enumerate(document.policies))


def _totals(document: Simulation) -> str:
    base = next(iter(document.policies.values()))
    rows = [row for row in shown_rows(document) if row.key in _SMALL]
    return "".join(
        _card(name, numbers, base, rows, number) for number, (name, numbers) in enumerate(document.policies.items())
    )


def _card(name: str, numbers: dict[str, Any], base: dict[str, Any], rows: list[Row], number: int) -> str:
    change = "" if numbers is base else f" {_pill(_BIG, numbers, base)}"
    facts = ", ".join(f"{written(row, numbers)} {row.title}" for row in rows)
    return (
        f'<div class="card"><p class="label">{_swatch(number)} {escape(name)}</p>'
        f'<p class="big">{escape(written(_BIG, numbers))}{change}</p><p class="quiet">{escape(facts)}</p></div>'
    )


def _pill(row: Row, numbers: dict[str, Any], base: dict[str, Any]) -> str:
    text = difference(row, numbers, base)
    if not text or text in ("=", UNKNOWN):
        return ""
    better = row.less_is_better is not None and (numbers[row.key] < base[row.key]) == row.less_is_better
    kind = "" if row.less_is_better is None else " good" if better else " bad"
    return f'<span class="pill{kind}">{escape(text)}</span>'


def _table(document: Simulation) -> str:
    if not shown_rows(document):
        return f"<p>{nothing_ran(document)}</p>"
    base = next(iter(document.policies.values()))
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in document.policies)
    rows = "".join(
        f'<tr><th scope="row">{escape(row.title)}</th>'
        + "".join(
            f'<td data-of="{escape(name, quote=True)}">'
            f"{escape(written(row, numbers))}{'' if numbers is base else ' ' + _pill(row, numbers, base)}</td>"
            for name, numbers in document.policies.items()
        )
        + "</tr>"
        for row in shown_rows(document)
    )
    return f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _note(document: Simulation) -> str:
    first = escape(next(iter(document.policies)))
    compared = f"Percentages compare with {first}. " if len(document.policies) > 1 else ""
    text = f"{compared}Amounts are what pods request, not what they use. Times are UTC."
    if document.seeds > 1:
        text += (
            f" Means of {document.seeds} seeds; ± is half of the 95% confidence interval; bands in the plots reach from"
            " the lowest to the highest run."
        )
    if document.gaps:
        text += " Shaded: nothing was recorded."
    for words in (*recording_words(document), money_words(document)):
        text += f" {escape(words)}" if words else ""
    return text
