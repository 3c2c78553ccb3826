"""Who pays, as a table of a page."""

from html import escape
from typing import Final

from karpool.report.costs_document import CostGroupPart, CostPart, CostsPart
from karpool.report.costs_words import NO_LABEL, grouped_by, has_costs
from karpool.report.formatting import UNKNOWN, amount

_HEAD: Final = "".join(f'<th scope="col">{title}</th>' for title in ("", "pods", "$/h today", "$/h after"))


def costs_html(costs: CostsPart) -> str:
    """A card with a row for each group."""
    others = [entry for entry in (costs.headroom, costs.system, costs.idle) if has_costs(entry)]
    rows = "".join(_row(entry, entry.name or NO_LABEL) for entry in costs.groups)
    rest = "".join(_row(entry, entry.name) for entry in (*others, costs.total))
    return (
        f'<section class="card costs"><h2>Who pays, by {escape(grouped_by(costs))}</h2><div class="wide"><table>'
        f"<thead><tr>{_HEAD}</tr></thead><tbody>{rows}</tbody><tfoot>{rest}</tfoot></table></div></section>"
    )


def _row(entry: CostGroupPart, name: str) -> str:
    cells = (f"{entry.before.pods:,}" if entry.before.pods else "", _price(entry.before), _price(entry.after))
    return f'<tr><th scope="row">{escape(name)}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _price(part: CostPart) -> str:
    partly = part.unpriced and part.price_per_hour is not None
    return f"{amount(part.price_per_hour)} + {UNKNOWN}" if partly else amount(part.price_per_hour)
