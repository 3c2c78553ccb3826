"""A sweep as one self-contained HTML page: cost against evictions, all numbers, and what to change."""

from collections.abc import Iterable, Iterator
from html import escape

from karpool.report.formatting import names_of
from karpool.report.html import about, render_page
from karpool.report.price_words import prices_words
from karpool.report.simulations.sweep_document import ChangePart, SettingPart, SweepDocument
from karpool.report.simulations.sweep_plot import sweep_plot, words
from karpool.report.simulations.sweep_table import headline, notes, numbers, ranked, state
from karpool.report.what_if.what_if_yaml import as_yaml


def sweep_page(document: SweepDocument) -> str:
    names = names_of([part.name for part in document.inputs])
    return render_page(
        "sweep.html",
        "simulation.css",
        (),
        {},
        title=escape(names),
        about=about(names, prices_words(document.prices)),
        headline=escape(headline(document)),
        plot=sweep_plot(document),
        table=_table(document),
        changes="".join(_changes(document)) or "<p>Nothing was tried.</p>",
        note=escape(" ".join(notes(document, len(document.settings)))),
    )


def _table(document: SweepDocument) -> str:
    if not document.settings:
        return "<p>No setting was tried.</p>"
    heads = ["no", *document.settings[0].setting, "cost", "evictions", "time pods waited", "nodes launched", ""]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    parts = ranked(document)
    rows = "".join(_row(part, written, heads) for part, written in zip(parts, numbers(parts, document), strict=True))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(part: SettingPart, numbers_of_it: Iterable[str], heads: list[str]) -> str:
    cells = [*part.setting.values(), *numbers_of_it, state(part)]
    written = "".join(
        f'<td data-of="{escape(name, quote=True)}">{escape(text)}</td>'
        for name, text in zip(heads[1:], cells, strict=True)
    )
    return f'<tr><th scope="row">{part.number}</th>{written}</tr>'


def _changes(document: SweepDocument) -> Iterator[str]:
    for part in ranked(document):
        if part.on_front:
            listed = "".join(_change(change) for change in part.changes)
            yield f'<details class="change"><summary>{escape(words(part))}</summary>{listed}</details>'


def _change(change: ChangePart) -> str:
    lines = [f"# {change.input}"]
    for name, patch in change.patches.items():
        lines += [f"# kubectl patch nodepool {name} --type merge --patch-file FILE", as_yaml(patch)]
    if change.options:
        lines.append(f"# karpool run {' '.join(change.options)}")
    lines += [f"# by hand: {text}" for text in change.by_hand]
    if len(lines) == 1:
        lines.append("# nothing is to be changed")
    return f"<pre>{escape(chr(10).join(lines))}</pre>"
