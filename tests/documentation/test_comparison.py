"""The figures of the comparison are those that the repository prints, or has printed on the page of the benchmark."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.tables import row, table

from karpool.cli.main import cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "comparison.md").read_text()


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@table(
    row("live", page="peers.md", head="| price before | 25.19"),
    row("search", page="optimization.md", head="| `prefix` | 486.46"),
    row("off-hours", page="simulation.md", head="| nodes at the end | 40"),
)
def test_rows_of_a_benchmark_are_those_of_its_own_page(page: str, head: str) -> None:
    (block,) = (block for block in PAGE.split("\n\n") if any(line.startswith(head) for line in block.splitlines()))
    rows = [line for line in block.splitlines() if re.match(r"\| [a-z`]", line)]
    assert len(rows) > 1
    known = (ROOT / "docs" / page).read_text().splitlines()
    assert [line for line in rows if line not in known] == []


@pytest.mark.parametrize("number", [0, 1])
def test_the_example_is_planned_as_the_page_says(number: int) -> None:
    commands = re.findall(r"^    karpool (plan .*)$", section("Karpenter's own consolidation"), flags=re.MULTILINE)
    words = commands[number].replace("-f examples", f"-f {ROOT / 'examples'}").split()
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.stderr
    figures = re.findall(r"^\| (?:`--search prefix`|the default) \|(.*)\|$", PAGE, flags=re.MULTILINE)[number]
    price, saved, above, evictions = (cell.strip() for cell in figures.split("|"))
    assert f"| -> | {price} $/h |" in result.stdout
    assert f"({saved})" in result.stdout
    assert f"Within {above} of the least possible" in result.stdout
    assert f" of {evictions} evictions" in result.stdout
