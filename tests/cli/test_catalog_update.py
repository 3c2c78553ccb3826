"""`karpool catalog update`, run as a user runs it: a file that plans can use, or one line and no file."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.catalog.fake_service import Answer, serving, turns
from tests.catalog.test_fetch_azure import item, page
from tests.tables import row, table

from karpool.cli.main import cli

NO_LIBRARIES = """
import sys
for name in ("boto3", "botocore", "google.auth"):
    sys.modules[name] = None
from karpool.cli.main import main
main()
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ("catalog", *arguments))


def update(answer: Any, *arguments: str) -> Result:
    with serving(turns(answer)) as service:
        return run("update", "--cloud", "azure", "--endpoint", service.address, *arguments)


PRICES = page(item(0.2), item(0.05, meter="D4s v5 Spot"), item(0.1, size="Standard_D2s_v5", meter="D2s v5"))


@pytest.mark.parametrize("name", ["prices.json", "prices.json.zst", "prices.json.gz"])
def test_the_file_is_a_catalogue(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    result = update(PRICES, "-o", str(file))
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (
        f"{file}: azure eastus: 2 types; Azure Retail Prices of {today}; karpool plan --catalog {file}\n"
    )
    shown = run("--catalog", str(file), "type=Standard_D4s_v5", "--output", "json")
    document = json.loads(shown.stdout)
    assert document["prices"] == [
        {
            "source": "Azure Retail Prices",
            "cloud": "azure",
            "region": "eastus",
            "date": today,
            "known": True,
            "discounts": [],
        }
    ]
    (entry,) = document["instanceTypes"]
    assert {(o["capacityType"], o["pricePerHour"]) for o in entry["offerings"]} == {("on-demand", 0.2), ("spot", 0.05)}


def test_without_a_file_the_list_goes_to_standard_output() -> None:
    result = update(PRICES)
    assert json.loads(result.stdout)["kind"] == "PriceList"


def test_a_failure_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text("yesterday's")
    result = update(Answer({"error": {"message": "no"}}, 400), "-o", str(file))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "karpool: azure: 127.0.0.1 answers 400 no\n"
    assert file.read_text() == "yesterday's"
    assert list(tmp_path.iterdir()) == [file]


@table(
    row(arguments=["--cloud", "moon"], line="Invalid value for '--cloud'"),
    row(arguments=[], line="Missing option '--cloud'. Choose from: aws, gcp, azure ("),
    row(arguments=["--cloud", "gcp", "--region", "us-east-1"], line="--region: 'us-east-1' is not a region of gcp"),
    row(arguments=["--cloud", "azure", "--region", "x' or 1"], line='--region: "x\' or 1" is not a region of azure'),
    row(arguments=["--cloud", "aws", "--project", "p"], line="--project: goes with --cloud gcp only"),
    row(arguments=["--cloud", "gcp", "--project", "../p"], line="--project: '../p' is not the name of a project"),
    row(arguments=["--cloud", "aws", "--endpoint", "x"], line="--endpoint: 'x' is no address of a service"),
    row(
        arguments=["--cloud", "azure", "-o", "prices.csv"], line="prices.csv: must end in .json.zst, .json.gz or .json"
    ),
    row(arguments=["--cloud", "azure", "-o", "no/such/a.json"], line="no/such/a.json: cannot be written"),
)
def test_bad_input_is_said_in_one_line_before_anything_is_asked(arguments: list[str], line: str) -> None:
    result = run("update", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert line in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_an_extra_that_is_not_installed_is_named(cloud: str) -> None:
    command = [sys.executable, "-c", NO_LIBRARIES, "catalog", "update", "--cloud", cloud]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - this Python, and the code above
    assert done.returncode == 2
    assert (
        done.stderr
        == f"karpool: --cloud: {cloud} needs an extra that is not installed: pip install 'karpool[{cloud}]'\n"
    )


def test_listing_needs_no_word_of_its_own() -> None:
    wanted = ("--catalog", "sample", "family=m6i", "cpu<=4")
    assert run(*wanted).stdout == run("list", *wanted).stdout
    assert run("cpu<=4", "family=m6i", "--catalog", "sample").stdout == run(*wanted).stdout
    assert "karpool catalog update" in run("--help").stdout
    assert "karpool[aws]" in run("update", "--help").stdout
