"""What `karpool plan --suggest-pools` says: no dearer than today, nothing mixed up, and why something is not known."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from tests.factories.clouds import Manifest, eks_node, gke_node, node, one_pod_each, pod

from karpool.cli.main import cli

AT = ("--at", "2026-11-16T12:00:00Z")
GPU = "nvidia.com/gpu"


def told(path: Path, manifests: Sequence[Manifest], *options: str) -> Result:
    file = path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}))
    result = CliRunner().invoke(
        cli,
        ["plan", "-f", str(file), *AT, "--no-bound", "--effort", "0", "--suggest-pools", *options],
        env={"COLUMNS": "200"},
    )
    assert result.exit_code == 0, result.stderr
    return result


def suggested(path: Path, manifests: Sequence[Manifest]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(told(path, manifests, "-o", "json").stdout)["suggestions"]
    return found


def gpu_nodes(count: int, kind: str) -> list[Manifest]:
    """Nodes of a group with a GPU each, and on each a pod that has it."""
    nodes = [eks_node(f"gpu-{at}", "gpu", type=kind, cpu="3920m", memory="14Gi") for at in range(count)]
    pods = [pod(f"infer-{at}", f"gpu-{at}", cpu="1") for at in range(count)]
    for entry, user in zip(nodes, pods, strict=True):
        for amounts in (entry["status"]["capacity"], entry["status"]["allocatable"]):
            amounts[GPU] = "1"
        user["spec"]["containers"][0]["resources"]["requests"][GPU] = "1"
    return [*nodes, *pods]


def test_two_small_machines_with_a_gpu_each_are_suggested_where_a_large_one_costs_more(tmp_path: Path) -> None:
    found = suggested(tmp_path, gpu_nodes(2, "g5.2xlarge"))
    (pool,), (group,) = found["pools"], found["groups"]
    assert pool["fleet"]["instanceTypes"] == group["fleet"]["instanceTypes"] == {"g5.xlarge": 2}
    assert pool["fleet"]["pricePerHour"] < pool["pricePerHour"]


def test_where_nothing_costs_less_that_is_said_and_no_manifest_is_printed(tmp_path: Path) -> None:
    text = told(tmp_path, gpu_nodes(1, "g5.xlarge")).stdout
    assert "nothing cheaper found" in text
    assert "Nothing cheaper found: no NodePool would hold the pods for less than their groups today." in text
    assert "or group gpu" not in text
    assert "kind: NodePool" not in text


def test_a_machine_type_that_is_dearer_than_the_plan_is_no_alternative(tmp_path: Path) -> None:
    cheap = [gke_node(f"g{at}", "pool", type="e2-standard-4", cpu="3920m", memory="13Gi") for at in range(4)]
    plan = json.loads(told(tmp_path, one_pod_each(cheap), "-o", "json").stdout)
    planned = {group["name"]: group["priceAfter"] for group in plan["groups"]}
    assert all(group["fleet"]["pricePerHour"] < planned[group["name"]] for group in plan["suggestions"]["groups"])


def test_machines_are_told_with_what_they_are_launched_as_and_kinds_stay_apart(tmp_path: Path) -> None:
    small = {"type": "m5.xlarge", "cpu": "3920m", "memory": "14Gi"}
    nodes = [eks_node(f"n{at}", "web", **small) for at in range(3)]
    nodes += [eks_node(f"s{at}", "cheap", spot=True, **small) for at in range(3)]
    pools = suggested(tmp_path, one_pod_each(nodes))["pools"]
    assert {tuple(pool["groups"]): list(pool["fleet"]["capacityTypes"]) for pool in pools} == {
        ("web",): ["on-demand"],
        ("cheap",): ["spot"],
    }
    text = told(tmp_path, one_pod_each(nodes)).stdout
    lines = {line.partition("|")[0].strip(): line for line in text.splitlines() if line.startswith("NodePool ")}
    assert ", on-demand" in lines["NodePool web"]
    assert ", spot" in lines["NodePool cheap"]


def test_nodes_with_gpus_and_without_get_a_pool_each(tmp_path: Path) -> None:
    web = one_pod_each([eks_node(f"n{at}", "web") for at in range(2)])
    found = suggested(tmp_path, [*web, *gpu_nodes(2, "g5.2xlarge")])
    assert sorted(pool["groups"] for pool in found["pools"]) == [["gpu"], ["web"]]


def test_pods_that_find_no_place_are_told_with_a_reason(tmp_path: Path) -> None:
    pinned = pod("pinned", "a", selector={"kubernetes.io/hostname": "a"})
    text = " ".join(told(tmp_path, [eks_node("a", "web"), pinned]).stdout.split())
    assert "NodePool web: 1 pod would find no place: for example Pod shop/pinned: pool web: " in text


def test_spot_nodes_that_show_a_zone_of_another_region_have_the_median_and_a_warning(tmp_path: Path) -> None:
    rest = {"type": "c5.xlarge", "zone": "eu-central-1a", "cpu": "3920m"}
    nodes = [eks_node(f"n{at}", "batch", spot=True, **rest) for at in range(3)]
    result = told(tmp_path, one_pod_each(nodes), "-o", "json")
    (pool,) = json.loads(result.stdout)["suggestions"]["pools"]
    assert pool["fleet"]["unplacedPods"] == 0
    assert pool["fleet"]["pricePerHour"] < pool["pricePerHour"]
    assert result.stderr.count("has the zone use1-az1, which nodes show") == 1


# -- what an autoscaler would do ---------------------------------------------------------------------------------------


def test_a_node_of_a_group_is_not_replaced_by_one_of_a_node_pool(tmp_path: Path) -> None:
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "general"},
        "spec": {
            "template": {"spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "x"}}}
        },
    }
    large = [eks_node(f"n{at}", "web", type="m5.4xlarge", cpu="15890m", memory="57Gi") for at in range(2)]
    alone = [pod("a-1", "n0", cpu="1"), pod("b-1", "n1", cpu="15")]
    plan = json.loads(told(tmp_path, [pool, *large, *alone], "-o", "json").stdout)
    assert plan["commands"] == []
    reasons = {entry["name"]: entry["reasons"][0]["message"] for entry in plan["nodes"]}
    assert "nobody launches one of NodePool general for a node of a group before its pods wait" in reasons["n0"]
    alone[1] = pod("b-1", "n1", cpu="2")
    (command,) = json.loads(told(tmp_path, [pool, *large, *alone], "-o", "json").stdout)["commands"]
    assert (command["decision"], command["replacements"]) == ("delete", [])


def pending_words(path: Path, cpu: str, sizes: str, *more: Manifest) -> str:
    """Why a pod that waits does, in a cluster of a group with two nodes."""
    nodes = [eks_node(f"n{at}", "web", type="m5.xlarge", cpu="3920m", memory="14Gi") for at in range(2)]
    waiting = pod("big-1", "", cpu=cpu)
    del waiting["spec"]["nodeName"]
    waiting["status"] = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    }
    file = path / "sizes.yaml"
    file.write_text(f"groups: {{web: {sizes}}}\n")
    used = [pod(f"web-{at}", f"n{at}", cpu="2") for at in range(2)]
    plan = json.loads(told(path, [*nodes, *used, waiting, *more], "--groups", str(file), "-o", "json").stdout)
    ((reason,),) = (entry["reasons"] for entry in plan["unschedulable"])
    message: str = reason["message"]
    return message.rpartition("; ")[2]


def test_a_pod_that_waits_is_told_whether_a_group_would_grow_for_it(tmp_path: Path) -> None:
    assert pending_words(tmp_path, "3", "{minimum: 1, maximum: 3}") == "group web would grow for it"
    assert pending_words(tmp_path, "3", "{minimum: 1, maximum: 2}") == "group web has its maximum of 2 nodes"
    assert pending_words(tmp_path, "3", "{price: 0.1}") == "group web could grow for it, its maximum is unknown"
    assert pending_words(tmp_path, "30", "{minimum: 1, maximum: 3}") == "it is larger than a node of any group"
    tainted = node("t", {"eks.amazonaws.com/nodegroup": "own"}, type="m5.16xlarge", cpu="60", memory="200Gi")
    tainted["spec"]["taints"] = [{"key": "team", "value": "data", "effect": "NoSchedule"}]
    assert pending_words(tmp_path, "30", "{maximum: 3}", tainted) == "no group has nodes that could take it"
