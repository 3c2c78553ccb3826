"""Tables on terminals of every width: numbers are whole, and what does not fit is named."""

import io
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.report import samples

from karpool.cli.main import cli
from karpool.report.plan_table import print_plan
from karpool.report.table_layout import TableColumn
from karpool.report.terminal import Screen, right, wrapped

EXAMPLES = str(Path(__file__).parents[2] / "examples")
NOON = "2026-11-15T12:00:00Z"
NUMBER = re.compile(r"(?<![\w.,:/-])[-+]?[0-9][0-9.,]*(?![\w.,:/-])")
WIDTHS = range(60, 201)
COLUMNS = ("name", right("pods"), right("price", spare=1), TableColumn("zone", spare=2), wrapped("why"))
ROW = ("a-node-with-a-long-name", "1,234,567", "12.3456", "us-east-1a", "because 12345678901234567890 pods are on it")


def printed(width: int) -> str:
    out = io.StringIO()
    Screen(out, plain=True, width=width).table(COLUMNS, [ROW])
    return out.getvalue()


def numbers(text: str) -> Counter[str]:
    return Counter(NUMBER.findall(text))


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_numbers_are_never_cut(width: int) -> None:
    text = printed(width)
    assert max(map(len, text.splitlines())) <= width
    assert "1,234,567" in text
    for cell, title in ((ROW[2], "price"), (ROW[3], "zone")):
        assert (cell in text) != (title in text.partition("Left out")[2])


def test_what_does_not_fit_is_left_out_by_its_importance() -> None:
    left_out = [printed(width).partition("Left out for lack of width: ")[2] for width in range(45, 110)]
    assert "zone.\n" in left_out
    assert "price, zone.\n" in left_out
    assert left_out[-1] == ""


def test_a_column_without_a_title_is_named_when_it_is_left_out() -> None:
    out = io.StringIO()
    Screen(out, plain=True, width=20).table(("a", right("", spare=1, name="change")), [("x" * 12, "1234567890")])
    assert "Left out for lack of\nwidth: change." in out.getvalue()


def command(*arguments: str) -> Callable[[int], str]:
    def at(width: int) -> str:
        return CliRunner(env={"COLUMNS": str(width)}).invoke(cli, arguments).stdout

    return at


def plan_table(width: int) -> str:
    out = io.StringIO()
    print_plan(samples.small()[0], Screen(out, plain=True, width=width), every_node=True)
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "widths"),
    [
        (plan_table, WIDTHS),
        (command("catalog", "cpu=16"), range(60, 201, 20)),
        (command("validate", "-f", EXAMPLES), range(60, 201, 35)),
        (command("explain", "general-7", "-f", EXAMPLES, "--at", NOON, "--effort", "0"), range(60, 201, 70)),
        (command("simulate", "weights-gpu", "--length", "10m"), range(60, 201, 70)),
    ],
)
def test_every_number_of_a_narrow_table_is_one_of_the_widest(table: Callable[[int], str], widths: range) -> None:
    whole = numbers(table(1000))
    assert whole.total() > 5
    for width in widths:
        text = table(width)
        extra = numbers(text) - whole
        assert not extra, (width, extra)
        assert max(map(len, text.splitlines())) <= width


@pytest.mark.slow
def test_a_long_plan_ends_as_it_begins() -> None:
    plan = samples.large(2000)[0]
    out = io.StringIO()
    print_plan(plan, Screen(out, plain=True, width=160), every_node=True)
    last = out.getvalue().splitlines()[-1]
    assert last.startswith(f"In all: {plan.before.nodes:,} -> {plan.after.nodes:,} nodes, ")


def test_without_all_a_plan_of_thousands_of_nodes_stays_short() -> None:
    out = io.StringIO()
    print_plan(samples.large(3000)[0], Screen(out, plain=True, width=160), every_node=False)
    assert len(out.getvalue().splitlines()) < 200
    assert "more; --all lists them" in out.getvalue()


def test_without_a_command_the_help_is_printed() -> None:
    result = CliRunner().invoke(cli, [])
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage:")
    assert result.stderr == ""
