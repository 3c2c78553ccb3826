"""Progress: on a terminal only, with a number of steps that is true of what is going on."""

import io
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

from karpool.cli.main import cli
from karpool.cli.progress import progress, show
from karpool.model.reading.loading import read

EXAMPLES = str(Path(__file__).parents[2] / "examples")


def steps(*told: tuple[str, int, int | None]) -> list[str]:
    """What a bar shows after each of the things that it is told."""
    shown = []
    with Progress(MofNCompleteColumn(), console=Console(file=io.StringIO())) as bar:
        bar.add_task("Reading", total=None)
        for what in told:
            show(bar, *what)
            (task,) = bar.tasks
            shown.append(MofNCompleteColumn().render(task).plain.replace(" ", ""))
    return shown


def test_each_phase_has_its_own_number_of_steps() -> None:
    phases = (("Reading", 16, 16), ("Planning steps", 20, None), ("Looking", 3, 40), ("Asking why", 0, 5))
    assert steps(*phases) == ["16/16", "20/?", "3/40", "0/5"]


def test_no_phase_passes_its_end() -> None:
    assert steps(("Looking", 41, 40)) == ["40/40"]


def test_the_clock_goes_on_after_a_phase_is_finished() -> None:
    with Progress(console=Console(file=io.StringIO())) as bar:
        bar.add_task("Reading", total=None)
        show(bar, "Reading", 3, 3)
        show(bar, "Preparing", 0, None)
        assert bar.tasks[0].finished_time is None


def test_nothing_is_shown_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress() as report:
        report("Reading", 1, 2)
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "-f", EXAMPLES, "--catalog", "sample", "--effort", "0"),
        ("explain", "general-3", "-f", EXAMPLES, "--catalog", "sample", "--effort", "0"),
        ("validate", "-f", EXAMPLES),
        ("snapshot", "-f", EXAMPLES, "-o", "-"),
        ("compact", "--plan", "-f", EXAMPLES),
        pytest.param(("lint", "-f", EXAMPLES), marks=pytest.mark.slow),
        pytest.param(("blockers", "-f", EXAMPLES, "--search", "prefix"), marks=pytest.mark.slow),
        pytest.param(("simulate", "weights-gpu", "--length", "10m"), marks=pytest.mark.slow),
    ],
)
def test_commands_show_true_numbers_on_a_terminal(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int, int | None]] = []
    monkeypatch.setattr("karpool.cli.progress.show", lambda _bar, *what: told.append(what))
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda stream: "stderr" in str(stream.name))
    CliRunner(env={"TERM": "xterm"}).invoke(cli, list(command))
    assert told, "nothing was shown"
    assert all(most is None or 0 <= done <= most for _, done, most in told)


def test_files_are_counted_before_they_are_read(tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    for number in range(3):
        (tmp_path / f"{number}.yaml").write_text(f"apiVersion: v1\nkind: Node\nmetadata: {{name: n{number}}}\n")
    read([str(tmp_path)], stdin=io.BytesIO(), progress=lambda *what: told.append(what))
    assert told == [("Reading files", number, 3) for number in range(3)]


def test_a_single_file_has_no_number_of_steps(tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    file = tmp_path / "n.yaml"
    file.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n}\n")
    read([str(file)], stdin=io.BytesIO(), progress=lambda *what: told.append(what))
    assert told == [("Reading files", 0, None)]
