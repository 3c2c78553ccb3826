"""`karpool crds` where there is no cluster, or none that answers; with one: tests/live/test_crds_command.py."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from karpool.cli.main import cli
from karpool.live.crds import NAMES, definitions


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["crds", *arguments])


def write_kubeconfig(path: Path, server: str, *, current: str = "here") -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "current-context": current,
    }
    path.write_text(json.dumps(config))
    return path


@pytest.fixture
def dead_server() -> str:
    """The address of a server that has just gone."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)


def test_offline_prints_every_definition_and_nothing_else() -> None:
    result = run("--offline")
    assert (result.exit_code, result.stderr, result.stdout) == (0, "", definitions())
    documents = list(yaml.safe_load_all(result.stdout))
    assert [document["kind"] for document in documents] == ["CustomResourceDefinition"] * len(NAMES)
    assert tuple(document["metadata"]["name"] for document in documents) == NAMES


def warned(result: Result) -> bool:
    """Whether all was printed, with one line of warning."""
    assert (result.exit_code, result.stdout) == (0, definitions())
    assert result.stderr.count("\n") == 1
    return result.stderr.startswith("karpool: warning: printed without a check of the cluster: ")


def test_without_a_kubeconfig_a_warning_is_given() -> None:
    result = run()
    assert warned(result)
    assert "no cluster is known here" in result.stderr


def test_without_a_current_context_a_warning_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1", current="")))
    result = run()
    assert warned(result)
    assert "has no current-context" in result.stderr


def test_a_cluster_that_does_not_answer_gets_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dead_server: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "config", dead_server)))
    assert warned(run())


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [("--kubeconfig", "nowhere", "nowhere: does not exist"), ("--context", "there", "has no context 'there'")],
)
def test_a_cluster_that_was_asked_for_by_name_must_be_known(
    option: str, value: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1")))
    result = run(option, value)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_offline_starts_without_the_heavy_libraries() -> None:
    code = (
        "import sys; from karpool.cli.main import cli; cli.main(['crds', '--offline'], standalone_mode=False);"
        "sys.exit(any(name in sys.modules for name in ('aiohttp', 'numpy', 'numba', 'rich', 'yaml')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0  # noqa: S603 - our own program
