"""`--discount` in every command that knows prices: tables, pages and JSON name what they reckon with."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from karpool.cli.main import cli

EXAMPLES = str(Path(__file__).parents[2] / "examples")
AT = ("-f", EXAMPLES, "--at", "2026-11-15T12:00:00Z")
NAMED = "Prices: aws us-east-1, sample table. Discounts: m6i*=50%."
COMMANDS = {
    "plan": ("plan", *AT, "--effort", "0"),
    "explain": ("explain", "general-7", *AT, "--effort", "0"),
    "catalog": ("catalog", "family=m6i"),
    "compact": ("compact", "--plan", *AT),
    "simulate": ("simulate", "churn", "--length", "1m", "--policy", "after-30s"),
}
FAST = [pytest.param(name, marks=pytest.mark.slow) if name == "simulate" else name for name in COMMANDS]


def run(command: str, *more: str, discount: str = "m6i*=50%") -> Result:
    arguments = (*COMMANDS[command], "--catalog", "sample", "--discount", discount, *more)
    return CliRunner().invoke(cli, arguments, env={"COLUMNS": "200"})


@pytest.mark.parametrize("command", FAST)
def test_json_names_the_discounts_with_the_origin_of_prices(command: str) -> None:
    result = run(command, "--output", "json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    (prices,) = document["end"]["prices"] if command == "compact" else document["prices"]
    assert (prices["cloud"], prices["region"], prices["discounts"]) == ("aws", "us-east-1", ["m6i*=50%"])


@pytest.mark.parametrize("command", ["plan", "explain", "catalog"])
def test_tables_name_them(command: str) -> None:
    assert NAMED in run(command).stdout


def test_pages_name_them() -> None:
    assert NAMED in run("plan", "--output", "html").stdout


def test_a_plan_reckons_with_them() -> None:
    prices = {}
    for discount in ("m6i*=50%", "m6i*=0%"):
        plan = json.loads(run("plan", "--output", "json", discount=discount).stdout)
        prices[discount] = {entry["name"]: entry["pricePerHour"] for entry in plan["nodes"]}
    nodes = prices["m6i*=0%"]
    cheaper = {name for name in nodes if prices["m6i*=50%"][name] == nodes[name] / 2}
    unchanged = {name for name in nodes if prices["m6i*=50%"][name] == nodes[name]}
    assert cheaper
    assert unchanged
    assert cheaper | unchanged == nodes.keys()


@pytest.mark.parametrize("command", FAST)
def test_a_discount_for_another_region_changes_nothing_and_a_line_says_so(command: str) -> None:
    result = run(command, "--output", "json", discount="eu-*/m6i*=50%")
    assert result.exit_code == 0
    assert "karpool: --discount eu-*/m6i*=50% changes nothing: none of the prices are of eu-*\n" in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pattern_that_names_no_type_is_one_line(command: str) -> None:
    result = run(command, discount="m66i*=50%")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "karpool: --discount: 'm66i*=50%': the catalogue has no type 'm66i*'; did you mean m6i?\n"


@pytest.mark.parametrize("arguments", [*COMMANDS.values(), ("run",), ("compact",)], ids=" ".join)
def test_what_is_no_discount_is_one_line_before_anything_is_read(arguments: tuple[str, ...]) -> None:
    for discount, why in (("m6i*=150%", ": 150 % is out of range"), ("m6i*", " is no discount; write TYPES=PERCENT%")):
        result = CliRunner().invoke(cli, (*arguments, "--discount", discount))
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"karpool: --discount: '{discount}'{why}")
        assert result.stderr.count("\n") == 1
