"""The pictures and tables of docs/optimization.md, from what the benchmarks print.

    python benchmarks/quality.py --eviction-prices 0 0.004 0.008 0.016 --json > quality.json
    python benchmarks/plan.py --nodes 100 500 1000 2000 5000 --json > plans.json
    python benchmarks/applied.py --json > applied.json
    python benchmarks/pictures.py --quality quality.json --plans plans.json --applied applied.json docs

`search-quality.svg`: how far prefixes and the global search end above the best lower bound, cluster by cluster.
`search-evictions.svg`: what each price of an eviction comes to, over all clusters. Tables stand between
`<!-- quality -->`, `<!-- sizes -->` or `<!-- applied -->` and `<!-- end -->`.
"""

import argparse
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

import msgspec

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 700, 44, 310
STYLE: Final = (
    "text{font:12px sans-serif;fill:#333}.title{font-weight:bold;font-size:14px}.grid{stroke:#ddd}.axis{stroke:#666}"
    ".prefix{fill:#d55e00}.priced{fill:#0072b2}.free{fill:#009e73}.bound{stroke:#333;stroke-dasharray:5 4}"
    ".curve{fill:none;stroke:#0072b2;stroke-width:1.5}"
)
PREFIX: Final = "prefix"
Document = dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """Values from low to high on a line of the picture."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Where a value stands."""
        return round(self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low), 1)

    def ticks(self) -> Iterator[float]:
        """Round values between low and high, about six of them."""
        rough = (self.high - self.low) / 6
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        for number in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1):
            yield round(number * step, 10)


def words_at(x: float, y: float, words: str, *, anchor: str = "start", style: str = "") -> str:
    named = f' class="{style}"' if style else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{named}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{style}"/>'


def mark(kind: str, x: float, y: float) -> str:
    """A square for prefixes, a circle at the default price of an eviction, a triangle at no price."""
    if kind == PREFIX:
        return f'<rect x="{x - 4}" y="{y - 4}" width="8" height="8" class="prefix"/>'
    if kind == "priced":
        return f'<circle cx="{x}" cy="{y}" r="4.5" class="priced"/>'
    return f'<path d="M{x - 5},{y + 4} L{x + 5},{y + 4} L{x},{y - 5} Z" class="free"/>'


def picture(title: str, body: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title, quote=True)}">\n<style>{STYLE}</style>\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def frame(vertical: Axis, title: str, unit: str) -> list[str]:
    """The title, and a line for each tick of the vertical axis."""
    body = [words_at(LEFT, 20, title, style="title"), words_at(8, TOP - 12, unit)]
    for value in vertical.ticks():
        y = vertical.at(value)
        body += [line(LEFT, y, RIGHT, y, "grid"), words_at(LEFT - 8, y + 4, f"{value:g}", anchor="end")]
    return [*body, line(LEFT, BOTTOM, RIGHT, BOTTOM, "axis")]


def legend(entries: Sequence[tuple[str, str]], y: float) -> Iterator[str]:
    x = float(LEFT)
    for kind, words in entries:
        yield mark(kind, x + 5, y - 4)
        yield words_at(x + 16, y, words)
        x += 32 + 6.4 * len(words)


def plan_names(found: Document) -> tuple[str, str]:
    """The plans of a document with evictions for nothing, and at the second price that was measured."""
    names = [name for name in found["sum"]["plans"] if name != PREFIX]
    free = next(name for name in names if float(name.split()[1]) == 0)
    return free, "global 0.004" if "global 0.004" in names else names[-1]


def quality(found: Document) -> str:
    """How far above the best bound plans end, cluster by cluster."""
    free, priced = plan_names(found)
    clusters = found["clusters"]
    plans = (("free", free), ("priced", priced), (PREFIX, PREFIX))
    above = [[100 * (case["plans"][name]["aboveBest"] - 1) for case in clusters] for _, name in plans]
    highest = max(value for row in above for value in row)
    vertical = Axis(0.0, math.ceil(highest / 5) * 5.0, BOTTOM, TOP)
    horizontal = Axis(0.5, len(clusters) + 0.5, LEFT, RIGHT)
    title = f"End price above the best lower bound, {len(clusters)} clusters of {found['nodes']} nodes"
    body = frame(vertical, title, "%")
    for place, case in enumerate(clusters, start=1):
        x = horizontal.at(place)
        body.append(words_at(x, BOTTOM + 16, str(case["seed"]), anchor="middle"))
        body += [mark(kind, x, vertical.at(row[place - 1])) for (kind, _), row in zip(plans, above, strict=True)]
    entries = [(PREFIX, "prefix"), ("priced", f"{priced} $/h an eviction"), ("free", "global, evictions for nothing")]
    body += legend(entries, HEIGHT - 12)
    return picture(title, body)


