"""What `karpool lint` found, for people: rule by rule, with why it matters and what to do."""

from itertools import groupby
from typing import Final

from karpool.report.checks.lint_document import FindingPart, LintDocument
from karpool.report.formatting import HOURS_PER_MONTH, UNKNOWN, count
from karpool.report.terminal import Screen, right, wrapped

_MOST_SHOWN: Final = 20


def print_lint(document: LintDocument, screen: Screen, *, everything: bool = False) -> None:
    for code, found in groupby(document.findings, key=lambda part: part.code):
        _print_rule(code, list(found), screen, everything=everything)
    counts = {level: sum(part.severity == level for part in document.findings) for level in ("error", "warning")}
    if document.findings:
        screen.heading(f"{count(counts['error'], 'error')}, {count(counts['warning'], 'warning')}.")
        if any(part.about_money for part in document.findings):
            screen.line("Costs are what today's pods need not cost; the same money may be behind two findings.")
    else:
        screen.line(f"Nothing found by {document.rules} rules.")


def _print_rule(code: str, parts: list[FindingPart], screen: Screen, *, everything: bool) -> None:
    first = parts[0]
    screen.heading(f"{first.severity} {code}: {first.title}")
    screen.line(first.why)
    screen.line(first.action)
    money = any(part.about_money for part in parts)
    shown = parts if everything else parts[:_MOST_SHOWN]
    columns = [wrapped("object"), *([right("$/month")] if money else []), wrapped("what is so")]
    rows = [[part.object, *([_cost(part)] if money else []), part.message] for part in shown]
    screen.table(columns, rows)
    if len(shown) < len(parts):
        screen.line(f"… and {len(parts) - len(shown):,} more; --all lists every one")


def _cost(part: FindingPart) -> str:
    if not part.about_money:
        return ""
    return UNKNOWN if part.cost_per_hour is None else f"{part.cost_per_hour * HOURS_PER_MONTH:,.0f}"
