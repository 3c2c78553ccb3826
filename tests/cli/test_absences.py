"""What files do not hold: it is said, and nothing that a whole snapshot forbids is planned without a word about it."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.disruption.following import planned
from tests.examples import examples
from tests.factories import (
    affinity_to,
    claim_for,
    csi_node,
    daemon_set,
    namespace,
    node,
    node_pool,
    pdb,
    pod,
    pv,
    pvc,
    storage_class,
)
from tests.factories.gangs import members, pod_group
from tests.strategies import DRIVER, Cluster, clusters

from karpool.cli.main import cli
from karpool.cluster.absences import absences
from karpool.disruption.settings import PREFIX, DisruptionSettings
from karpool.live.snapshot_file import encode_snapshot
from karpool.model.labels import ZONE
from karpool.model.node import CSINode
from karpool.model.objects import Objects
from karpool.model.pod import DiskOfCloud, Volume
from karpool.model.storage import InTreeSource, LocalSource, PersistentVolume, VolumeSpec
from karpool.wire.objects import Metadata

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
QUICK = {command: {"effort": 0} for command in ("plan", "explain")}
A, B = node("a"), node("b")
SMALL = Objects(
    nodes=(A, B),
    node_claims=(claim_for(A), claim_for(B)),
    node_pools=(node_pool(),),
    pods=(pod("web-1", node="a", claims=["data"]), pod("web-2", node="b")),
    persistent_volumes=(pv("v", driver="csi.example.com"),),
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


def test_volumes_that_no_driver_attaches_need_no_csi_nodes(tmp_path: Path) -> None:
    local = replace(
        SMALL,
        persistent_volumes=(PersistentVolume(metadata=Metadata(name="v"), spec=VolumeSpec(host_path=LocalSource())),),
    )
    assert "CSINode" not in plan(written(local, tmp_path / "c.json", frozenset({"CSINode"}))).stderr
    disk = Volume(name="d", aws_elastic_block_store=DiskOfCloud(volume_id="vol-1"))
    inline = replace(SMALL, pods=(pod("web-1", node="a", volumes=[disk]),), persistent_volumes=())
    assert "CSINode" in plan(written(inline, tmp_path / "c.json", frozenset({"CSINode"}))).stderr


@pytest.mark.parametrize("without", ["Pod", "PodDisruptionBudget"])
def test_validate_says_what_a_snapshot_lacks_as_plan_does(without: str, tmp_path: Path) -> None:
    file = written(SMALL, tmp_path / "c.json", frozenset({without}))
    told = json.loads(CliRunner().invoke(cli, ["validate", "-f", file, "-o", "json"]).stdout)
    (warning,) = [entry for entry in told["warnings"] if entry["rule"] == "MissingKind"]
    assert warning["message"] in plan(file).stderr
    assert CliRunner().invoke(cli, ["validate", "-f", file, "--strict"]).exit_code == 2


def test_validate_finds_nothing_missing_in_a_whole_snapshot_or_in_manifests_alone(tmp_path: Path) -> None:
    manifests = Objects(node_pools=SMALL.node_pools, pods=SMALL.pods)
    alone = frozenset({"Node", "NodeClaim", "PodDisruptionBudget", "DaemonSet"})
    for file in (written(SMALL, tmp_path / "a.json"), written(manifests, tmp_path / "b.json", alone)):
        assert "MissingKind" not in CliRunner().invoke(cli, ["validate", "-f", file, "-o", "json"]).stdout


def test_a_whole_snapshot_gives_no_warning(tmp_path: Path) -> None:
    result = plan(written(SMALL, tmp_path / "c.json"))
    assert result.stderr == ""
    assert json.loads(result.stdout)["warnings"] == []


@pytest.mark.parametrize(
    ("marks", "command"),
    [
        ({"labels": {"scheduling.x-k8s.io/pod-group": "train"}}, "podgroups.scheduling.x-k8s.io -A"),
        ({"annotations": {"scheduling.k8s.io/group-name": "train"}}, "podgroups.scheduling.volcano.sh -A"),
    ],
)
def test_gangs_of_unknown_size_are_named(tmp_path: Path, marks: dict[str, Any], command: str) -> None:
    gang = tuple(pod(f"train-{at}", pending=True, **marks) for at in range(2))
    objects = replace(SMALL, pods=(*SMALL.pods, *gang))
    result = plan(written(objects, tmp_path / "c.json", frozenset({"PodGroup"})))
    assert "PodGroup (all waiting pods of a gang count as needed at once)" in result.stderr
    assert command in result.stderr


def test_gangs_in_a_snapshot_file_are_those_of_the_cluster(tmp_path: Path) -> None:
    objects = replace(SMALL, pods=(*SMALL.pods, *members("train", 9, cpu="3")), pod_groups=(pod_group("train", 1),))
    result = plan(written(objects, tmp_path / "c.json"))
    assert result.stderr == ""
    assert len(json.loads(result.stdout)["unschedulable"]) == 7


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


KINDS: Final = {
    "PodDisruptionBudget": "pod_disruption_budgets",
    "DaemonSet": "daemon_sets",
    "NodePool": "node_pools",
    "NodeClaim": "node_claims",
    "PersistentVolumeClaim": "persistent_volume_claims",
    "PersistentVolume": "persistent_volumes",
    "StorageClass": "storage_classes",
    "CSINode": "csi_nodes",
    "Namespace": "namespaces",
    "PriorityClass": "priority_classes",
}
BEHIND: Final = {"PersistentVolume": "PersistentVolumeClaim", "StorageClass": "PersistentVolumeClaim"}
"""Kinds of which it shows only with another one that they matter."""


def dropped(objects: Objects, without: Collection[str]) -> Objects:
    return msgspec.structs.replace(objects, **{KINDS[kind]: () for kind in without})


def outcome(cluster: Cluster, objects: Objects) -> tuple[object, ...]:
    """What is decided for a cluster, and which nodes and pods it leaves where."""
    plan = planned(Cluster(objects, cluster.catalog), DisruptionSettings(search=PREFIX))
    steps = [(step.command.nodes, step.command.replacements, step.command.moves) for step in plan.steps]
    return (*steps, plan.after)


def in_tree(objects: Objects) -> Objects:
    """The same with disks of a driver inside Kubernetes, which say by labels where they are."""
    return msgspec.structs.replace(
        objects,
        persistent_volumes=tuple(
            _disk_in_tree(volume) if volume.spec.csi else volume for volume in objects.persistent_volumes
        ),
        storage_classes=tuple(
            msgspec.structs.replace(entry, provisioner="kubernetes.io/aws-ebs") for entry in objects.storage_classes
        ),
        csi_nodes=tuple(_csi_of_ebs(entry) for entry in objects.csi_nodes),
    )


def _disk_in_tree(volume: PersistentVolume) -> PersistentVolume:
    affinity = volume.spec.node_affinity
    assert affinity is not None
    assert affinity.required is not None
    (term,) = affinity.required.node_selector_terms
    zones = "__".join(sorted(term.requirements[ZONE].values))
    spec = VolumeSpec(aws_elastic_block_store=InTreeSource())
    return PersistentVolume(metadata=Metadata(name=volume.name, labels={BETA_ZONE: zones}), spec=spec)


def _csi_of_ebs(entry: CSINode) -> CSINode:
    limits = {driver.name: driver.allocatable.count for driver in entry.spec.drivers}
    count = limits.get(DRIVER)
    return entry if count is None else csi_node(entry.name, **{"ebs.csi.aws.com": count})


@pytest.mark.slow
@examples(20)
@given(clusters())
def test_disks_of_old_drivers_are_planned_as_those_of_csi(cluster: Cluster) -> None:
    assert outcome(cluster, in_tree(cluster.objects)) == outcome(cluster, cluster.objects)


@pytest.mark.slow
@examples(150)
@given(made=clusters(), without=st.frozensets(st.sampled_from(list(KINDS)), min_size=1), old_drivers=st.booleans())
def test_every_kind_that_changes_the_plan_by_being_left_out_is_named(
    made: Cluster, without: frozenset[str], *, old_drivers: bool
) -> None:
    cluster = Cluster(in_tree(made.objects), made.catalog) if old_drivers else made
    whole = outcome(cluster, cluster.objects)
    part = dropped(cluster.objects, without)
    named = {entry.kind for entry in absences(part, KINDS.keys() - without)}
    decisive = {kind for kind in without if outcome(cluster, dropped(cluster.objects, {kind})) != whole}
    assert {kind for kind in decisive if BEHIND.get(kind) not in without} <= named
    if outcome(cluster, part) != whole:
        assert named & without


DECISIVE: Final = Objects(
    nodes=(A, B, node("c", zone="us-east-1b")),
    node_claims=(claim_for(A), claim_for(B), claim_for(node("c", zone="us-east-1b"))),
    node_pools=(node_pool(),),
    daemon_sets=(daemon_set("agent", cpu="1500m"),),
    namespaces=(namespace("default", team="red"),),
    storage_classes=(storage_class("standard", zones=["us-east-1a"]),),
    csi_nodes=tuple(csi_node(name, **{"csi.example.com": 1}) for name in "abc"),
    persistent_volumes=(pv("v", zones=["us-east-1a"], driver="csi.example.com"),),
    persistent_volume_claims=(pvc("data", volume="v"), pvc("later", storage_class="standard")),
    pod_disruption_budgets=(pdb("web", {"app": "web"}, allowed=0),),
    pods=(
        pod("web-1", node="a"),
        pod("db-1", node="b", claims=["data"], near=[affinity_to({"app": "x"}, namespace_selector={"team": "red"})]),
        pod("new-1", node="c", claims=["later"]),
    ),
)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "PriorityClass"])
def test_each_kind_that_may_bear_on_pods_is_named_alone(kind: str) -> None:
    assert [entry.kind for entry in absences(dropped(DECISIVE, {kind}), KINDS.keys() - {kind})] == [kind]
    assert list(absences(dropped(DECISIVE, {kind}), KINDS.keys())) == []
