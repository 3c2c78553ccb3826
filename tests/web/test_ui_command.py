"""`karpool ui` on the command line: what it refuses, what it serves, and how it ends."""

import json
import signal
import socket
import subprocess
from pathlib import Path
from urllib.request import urlopen

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.tables import row, table
from tests.web.processes import KARPOOL, console

from karpool.cli.main import cli
from karpool.cli.ui import _snapshots

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = str(ROOT / "examples")


def ui(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["ui", "--no-browser", *arguments])


@table(
    row("no such file", arguments=["-f", "nowhere.json"], says="nowhere.json: does not exist"),
    row("a wrong port", arguments=["--port", "70000"], says="70000 is out of range; write 0 to 65,535"),
    row("files and a context", arguments=["-f", EXAMPLES, "--context", "prod"], says="--context: goes with a live"),
    row("no such journal", arguments=["--journal", "nowhere.jsonl"], says="'nowhere.jsonl' does not exist"),
    row("no such context", arguments=["--kubeconfig", "nowhere"], says="nowhere: does not exist"),
)
def test_bad_input_is_one_line(arguments: list[str], says: str) -> None:
    result = ui(*arguments)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_file_that_cannot_be_read_ends_it_with_its_problem(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"apiVersion": "v1", "kind": "Node"')
    (tmp_path / "nodes.json").write_bytes(
        msgspec.json.encode(
            {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "a", "uid": "a"}}]}
        )
    )
    for file, says in (("bad.json", "bad.json"), ("nowhere.json", "does not exist"), ("nodes.json", "no Pods")):
        result = ui("-f", str(tmp_path / file), "--port=0")
        assert result.exit_code == 2
        assert says in result.stderr
        assert result.stderr.count("\n") == 1
        # Who is told an address opens it.
        assert result.stdout == ""


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = ui("-f", EXAMPLES, f"--port={taken.getsockname()[1]}")
    assert result.exit_code == 1
    assert "cannot listen on 127.0.0.1" in result.stderr


def test_a_cluster_that_does_not_answer_ends_it(tmp_path: Path) -> None:
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "gone", "context": {"cluster": "c", "user": "u"}}
    config = {"current-context": "gone", "clusters": [cluster], "contexts": [context], "users": [{"name": "u"}]}
    (tmp_path / "config").write_text(json.dumps(config))
    result = ui(f"--kubeconfig={tmp_path / 'config'}", "--port=0")
    assert result.exit_code == 1
    assert "context gone" in result.stderr
    assert result.stderr.count("\n") == 1


def test_only_a_directory_of_nothing_but_snapshots_lets_choose(tmp_path: Path) -> None:
    (tmp_path / "prod.json.zst").touch()
    assert _snapshots((str(tmp_path),)) == {}
    (tmp_path / "staging.json.gz").touch()
    assert list(_snapshots((str(tmp_path),))) == ["prod", "staging"]
    (tmp_path / "pods.yaml").touch()
    assert _snapshots((str(tmp_path),)) == {}
    assert _snapshots((EXAMPLES,)) == {}


@pytest.mark.slow
def test_standard_input_is_a_cluster_too() -> None:
    manifests = subprocess.run([KARPOOL, "snapshot", "-f", EXAMPLES, "-o", "-"], capture_output=True, check=True)  # noqa: S603
    command = [KARPOOL, "ui", "-f", "-", "--port=0", "--no-browser", "--catalog=sample"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(manifests.stdout)
    process.stdin.close()
    address = process.stdout.readline().decode().split()[4]
    with urlopen(f"{address}data/clusters") as answer:  # noqa: S310 - our own
        assert json.load(answer) == {"clusters": ["standard input"]}
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    process.stdout.close()


@pytest.mark.slow
def test_it_serves_what_was_read_until_it_is_ended() -> None:
    with console("-f", EXAMPLES, "--catalog=sample") as address:
        with urlopen(f"{address}data/fleet") as answer:  # noqa: S310 - our own
            document = json.load(answer)
        assert len(document["nodes"]) == 12
        assert document["about"]["kind"] == "file"
