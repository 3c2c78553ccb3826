"""What files do not hold: it is said, and nothing that a whole snapshot forbids is planned without a word about it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.factories import claim_for, node, node_pool, pod, pv, pvc
from tests.strategies import Cluster, clusters

from karpool.cli.main import cli
from karpool.live.snapshot_file import encode_snapshot
from karpool.model.objects import Objects

QUICK = {command: {"effort": 0} for command in ("plan", "explain")}
A, B = node("a"), node("b")
SMALL = Objects(
    nodes=(A, B),
    node_claims=(claim_for(A), claim_for(B)),
    node_pools=(node_pool(),),
    pods=(pod("web-1", node="a", claims=["data"]), pod("web-2", node="b")),
    persistent_volumes=(pv("v"),),
    persistent_volume_claims=(pvc("data", volume="v"),),
)


def written(objects: Objects, file: Path, without: frozenset[str] = frozenset()) -> str:
    """A file with the objects, but for some kinds, of which it says nothing at all."""
    whole = json.loads(encode_snapshot(objects))
    kept = [entry for entry in whole["items"] if entry["kind"].removesuffix("List") not in without]
    file.write_text(json.dumps({**whole, "items": kept}))
    return str(file)


def plan(file: str, *more: str) -> Result:
    return CliRunner().invoke(cli, ["plan", "-f", file, "-o", "json", *more], default_map=QUICK)


@pytest.mark.parametrize(
    ("without", "named", "command"),
    [
        ({"PodDisruptionBudget"}, "PodDisruptionBudget (no pod counts as protected)", "kubectl get pdb -A"),
        ({"DaemonSet", "CSINode"}, "DaemonSet (", "kubectl get daemonsets,csinodes -A"),
        ({"NodeClaim"}, "NodeClaim (nodes of pools stay)", "kubectl get nodeclaims -A"),
        ({"NodePool"}, "NodePool (", "kubectl get nodepools -A"),
        ({"PersistentVolumeClaim"}, "PersistentVolumeClaim (", "kubectl get pvc -A"),
        ({"PersistentVolume"}, "PersistentVolume (", "kubectl get pv -A"),
    ],
)
def test_a_missing_kind_is_named_with_what_would_fill_the_gap(
    tmp_path: Path, without: set[str], named: str, command: str
) -> None:
    result = plan(written(SMALL, tmp_path / "c.json", frozenset(without)))
    assert result.exit_code == 0
    assert named in result.stderr
    assert command in result.stderr
    (warning,) = [text for text in json.loads(result.stdout)["warnings"] if "input holds no" in text]
    assert warning in result.stderr


def test_a_whole_snapshot_gives_no_warning(tmp_path: Path) -> None:
    result = plan(written(SMALL, tmp_path / "c.json"))
    assert result.stderr == ""
    assert json.loads(result.stdout)["warnings"] == []


@pytest.mark.parametrize("command", [("plan",), ("explain", "a")])
def test_nodes_without_any_pods_are_refused(tmp_path: Path, command: tuple[str, ...]) -> None:
    file = written(SMALL, tmp_path / "c.json", frozenset({"Pod"}))
    result = CliRunner().invoke(cli, [*command, "-f", file])
    assert result.exit_code == 2
    assert result.stderr.startswith("karpool: there are no Pods in the input")
    assert "kubectl get pods -A -o json" in result.stderr


def test_an_empty_list_of_pods_says_that_there_are_none(tmp_path: Path) -> None:
    result = plan(written(msgspec.structs.replace(SMALL, pods=()), tmp_path / "c.json"))
    assert result.exit_code == 0
    assert json.loads(result.stdout)["after"]["nodes"] == 0


def test_a_snapshot_of_files_does_not_say_more_than_they_do(tmp_path: Path) -> None:
    file = written(SMALL, tmp_path / "c.json", frozenset({"PodDisruptionBudget"}))
    copy = str(tmp_path / "copy.json")
    assert CliRunner().invoke(cli, ["snapshot", "-f", file, "-o", copy]).exit_code == 0
    assert "PodDisruptionBudget (" in plan(copy).stderr


LEFT_OUT = st.frozensets(
    st.sampled_from(
        (
            "PodDisruptionBudget",
            "DaemonSet",
            "NodePool",
            "NodeClaim",
            "PersistentVolumeClaim",
            "PersistentVolume",
            "StorageClass",
            "CSINode",
            "Namespace",
            "PriorityClass",
        )
    ),
    min_size=1,
)


def decided(result: Result) -> dict[str, Any]:
    document = json.loads(result.stdout)
    return {name: document[name] for name in ("commands", "after", "savings")}


@given(clusters(), LEFT_OUT)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_is_left_out_is_named_if_it_changes_the_plan(
    tmp_path: Path, cluster: Cluster, without: frozenset[str]
) -> None:
    objects = cluster.objects
    options = ("--at", "2026-11-15T12:00:00Z", "--no-bound")
    whole = plan(written(objects, tmp_path / "whole.json"), *options)
    part = plan(written(objects, tmp_path / "part.json", without), *options)
    assert part.exit_code == 0, part.output
    if decided(whole) != decided(part):
        assert any(f"{kind} (" in part.stderr for kind in without), (without, part.stderr)
