"""What README and docs tell people to type works: options exist, and commands that need no cluster are executed here.

Those that read or change a cluster are executed on a real API server, in tests/live/test_documented_commands.py.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import dropwhile, takewhile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.chart.helm import helm
from tests.documentation.commands import ROOT, Command, mentioned, shown
from tests.documentation.desk import furnish
from tests.documentation.elsewhere import NOT_EXECUTED, reason

from karpool.cli.main import cli

COMMANDS = list(shown())
READS_A_CLUSTER = {"plan", "explain", "blockers", "budgets", "lint", "snapshot", "compact", "ui"}
FOUND_SOMETHING = 3
"""The exit status of a condition that holds, which is what some commands are shown for."""


def needs_a_cluster(command: Command) -> bool:
    words = command.words
    if "kubectl" in command.text.split() or words[:2] == ["karpool", "run"]:
        return True
    from_files = {"-f", "--journal"} & set(words) and words[:2] != ["karpool", "ui"]
    return words[0] == "karpool" and words[1] in READS_A_CLUSTER and not from_files


def here(command: Command) -> bool:
    return reason(command.text) is None and not needs_a_cluster(command)


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


@pytest.mark.parametrize(
    "command",
    [command for command in (*COMMANDS, *mentioned()) if command.words and command.words[0] == "karpool"],
    ids=lambda command: f"{command.page}:{command.line}",
)
def test_a_command_of_karpool_has_the_options_that_it_is_shown_with(command: Command) -> None:
    assert (
        len(command.words) == 1
        or command.words[1].startswith("-")
        or command.words[1] in cli.list_commands(click.Context(cli))
        or command.words[1] == "COMMAND"
    )
    for option, there in options_of(command.words[1:]):
        assert option in there, command.text


def test_there_are_commands_in_the_pages() -> None:
    assert len(COMMANDS) > 130
    assert {"README.md", "docs/running.md", "docs/repair.md"} <= {command.page for command in COMMANDS}


@pytest.mark.parametrize("pattern", NOT_EXECUTED)
def test_what_is_not_executed_is_still_shown(pattern: str) -> None:
    assert any(re.fullmatch(pattern, command.text) for command in COMMANDS)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    furnish(folder)
    return folder


def in_process(command: Command) -> tuple[int, str]:
    result = CliRunner().invoke(cli, command.words[1:])
    return result.exit_code, result.output


def in_a_shell(command: Command, desk: Path) -> tuple[int, str]:
    (desk / ".zfunc").mkdir(exist_ok=True)
    (desk / ".config" / "fish" / "completions").mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(desk),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", ""),
    }
    script = ["bash", "-o", "pipefail", "-c", command.text]
    done = subprocess.run(script, cwd=desk, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    return done.returncode, done.stdout + done.stderr


def shown_after(command: Command) -> list[str]:
    """What a page of quick starts shows of the output: lines of the block that follows the command."""
    if command.page != "docs/quick-starts.md":
        return []
    rest = (ROOT / command.page).read_text().splitlines()[command.line :]
    rest = list(dropwhile(lambda line: not line.strip(), rest))
    if not rest or rest[0] != "```":
        return []
    return [" ".join(line.split()) for line in takewhile(lambda line: line != "```", rest[1:])]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [command for command in COMMANDS if here(command) and command.words[0] in {"karpool", "cat", "echo", "jq", "man"}],
    ids=lambda command: f"{command.page}:{command.line}",
)
def test_a_command_works_on_files(command: Command, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in {"jq", "man"} & set(command.text.split()):
        if shutil.which(program) is None:
            pytest.skip(f"NOT TESTED: commands of the documentation with {program}; install {program}")
    monkeypatch.chdir(desk)
    status, output = in_process(command) if command.plain else in_a_shell(command, desk)
    assert status in {0, FOUND_SOMETHING}, output
    assert status == 0 or "--fail-" in command.text, output
    for line in shown_after(command):
        assert line in [" ".join(printed.split()) for printed in output.splitlines()], output


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted({c.words[1] for c in COMMANDS if c.words[0] == "make"}))
def test_make_has_the_target(target: str) -> None:
    """The targets are what runs these tests, or take long; that they are there is all that is asked."""
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603, S607
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [command for command in COMMANDS if here(command) and command.words[0] == "python"],
    ids=lambda command: f"{command.page}:{command.line}",
)
def test_a_benchmark_has_the_options_that_it_is_shown_with(command: Command) -> None:
    """`make bench` executes benchmarks at small sizes."""
    script = [sys.executable, command.words[1], "--help"]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    for word in command.words[2:]:
        assert not word.startswith("--") or word in done.stdout


@pytest.mark.parametrize(
    "command",
    [command for command in COMMANDS if command.words[0] == "helm"],
    ids=lambda command: f"{command.page}:{command.line}",
)
def test_the_chart_renders_with_the_values_that_it_is_shown_with(command: Command) -> None:
    """The tests of the chart install it; here it is rendered with the same arguments."""
    assert command.words[1] in {"install", "upgrade"}
    arguments = [word for word in command.words[2:] if word not in {"--reuse-values", "--create-namespace"}]
    done = helm("template", *(str(ROOT / word) if word == "charts/karpool" else word for word in arguments))
    assert done.returncode == 0, done.stderr
    assert "kind: Deployment" in done.stdout


def test_every_command_is_executed_somewhere_or_has_a_reason_not_to_be() -> None:
    programs = {"karpool", "cat", "echo", "jq", "man", "make", "python", "helm"}
    left = [c for c in COMMANDS if here(c) and c.words[0] not in programs]
    assert left == []
