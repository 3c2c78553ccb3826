"""Catalogues of installed packages: `--catalog NAME` finds the entry point of that name."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.installed_packages import install

from karpool.catalog.sources import GROUP, open_catalog
from karpool.cli.catalog import catalog
from karpool.cli.main import cli
from karpool.wire.problems import InputError

Install = Callable[..., None]
WHOLE = """
from karpool.catalog.sources import open_catalog

def types():
    return [entry for entry in open_catalog("kwok").types if entry.name.startswith("c-1x")]
"""


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Install:
    """Install a package `racks` whose function `types` is the catalogue `cellar`."""

    def put(code: str, name: str = "racks") -> None:
        install(monkeypatch, tmp_path / name, name, code=code, group=GROUP, entries={"cellar": f"{name}:types"})

    return put


def test_a_catalogue_of_an_installed_package_is_opened_by_its_name(installed: Install) -> None:
    installed(WHOLE)
    result = CliRunner().invoke(catalog, ["--catalog", "cellar", "--output", "json"])
    assert result.exit_code == 0, result.output
    names = [entry.name for entry in open_catalog("cellar").types]
    assert names
    assert all(name in result.stdout for name in names)


def test_prices_of_the_user_apply_to_it(installed: Install) -> None:
    installed(WHOLE)
    entry = open_catalog("cellar").types[0]
    halved = open_catalog("cellar", factor=0.5).types[0]
    assert halved.offerings[0].price == pytest.approx((entry.offerings[0].price or 0.0) / 2)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nothing_of_the_kind", "cannot be loaded: ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
        ("other = 1", "cannot be loaded: AttributeError: module 'racks' has no attribute 'types'"),
        ("def types():\n    return 1 / 0", "failed: ZeroDivisionError: division by zero"),
        ("def types():\n    return ['m5.large']", "did not return instance types"),
        ("def types():\n    return []", "did not return instance types"),
    ],
)
def test_a_broken_package_is_named_in_one_line(code: str, message: str, installed: Install) -> None:
    installed(code)
    with pytest.raises(InputError) as error:
        open_catalog("cellar")
    assert str(error.value) == f"--catalog: 'cellar' of package racks 1.0 (racks:types) {message}"


def test_two_packages_with_one_name_are_both_named(installed: Install) -> None:
    installed(WHOLE)
    installed(WHOLE, "shelves")
    with pytest.raises(InputError, match=r"'cellar' is offered by racks 1.0 and shelves 1.0; uninstall all but one"):
        open_catalog("cellar")


@pytest.mark.parametrize(("name", "hint"), [("attic", ""), ("celar", "; did you mean cellar?")])
def test_a_name_that_nobody_offers_is_refused_with_those_that_exist(installed: Install, name: str, hint: str) -> None:
    installed(WHOLE)
    result = CliRunner().invoke(cli, ["catalog", "--catalog", name])
    assert result.exit_code == 2
    there_are = "aws, azure, cellar, gcp, kwok, sample"
    message = f"karpool: --catalog: there is no catalogue or file {name!r}; there are {there_are}{hint}\n"
    assert result.stderr == message


def test_a_scenario_names_a_catalogue_of_an_installed_package(installed: Install, tmp_path: Path) -> None:
    installed(WHOLE)
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "length: 10m\ncatalog: cellar\npools: [{metadata: {name: a}}]\nprices: {c-1x-amd64-linux: 0.5}\n"
    )
    result = CliRunner().invoke(cli, ["simulate", str(scenario)])
    assert result.exit_code == 0, result.output
    scenario.write_text(scenario.read_text().replace("c-1x-", "s-1x-"))
    result = CliRunner().invoke(cli, ["simulate", str(scenario)])
    assert (result.exit_code, "the catalogue has no type s-1x-amd64-linux" in result.stderr) == (2, True)
    scenario.write_text(scenario.read_text().replace("cellar", "celar"))
    result = CliRunner().invoke(cli, ["simulate", str(scenario)])
    assert (result.exit_code, result.stderr.endswith("; did you mean cellar?\n")) == (2, True)
