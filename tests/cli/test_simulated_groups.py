"""What `simulate` says of the cluster that a scenario starts with, and the node groups that it is told of."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.factories.clouds import Manifest, eks_node, node, one_pod_each

from karpool.cli.main import cli

SCENARIO = "cluster: [cluster.json]\nlength: 5m\npolicies: {p: {decisions: {effort: 0}}}\n"
QUICK = {"plan": {"effort": 0}}
OURS = [node(f"worker-{at}", {"acme.io/pool": "general"}) for at in range(3)]


def simulated(path: Path, manifests: Sequence[Manifest], *options: str, scenario: str = "") -> Result:
    (path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}))
    (path / "scenario.yaml").write_text(SCENARIO + scenario)
    return CliRunner().invoke(cli, ["simulate", str(path / "scenario.yaml"), "-o", "json", *options])


def nodes_left(result: Result) -> int:
    assert result.exit_code == 0, result.stderr
    (policy,) = json.loads(result.stdout)["policies"].values()
    left: int = policy["nodesAtEnd"]
    return left


def test_a_cluster_without_pods_is_refused_as_plan_does(tmp_path: Path) -> None:
    result = simulated(tmp_path, [eks_node("a", "web")])
    planned = CliRunner().invoke(cli, ["plan", "-f", str(tmp_path / "cluster.json")])
    assert (result.exit_code, result.stderr) == (2, planned.stderr)
    assert "`kubectl get pods -A -o json`" in result.stderr


def test_what_the_files_lack_is_said_as_plan_says_it(tmp_path: Path) -> None:
    manifests = one_pod_each([eks_node(f"n{at}", "web", zone="mx-central-1a") for at in range(2)])
    told = simulated(tmp_path, manifests).stderr
    planned = CliRunner().invoke(cli, ["plan", "-f", str(tmp_path / "cluster.json")], default_map=QUICK)
    assert "PodDisruptionBudget (no pod counts as protected)" in told
    assert "these node groups may be: web" in told
    assert told == planned.stderr
    swept = CliRunner().invoke(
        cli, ["sweep", str(tmp_path / "cluster.json"), "--set", "consolidateAfter=1m", "--seeds", "1", "--length", "1m"]
    )
    assert "`kubectl get pdb,daemonsets -A -o json`" in swept.stderr


@pytest.mark.parametrize(
    ("options", "scenario"),
    [
        (("--pool-label", "acme.io/pool", "--groups", "sizes.yaml"), ""),
        ((), "poolLabel: acme.io/pool\ngroups: sizes.yaml\n"),
    ],
)
def test_groups_of_a_label_shrink_to_their_minimum(
    options: tuple[str, ...], scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.yaml").write_text("groups: {general: {minimum: 2, maximum: 3}}\n")
    shrunk = simulated(tmp_path, one_pod_each(OURS), *options, "--length", "40m", scenario=scenario)
    assert nodes_left(shrunk) == 2
    assert "these node groups may be" not in shrunk.stderr


def test_a_sweep_of_a_snapshot_is_told_of_groups_too(tmp_path: Path) -> None:
    simulated(tmp_path, one_pod_each(OURS))
    swept = ("sweep", str(tmp_path / "cluster.json"), "--set", "consolidateAfter=1m", "--seeds", "1", "--length", "1m")
    assert "3 nodes, such as worker-0, are in no NodePool" in CliRunner().invoke(cli, swept).stderr
    told = CliRunner().invoke(cli, [*swept, "--pool-label", "acme.io/pool"])
    assert (told.exit_code, "these node groups may be: general" in told.stderr) == (0, True)


def test_nodes_that_nobody_manages_stay_and_are_named(tmp_path: Path) -> None:
    kept = simulated(tmp_path, one_pod_each(OURS), "--length", "40m")
    assert nodes_left(kept) == 3
    assert "3 nodes, such as worker-0, are in no NodePool and in no node group that is known" in kept.stderr


def test_a_file_of_sizes_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = simulated(tmp_path, one_pod_each(OURS), scenario="groups: nowhere.yaml\n")
    assert (result.exit_code, "groups: there is no file" in result.stderr) == (2, True)
