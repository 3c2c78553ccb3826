"""Completion in bash, zsh and fish themselves: each runs in a terminal, where Tab is pressed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.cli.terminals import BIN, Terminal
from tests.tables import row, table

from karpool.cli.main import COMMANDS, cli

pytestmark = pytest.mark.slow
ENSURE = Path(__file__).resolve().parents[2] / "scripts" / "ensure-shells"


def program(shell: str) -> str:
    """A shell of this machine, or that which `make test` has fetched."""
    found = shutil.which(shell)
    if found is None and shell != "bash":
        ensured = subprocess.run([ENSURE, "--no-fetch"], capture_output=True, text=True, check=False)  # noqa: S603
        found = shutil.which(shell, path=ensured.stdout.strip())
    if found is None:
        pytest.skip(f"NOT TESTED: completion in {shell}; `scripts/ensure-shells` gets it")
    return found


@pytest.fixture(scope="module", params=["bash", "zsh", "fish"])
def terminal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    home = tmp_path_factory.mktemp(request.param)
    (home / "cluster.json").touch()
    terminal = Terminal(request.param, program(request.param), home)
    yield terminal
    terminal.close()


@table(
    row("a command", line="karpool pl", becomes="karpool plan"),
    row("an option", line="karpool plan --fail", becomes="karpool plan --fail-if"),
    row("a value of an option", line="karpool plan -o js", becomes="karpool plan -o json"),
    row("a scenario", line="karpool simulate weights-t", becomes="karpool simulate weights-taints"),
    row("a shell", line="karpool completion z", becomes="karpool completion zsh"),
    row("a file", line="karpool plan -f clus", becomes="karpool plan -f cluster.json"),
    row("nothing", line="karpool nothing-like-it", becomes="karpool nothing-like-it"),
)
def test_a_line_is_completed(terminal: Terminal, line: str, becomes: str) -> None:
    assert terminal.completed(line).rstrip() == becomes


def test_every_option_that_names_a_file_completes_files() -> None:
    context = click.Context(cli)
    options = [(name, option) for name in COMMANDS for option in cli.get_command(context, name).params]
    ask_for_files = {
        f"{name} {option.opts[-1]}": [item.type for item in option.shell_complete(context, "some")]
        for name, option in options
        if option.metavar in {"FILE", "PATH", "SCENARIO", "INPUT...", "FIRST", "SECOND", "SOURCE", "WHERE"}
    }
    assert len(ask_for_files) > 40
    assert {name for name, types in ask_for_files.items() if types != ["file"]} == {"plan --on", "sweep --on"}


def test_fish_tells_all_that_a_command_does() -> None:
    """Also when the sentence has commas, which part what fish is told."""
    script = "karpool completion fish | source; complete --do-complete 'karpool pl'"
    assert run("fish", script) == f"plan\t{COMMANDS['plan']}\n"


def test_zsh_loads_the_script_from_a_file_of_its_path(tmp_path: Path) -> None:
    (tmp_path / "_karpool").write_text(CliRunner().invoke(cli, ["completion", "zsh"]).stdout)
    script = f"fpath+={tmp_path}; autoload -Uz compinit && compinit -u -d {tmp_path}/dump; print -r -- $_comps[karpool]"
    assert run("zsh", script) == "_karpool\n"


def run(shell: str, script: str) -> str:
    command = [program(shell), "-c", script]
    known = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=known, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout


@table(
    row("bash", of="bash", said="plain,explain\n"),
    row("zsh", of="zsh", said="plain\nexplain\nShow everything about one node or one pod.\n"),
)
def test_help_completes_commands(of: str, said: str) -> None:
    given = {"_KARPOOL_COMPLETE": f"{of}_complete", "COMP_WORDS": "karpool help exp", "COMP_CWORD": "2"}
    program = [sys.executable, "-c", "from karpool.cli.main import main; main()"]
    done = subprocess.run(program, env={**os.environ, **given}, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
