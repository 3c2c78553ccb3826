"""The program as a whole: start-up, help, and errors that are not about input."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from karpool import __version__
from karpool.cli.main import COMMANDS, cli

PROGRAM = Path(sys.executable).parent / "karpool"


def test_the_version_is_printed() -> None:
    result = CliRunner().invoke(cli, ["version"])
    assert (result.exit_code, result.stdout) == (0, f"karpool {__version__}\n")


def test_the_package_runs_as_a_module_too() -> None:
    command = [sys.executable, "-m", "karpool", "--version"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - our own program
    assert (done.returncode, done.stdout) == (0, f"karpool {__version__}\n")


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        (["help"], "Usage: cli [OPTIONS] COMMAND [ARGS]..."),
        (["help", "--help"], "Usage: cli [OPTIONS] COMMAND [ARGS]..."),
        (["help", "plan"], "Usage: cli plan [OPTIONS]"),
        (["help", "catalog", "update"], "Usage: cli catalog update [OPTIONS]"),
    ],
)
def test_help_may_be_asked_for_as_a_command(asked: list[str], first: str) -> None:
    result = CliRunner().invoke(cli, asked)
    assert (result.exit_code, result.stdout.partition("\n")[0]) == (0, first)
    assert "did you mean plan?" in CliRunner().invoke(cli, ["help", "plann"]).stderr


def test_help_lists_every_command_with_a_sentence() -> None:
    text = CliRunner().invoke(cli, ["--help"]).stdout
    for name, summary in COMMANDS.items():
        assert f"{name}  " in text
        assert summary.endswith(".")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_or_needs_none(name: str) -> None:
    text = CliRunner().invoke(cli, [name, "--help"]).stdout
    assert name == "version" or "EXAMPLES" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "karpool: there is no command 'fly' (see karpool --help)\n"),
        (["validate"], "karpool: Missing option '-f' / '--filename'. (see karpool validate --help)\n"),
        (["validate", "--fast"], "karpool: No such option '--fast'. (see karpool validate --help)\n"),
    ],
)
def test_a_wrong_option_gets_one_line_and_status_2(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, arguments, prog_name="karpool")
    assert (result.exit_code, result.stderr) == (2, message)


def test_version_starts_without_the_heavy_libraries() -> None:
    code = (
        "import sys; from karpool.cli.main import cli; cli.main(['version'], standalone_mode=False);"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'numba', 'rich', 'yaml', 'cronsim', 'highspy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0  # noqa: S603 - our own program


def test_a_full_disk_gets_one_line_and_status_1() -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run([PROGRAM, "version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - our own program
    assert (result.returncode, result.stderr) == (1, "karpool: No space left on device\n")


def test_a_reader_that_goes_away_is_not_complained_about() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        result = subprocess.run([PROGRAM, "version"], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - our own program
    assert (result.returncode, result.stderr) == (1, "")