def evictions(found: Document) -> str:
    """Price against evictions: one point for each price of an eviction, and one for prefixes."""
    whole = found["sum"]
    curve = [(name.split()[1], row) for name, row in whole["plans"].items() if name != PREFIX]
    rows = [row for _, row in curve] + [whole["plans"][PREFIX]]
    bound = whole["bestBound"]
    most = max(row["evictions"] for row in rows)
    dearest = max(row["priceAfter"] for row in rows)
    vertical = Axis(bound - 0.08 * (dearest - bound), dearest + 0.05 * (dearest - bound), BOTTOM, TOP)
    horizontal = Axis(0.0, most * 1.06, LEFT, RIGHT)
    title = f"Price against evictions, sum of {len(found['clusters'])} clusters of {found['nodes']} nodes"
    body = frame(vertical, title, "$/h")
    body += [
        words_at(horizontal.at(value), BOTTOM + 16, f"{value:,.0f}", anchor="middle") for value in horizontal.ticks()
    ]
    body.append(words_at(RIGHT, BOTTOM + 34, "evictions", anchor="end"))
    body += [line(LEFT, vertical.at(bound), RIGHT, vertical.at(bound), "bound")]
    body.append(words_at(RIGHT, vertical.at(bound) - 6, f"best lower bound {bound:.2f}", anchor="end"))
    points = [(horizontal.at(row["evictions"]), vertical.at(row["priceAfter"])) for _, row in curve]
    body.append(f'<polyline class="curve" points="{" ".join(f"{x},{y}" for x, y in points)}"/>')
    for (price, _), (x, y) in zip(curve, points, strict=True):
        body += [mark("priced", x, y), words_at(x + 8, y - 7, price)]
    prefix = whole["plans"][PREFIX]
    x, y = horizontal.at(prefix["evictions"]), vertical.at(prefix["priceAfter"])
    body += [mark(PREFIX, x, y), words_at(x + 8, y - 7, "prefix")]
    body += legend([(PREFIX, "prefix"), ("priced", "global, by the price of an eviction in $/h")], HEIGHT - 12)
    return picture(title, body)


def quality_table(found: Document) -> str:
    """The sums of all clusters, one line for each plan."""
    whole = found["sum"]
    lines = [
        "| | $/h | above the LP bound | above the best bound | evictions | $/h saved by each | commands | CPU s |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        f"| before | {whole['priceBefore']:.2f} | | | | | | |",
    ]
    for name, row in whole["plans"].items():
        title = "`prefix`" if name == PREFIX else f"`global`, eviction price {name.split()[1]}"
        lines.append(
            f"| {title} | {row['priceAfter']:.2f} | {100 * (row['aboveLinear'] - 1):.1f} % "
            f"| {100 * (row['aboveBest'] - 1):.1f} % | {row['evictions']:,} | {row['savedPerEviction']:.4f} "
            f"| {row['commands']:,} | {row['seconds']:.0f} |"
        )
    lines.append(f"| best lower bound | {whole['bestBound']:.2f} | | | | | | |")
    lines.append(f"| lower bound of the LP | {whole['linearBound']:.2f} | | | | | | |")
    return "\n".join(lines)


def size_table(plans: Sequence[Document]) -> str:
    """One line for each plan of each size."""
    lines = [
        "| nodes | search | $/h before | $/h after | above the LP bound | evictions | first command | in all | MB |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['nodes']:,} | `{row['search']}` | {row['priceBefore']:,.2f} | {row['priceAfter']:,.2f} "
        f"| {100 * (row['aboveBound'] - 1):.1f} % | {row['evictions']:,} | {row['firstConsolidationSeconds']:.1f} s "
        f"| {row['decideSeconds']:.1f} s | {row['peakMemoryMB']:,} |"
        for row in plans
    ]
    return "\n".join(lines)


def applied_table(rows: Sequence[Document]) -> str:
    """One line for each search and each way to schedule."""
    titles = "search | scheduler | foreseen | $/h before | planned | reached | dearer | evictions planned | done"
    lines = [f"| {titles} | nodes launched |", "|---|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for row in rows:
        foreseen = "yes" if row["foreseen"] else "no"
        lines.append(
            f"| `{row['search']}` | {row['scheduler']} | {foreseen} | {row['priceBefore']:.2f} "
            f"| {row['pricePlanned']:.2f} | {row['priceReached']:.2f} | {row['dearerPercent']:.1f} % "
            f"| {row['evictionsPlanned']:,} | {row['evictions']:,} "
            f"| {row['launches']} instead of {row['launchesPlanned']} |"
        )
    return "\n".join(lines)


def replaced(page: str, name: str, table: str) -> str:
    """The page with a table made anew."""
    pattern = rf"(<!-- {name} -->\n).*?(?=<!-- end -->)"
    return re.sub(pattern, lambda match: f"{match[1]}{table}\n", page, flags=re.DOTALL)


def lines_of(path: Path) -> list[Document]:
    """A file with one JSON object in each line."""
    return [msgspec.json.decode(text) for text in path.read_bytes().splitlines()]


def main() -> None:
    """Draw, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quality", type=Path, help="what quality.py --json printed")
    parser.add_argument("--plans", type=Path, help="what plan.py --json printed")
    parser.add_argument("--applied", type=Path, help="what applied.py --json printed")
    parser.add_argument("folder", type=Path, help="of the documentation")
    given = parser.parse_args()
    page = given.folder / "optimization.md"
    text = page.read_text()
    if given.quality is not None:
        found = msgspec.json.decode(given.quality.read_bytes())
        images = given.folder / "images"
        images.mkdir(exist_ok=True)
        (images / "search-quality.svg").write_text(quality(found))
        (images / "search-evictions.svg").write_text(evictions(found))
        text = replaced(text, "quality", quality_table(found))
    if given.plans is not None:
        text = replaced(text, "sizes", size_table(lines_of(given.plans)))
    if given.applied is not None:
        text = replaced(text, "applied", applied_table(lines_of(given.applied)))
    page.write_text(text)


if __name__ == "__main__":
    main()
