"""What README and docs tell people to type works: options exist, and commands that need no cluster are executed here.

Those that read or change a cluster are executed on a real API server, in tests/live/test_documented_commands.py.
"""

import http
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from moto import mock_aws
from tests.catalog.fake_service import serving
from tests.catalog.test_fetch_aws import HERE, PriceListService
from tests.catalog.test_fetch_aws import environment as credentials
from tests.documentation.commands import ROOT, Command, mentioned, shown_after, unlabelled
from tests.documentation.desk import furnish
from tests.documentation.elsewhere import NOT_EXECUTED, ONLY_LOOKED_AT, reason
from tests.documentation.executed import COMMANDS, EXECUTED, IN_A_CLOUD, ON_A_CLUSTER, ON_FILES, SERVING_FILES
from tests.documentation.shell import Done, asked, ensured, environment, has_its_programs, in_a_shell, served

from karpool.cli.main import cli

FOUND_SOMETHING = 3
"""The exit status of a condition that holds, which is what some commands are shown for."""
LOOKED_AT = [command for command in COMMANDS if reason(command.text, ONLY_LOOKED_AT)]


def of(*commands: Command) -> Callable[[Callable[..., None]], pytest.MarkDecorator]:
    every = [
        pytest.param(one, id=f"{one.page}:{one.line}", marks=[pytest.mark.long] * takes_minutes(one))
        for one in commands
    ]
    return pytest.mark.parametrize("command", every)


def takes_minutes(command: Command) -> bool:
    """Whether it is a sweep of many simulations, or reads what such a sweep has left."""
    return "sweep" in command.words or "workday.json" in command.words


def options_of(words: Sequence[str]) -> Iterator[tuple[str, set[str]]]:
    """Each option that a command of Karpool is given, and those that it has."""
    command: click.Command = cli
    context = click.Context(cli, info_name="karpool")
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(context, rest[0])
        if found is None:
            break
        command, context = found, click.Context(found, info_name=rest.pop(0), parent=context)
    there = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"-h", "--help"}
    for word in rest:
        if re.match(r"--?[A-Za-z]", word):
            yield word.partition("=")[0], there


@of(*(command for command in (*COMMANDS, *mentioned()) if command.words and command.words[0] == "karpool"))
def test_a_command_of_karpool_has_the_options_that_it_is_shown_with(command: Command) -> None:
    assert (
        len(command.words) == 1
        or command.words[1].startswith("-")
        or command.words[1] in cli.list_commands(click.Context(cli))
        or command.words[1] in {"COMMAND", "help"}
    )
    for option, there in options_of(command.words[1:]):
        assert option in there, command.text


def test_there_are_commands_in_the_pages() -> None:
    assert len(COMMANDS) > 130
    assert {"README.md", "docs/running.md", "docs/repair.md"} <= {command.page for command in COMMANDS}


@pytest.mark.parametrize("pattern", [*ONLY_LOOKED_AT, *NOT_EXECUTED])
def test_what_is_not_executed_is_still_shown(pattern: str) -> None:
    assert any(re.fullmatch(pattern, command.text) for command in COMMANDS)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    furnish(folder)
    return folder


def in_process(command: Command) -> Done:
    result = CliRunner().invoke(cli, command.words[1:])
    return Done(result.exit_code, result.output)


@pytest.mark.slow
@of(*ON_FILES)
def test_a_command_works_on_files(command: Command, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    has_its_programs(command)
    folders = [ensured("promtool", "--no-fetch")] if "promtool" in command.words else []
    if command.text.startswith("source .venv") and not (desk / ".venv" / "bin" / "activate").exists():
        pytest.skip("NOT TESTED: a command of the documentation; the tests run in no virtual environment")
    monkeypatch.chdir(desk)
    plain = command.plain
    status, output = in_process(command) if plain else in_a_shell(command.text, desk, environment(desk, *folders))
    assert status in {0, FOUND_SOMETHING}, output
    assert status == 0 or "--fail-" in command.text, output
    for line in shown_after(command):
        assert line in [" ".join(printed.split()) for printed in output.splitlines()], output


@pytest.mark.slow
@of(*SERVING_FILES)
def test_a_page_is_served_from_files(command: Command, desk: Path) -> None:
    with served(command, desk, environment(desk)) as address:
        status, page = asked(address)
    assert status == http.HTTPStatus.OK
    assert "<title>Karpool" in page


@pytest.mark.slow
@of(*IN_A_CLOUD)
def test_prices_are_fetched_in_a_cloud_that_is_played(
    command: Command, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk)
    with serving(PriceListService()) as service, mock_aws():
        credentials(monkeypatch, service)
        monkeypatch.setenv("AWS_DEFAULT_REGION", HERE)
        status, output = in_process(command)
    assert status == 0, output
    assert (desk / command.words[-1]).exists()


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted({c.words[1] for c in LOOKED_AT if c.words[0] == "make"}))
def test_make_has_the_target(target: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603, S607
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@of(*(command for command in LOOKED_AT if command.words[0] != "make"))
def test_a_script_has_the_options_that_it_is_shown_with(command: Command) -> None:
    script = [sys.executable, command.words[1], "--help"]
    shown = environment(ROOT, **command.variables)
    done = subprocess.run(script, cwd=ROOT, env=shown, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    for word in command.words[2:]:
        assert not word.startswith("--") or word in done.stdout


@of(*(command for command in COMMANDS if command.words[:2] == ["pip", "install"]))
def test_there_are_the_extras_that_pip_is_shown_with(command: Command) -> None:
    found = re.fullmatch(r"karpool\[(\w+)\]", command.words[2])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert found
    assert found[1] in project["optional-dependencies"]


def test_no_command_hides_in_a_fence_without_a_language() -> None:
    """Such a fence is output; commands are indented, or in one that says `sh`."""
    assert list(unlabelled()) == []


def test_every_command_is_executed_somewhere_or_has_a_reason_not_to_be() -> None:
    """The lists are those that tests are made of, here and in tests/live/test_documented_commands.py."""
    executed = [*ON_FILES, *SERVING_FILES, *IN_A_CLOUD, *ON_A_CLUSTER]
    assert sorted(executed) == sorted(EXECUTED)
    without = [command for command in COMMANDS if command not in executed]
    assert [command for command in without if reason(command.text) is None] == []
