"""`karpool catalog`: the table, the document and the options."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from karpool.cli.catalog import catalog
from karpool.wire.problems import InputError


def run(*arguments: str) -> Result:
    return CliRunner().invoke(catalog, arguments)


def listed(*arguments: str) -> list[dict[str, Any]]:
    result = run(*arguments, "--output", "json")
    assert result.exit_code == 0, result.output
    types: list[dict[str, Any]] = json.loads(result.stdout)["instanceTypes"]
    return types


def rows(*arguments: str) -> list[list[str]]:
    """The cells of the table, the heading first, without the rule below it and the sentence at the end."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    heading, _, *lines = result.stdout.splitlines()[:-2]
    return [[cell.strip() for cell in line.split("|")] for line in (heading, *lines)]


def test_the_table_lists_types_from_the_cheapest_to_the_dearest() -> None:
    heading, *types = rows("--catalog", "sample", "family=m6i", "cpu<=8")
    assert heading[:4] == ["type", "arch", "os", "cpu"]
    assert [row[0] for row in types] == ["m6i.large", "m6i.xlarge", "m6i.2xlarge"]
    assert types[0][3:] == ["2", "8 GiB", "", "29", "1.93", "6.74 GiB", "0.096", "0.0384", "us-east-1(a,b,c,d)"]


def test_a_price_that_nobody_knows_is_a_question_mark_and_null(tmp_path: Path) -> None:
    file = tmp_path / "types.json"
    place = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    entry = {"name": "rack-7", "architecture": "amd64", "resources": {"cpu": 4, "memory": "8Gi"}}
    file.write_text(json.dumps([{**entry, "offerings": [{"Requirements": [place]}]}]))
    heading, row = rows("--catalog", str(file))
    cells = dict(zip(heading, row, strict=True))
    assert (cells["on-demand $/h"], cells["spot $/h"]) == ("?", "-")
    (listing,) = listed("--catalog", str(file), "--node-fee", "0.03")
    assert listing["pricePerHour"] is None
    assert listing["offerings"][0]["pricePerHour"] is None


def test_the_document_says_all_about_a_type() -> None:
    (listing,) = listed("--catalog", "sample", "type=c5.large", "zone=us-east-1b")
    assert listing["capacity"] == {"cpu": "2", "memory": "4Gi", "pods": "29", "ephemeral-storage": "20Gi"}
    assert listing["allocatable"]["cpu"] == "1930m"
    assert listing["pricePerHour"] == 0.034
    assert listing["labels"]["kubernetes.io/arch"] == ["amd64"]
    assert listing["offerings"] == [
        {"zone": "us-east-1b", "capacityType": "on-demand", "pricePerHour": 0.085, "available": True},
        {"zone": "us-east-1b", "capacityType": "spot", "pricePerHour": 0.034, "available": True},
    ]


def test_prices_can_be_set_from_the_command_line() -> None:
    options = [
        "--catalog",
        "sample",
        "--price",
        "m5.large=0.08",
        "--price",
        "m5.large:spot=0.02",
        "--price-factor",
        "0.5",
        "--node-fee",
        "0.03",
    ]
    listing = {entry["name"]: entry for entry in listed("type in (m5.large,m5.xlarge)", "zone=us-east-1a", *options)}
    assert [sold["pricePerHour"] for sold in listing["m5.large"]["offerings"]] == [0.11, 0.05]
    assert [sold["pricePerHour"] for sold in listing["m5.xlarge"]["offerings"]] == [0.126, 0.0684]


def test_another_source_can_be_named() -> None:
    assert len(listed("--catalog", "kwok")) == 144
    assert {entry["name"] for entry in listed("--catalog", "kwok", "cpu=1", "family=c", "arch=arm64")} == {
        "c-1x-arm64-linux",
        "c-1x-arm64-windows",
    }


def test_nothing_found_is_no_error() -> None:
    result = run("cpu>=100000")
    said, prices = result.stdout.splitlines()
    assert (result.exit_code, said) == (0, "0 instance types. Prices are the cheapest of the zones.")
    assert prices == "Prices: aws us-east-1, public price list of 2026-08-22."


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["colour=red"], "expression: 'colour=red': unknown key 'colour'"),
        (["--price", "m5.larg=1"], "--price: the catalogue has no type m5.larg"),
        (["--price", "cheap"], "--price: 'cheap' is no price"),
        (["--discount", "m77*=31%"], "--discount: 'm77*=31%': the catalogue has no type 'm77*'"),
        (["--discount", "m7*=131%"], "--discount: 'm7*=131%': 131 % is out of range"),
        (["--node-fee", "-1"], "--node-fee: -1.0 must be a number that is not negative"),
        (["--catalog", "no/such/file"], "no/such/file: does not exist"),
    ],
)
def test_bad_input_is_said_in_one_line(arguments: list[str], line: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(line)
    assert result.stdout == ""


def test_the_help_shows_how_to_write_expressions() -> None:
    text = run("--help").stdout
    assert all(word in text for word in ("EXPRESSIONS", "KEYS", "EXAMPLES", "EXIT STATUS", "--node-fee"))


def test_prices_of_one_column_have_as_many_decimals() -> None:
    table = run("--catalog", "sample", "arch=amd64").stdout
    rows = [line.split("|") for line in table.splitlines()[2:] if line.count("|") > 5]
    decimals = [{len(row[at].strip().partition(".")[2]) for row in rows if "." in row[at]} for at in (9, 10)]
    assert [len(found) for found in decimals] == [1, 1], decimals
