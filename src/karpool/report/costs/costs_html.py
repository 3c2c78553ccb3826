"""Who pays, as a table of a page."""

from html import escape
from typing import Final

from karpool.report.costs.costs_document import CostGroupPart, CostPart, CostsPart
from karpool.report.costs.costs_words import NO_LABEL, grouped_by, has_costs
from karpool.report.formatting import UNKNOWN, amounts

_HEAD: Final = "".join(f'<th scope="col">{title}</th>' for title in ("", "pods", "$/h today", "$/h after"))


def costs_html(costs: CostsPart) -> str:
    """A card with a row for each group."""
    others = [entry for entry in (costs.headroom, costs.system, costs.idle) if has_costs(entry)]
    entries = [*costs.groups, *others, costs.total]
    prices = iter(amounts(part.price_per_hour for entry in entries for part in (entry.before, entry.after)))
    lines = [_row(entry, entry.name or NO_LABEL, next(prices), next(prices)) for entry in entries]
    rows, rest = ("".join(part) for part in (lines[: len(costs.groups)], lines[len(costs.groups) :]))
    return (
        f'<section class="card costs"><h2>Who pays, by {escape(grouped_by(costs))}</h2><div class="wide"><table>'
        f"<thead><tr>{_HEAD}</tr></thead><tbody>{rows}</tbody><tfoot>{rest}</tfoot></table></div></section>"
    )


def _row(entry: CostGroupPart, name: str, before: str, after: str) -> str:
    pods = f"{entry.before.pods:,}" if entry.before.pods else ""
    cells = (pods, _price(entry.before, before), _price(entry.after, after))
    return f'<tr><th scope="row">{escape(name)}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _price(part: CostPart, known: str) -> str:
    return f"{known} + {UNKNOWN}" if part.unpriced and part.price_per_hour is not None else known
