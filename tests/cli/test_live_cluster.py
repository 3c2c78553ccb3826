"""Commands that read a live cluster, where there is none or none that answers; with one: tests/live."""

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from karpool.cli.main import cli

COMMANDS = {
    "plan": ("plan",),
    "explain": ("explain", "n1"),
    "compact": ("compact", "--plan"),
    "snapshot": ("snapshot", "-o", "-"),
}
each_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


def one_line(*arguments: str, status: int) -> str:
    result: Result = CliRunner().invoke(cli, arguments)
    assert (result.exit_code, result.stdout) == (status, "")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """A kubeconfig whose server has just gone."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{taken.getsockname()[1]}"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "here",
    }
    file = tmp_path / "config"
    file.write_text(json.dumps(config))
    return str(file)


@each_command
def test_without_files_and_without_a_cluster_it_is_said_what_to_do(command: tuple[str, ...]) -> None:
    line = one_line(*command, status=2)
    assert line.startswith("karpool: -f: is missing, and no cluster is known here; set KUBECONFIG")


@each_command
def test_an_unknown_context_is_named_with_those_there_are(command: tuple[str, ...], kubeconfig: str) -> None:
    line = one_line(*command, "--kubeconfig", kubeconfig, "--context", "there", status=2)
    assert "has no context 'there'; choose one of: here" in line


@each_command
def test_files_and_a_context_exclude_each_other(command: tuple[str, ...]) -> None:
    line = one_line(*command, "-f", "cluster.json", "--context", "here", status=2)
    assert line.startswith("karpool: --context: goes with a live cluster, and -f names files")


@pytest.mark.parametrize("command", ["run", "compact"])
def test_what_runs_in_a_cluster_needs_one(command: str) -> None:
    assert one_line(command, status=2).startswith("karpool: kubeconfig: no cluster is known here; set KUBECONFIG")


def test_a_server_that_does_not_answer_is_named_with_its_context(kubeconfig: str) -> None:
    line = one_line("plan", "--kubeconfig", kubeconfig, status=1)
    assert line.startswith("karpool: context here: list /api/v1/nodes: cannot connect to 127.0.0.1:")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cluster.txt", "must end in .json.zst, .json.gz or .json"),
        ("nowhere/cluster.json", "its directory does not exist"),
        ("folder.json", "it is a directory"),
    ],
)
def test_a_snapshot_that_could_not_be_written_is_refused_before_anything_is_read(
    name: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "folder.json").mkdir()
    assert message in one_line("snapshot", "-f", "not-there.json", "-o", str(tmp_path / name), status=2)
