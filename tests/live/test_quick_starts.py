"""Quick starts of clusters with an autoscaler, on a real API server: what the page shows of files is so live, too."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.documentation.commands import ROOT, Command, shown_after
from tests.documentation.executed import ON_A_CLUSTER, ON_FILES
from tests.documentation.shell import environment, served
from tests.live.control_plane import ControlPlane
from tests.live.example_cluster import put
from tests.live.https import Client

from karpool.cli.main import cli

PAGE = "docs/quick-starts.md"
KINDS = ("eks", "gke", "aks")


def of_file(name: str) -> list[Command]:
    """What the page shows of a file, without what it adds to it."""
    return [
        command
        for command in ON_FILES
        if command.page == PAGE and f"quick-starts/{name}.yaml" in command.words and "--groups" not in command.words
    ]


def objects(name: str) -> Iterator[dict[str, Any]]:
    found = yaml.safe_load((ROOT / "quick-starts" / f"{name}.yaml").read_text())["items"]
    for namespace in sorted({thing["metadata"].get("namespace", "default") for thing in found} - {"default"}):
        yield {"kind": "Namespace", "metadata": {"name": namespace}}
    yield from found


@pytest.fixture(params=KINDS)
def cluster(request: pytest.FixtureRequest, kubernetes_programs: Path, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A cluster with the nodes and pods of a file."""
    with ControlPlane(kubernetes_programs, tmp_path / "plane") as plane:
        put(Client(plane.kubeconfig()), objects(request.param))
        yield request.param, plane.kubeconfig()


@pytest.mark.slow
def test_a_cluster_of_this_kind_is_planned_as_the_page_shows_of_its_file(
    cluster: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, kubeconfig = cluster
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.chdir(ROOT)
    commands = of_file(kind)
    assert len(commands) >= 2
    for command in commands:
        words = command.words[1:]
        for option in ("-f", "--at"):
            del words[words.index(option) : words.index(option) + 2]
        result = CliRunner().invoke(cli, [*words, "--at", "2036-11-15T12:00:00Z"])
        assert result.exit_code == 0, result.output
        for line in shown_after(command):
            assert line in [" ".join(printed.split()) for printed in result.output.splitlines()], result.output
    (tmp_path / "quick-starts").symlink_to(ROOT / "quick-starts")
    (dry_run,) = (command for command in ON_A_CLUSTER if command.page == PAGE and "compact" in command.words)
    with served(dry_run, tmp_path, environment(tmp_path, KUBECONFIG=str(kubeconfig))):
        pass
