"""What commands say of what is peculiar to a cloud: nodes without prices or machines, or with machines of a kind."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.factories.clouds import (
    Manifest,
    aks_node,
    autoscaler_status,
    eks_node,
    gke_node,
    node,
    one_pod_each,
    pod,
    status_yaml,
)

from karpool.cli.main import cli

AT = ("--at", "2026-11-16T12:00:00Z")
QUICK = {command: {"effort": 0} for command in ("plan", "explain")}
EVERYTHING = [{"operator": "Exists"}]
FARGATE = {"eks.amazonaws.com/compute-type": "fargate"}
FARGATE_TAINT = {"key": "eks.amazonaws.com/compute-type", "value": "fargate", "effect": "NoSchedule"}


def run(path: Path, manifests: Sequence[Manifest], *command: str) -> str:
    file = path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}))
    result = CliRunner().invoke(cli, [*command, "-f", str(file), *AT], default_map=QUICK)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def plan_of(path: Path, manifests: Sequence[Manifest], *options: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run(path, manifests, "plan", *options, "-o", "json"))
    return document


@pytest.mark.parametrize(
    "manifests",
    [
        one_pod_each([node("agent-1", {"node.kubernetes.io/instance-type": "k3s"}), node("agent-2", {})]),
        one_pod_each([node(f"md-{at}", {"cluster.x-k8s.io/deployment-name": "md"}) for at in range(3)]),
    ],
)
def test_without_any_price_nothing_is_called_the_least_possible_and_no_price_list_is_named(
    manifests: list[Manifest], tmp_path: Path
) -> None:
    plan = plan_of(tmp_path, manifests)
    assert (plan["lowerBound"], plan["prices"], plan["savings"]["percent"]) == (None, [], None)
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("name: x\ncluster: [cluster.json]\nlength: 5m\npolicies: {p: {}}\n")
    simulated = CliRunner().invoke(cli, ["simulate", str(scenario)]).stdout
    assert "node-hours have no known price (?)" in simulated
    for told in (
        run(tmp_path, manifests, "plan"),
        run(tmp_path, manifests, "explain", str(manifests[0]["metadata"]["name"])),
        run(tmp_path, manifests, "compact", "--plan"),
        simulated,
    ):
        assert "least possible" not in told
        assert "us-east-1" not in told


def test_what_has_no_price_is_never_zero_on_a_page_or_in_a_table(tmp_path: Path) -> None:
    manifests = one_pod_each([eks_node(f"n{at}", "web", zone="mx-central-1a") for at in range(3)])
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("name: x\ncluster: [cluster.json]\nlength: 1h\npolicies: {p: {}}\n")
    printed = [run(tmp_path, manifests, "plan", "-o", output) for output in ("table", "html", "markdown")]
    printed += [run(tmp_path, manifests, *command) for command in (("compact", "--plan"), ("blockers",))]
    for output in ("table", "html"):
        printed.append(CliRunner().invoke(cli, ["simulate", str(scenario), "-o", output]).stdout)
    for text in printed:
        shown = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
        assert "?" in shown
        assert not re.search(r"\b0(\.0+)? \$", shown), shown
    assert "nobody can say what lifting anything is worth" in printed[4]


def test_a_share_of_a_price_that_is_known_in_part_is_the_most_that_it_can_be(tmp_path: Path) -> None:
    unknown = node("x", {"eks.amazonaws.com/nodegroup": "web"}, type="q9.large", zone="us-east-1a")
    manifests = one_pod_each([eks_node("a", "web"), eks_node("b", "web"), unknown], cpu="1500m")
    told = run(tmp_path, manifests, "plan")
    assert "(0.0 %)" in told
    empty = run(tmp_path, [eks_node("c", "web"), *manifests], "plan")
    assert "0.096 $/h (at most 33.3 %)" in empty


def test_a_bound_is_one_of_the_nodes_whose_price_is_known(tmp_path: Path) -> None:
    fargate = node("fargate-ip-10-0-9-1", FARGATE, taints=[FARGATE_TAINT])
    manifests = [*one_pod_each([eks_node("a", "web"), eks_node("b", "web")]), fargate]
    assert "This is the least possible (0.096 $/h for nodes of known price)." in run(tmp_path, manifests, "plan")


@pytest.mark.parametrize(
    "other",
    [
        node("fargate-ip-10-0-9-1", FARGATE, taints=[FARGATE_TAINT], cpu="16"),
        node("virtual-node-aci-linux", {"type": "virtual-kubelet"}, cpu="800"),
    ],
)
def test_no_pod_moves_to_a_node_without_a_machine_even_if_it_tolerates_everything(
    other: Manifest, tmp_path: Path
) -> None:
    manifests = [eks_node("a", "web"), other, pod("web-1", "a", tolerations=EVERYTHING)]
    plan = plan_of(tmp_path, manifests)
    assert plan["commands"] == []
    told = next(entry for entry in plan["nodes"] if entry["name"] == "a")["reasons"][0]["message"]
    assert "group web has 1 node" in told or "takes no other pods, as it is a Fargate or a virtual node" in told
    explained = run(tmp_path, manifests, "explain", "a")
    assert "1 node: takes no other pods, as it is a Fargate or a virtual node" in " ".join(explained.split())


def test_a_reason_about_a_group_does_not_call_it_a_node_pool(tmp_path: Path) -> None:
    status = autoscaler_status(status_yaml({"web": (1, 5)}))
    plan = plan_of(tmp_path, [status, *one_pod_each([eks_node(f"n{at}", "web") for at in range(3)], cpu="1500m")])
    reasons = [reason for entry in plan["nodes"] for reason in entry["reasons"]]
    assert {reason["object"] for reason in reasons if reason["code"] == "NoGroup"} == {"group web"}
    told = {reason["message"] for reason in reasons if reason["code"] == "NotCheaper"}
    assert told == {"its pods would need another node of group web"}


def test_no_longer_search_is_suggested_where_pods_have_no_other_place_at_any_price(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, one_pod_each([eks_node(f"n{at}", "web") for at in range(3)], cpu="1500m"))
    for entry in plan["nodes"]:
        assert [reason["code"] for reason in entry["reasons"]] == ["PodsWouldNotFit"]


def test_a_windows_node_costs_nobody_knows_what_unless_its_label_says_it(tmp_path: Path) -> None:
    priced = {"eks-node-viewer/instance-price": "0.188"}
    manifests = one_pod_each(
        [
            eks_node("linux", "web"),
            eks_node("windows", "web", os="windows"),
            eks_node("labelled", "web", os="windows", labels=priced),
        ]
    )
    prices = {entry["name"]: entry["pricePerHour"] for entry in plan_of(tmp_path, manifests)["nodes"]}
    assert prices == {"linux": 0.096, "windows": None, "labelled": 0.188}


def test_no_pod_moves_to_a_windows_node_that_has_no_taint_unless_it_asks_for_windows(tmp_path: Path) -> None:
    windows = aks_node("akswin000000", "win", os="windows", cpu="16", memory="64Gi")
    users = [aks_node(f"aks-user-1-vmss00000{at}", "user", zone="eastus-1") for at in range(2)]
    manifests = [windows, *one_pod_each(users, cpu="1500m", tolerations=EVERYTHING), pod("iis-1", "akswin000000")]
    assert plan_of(tmp_path, manifests)["commands"] == []
    told = " ".join(run(tmp_path, manifests, "explain", "aks-user-1-vmss000000").split())
    assert "1: runs Windows, which the pod does not ask for" in told
    assert "it would drain" not in run(tmp_path, manifests, "compact", "--plan")
    asking = [windows, *one_pod_each(users, cpu="1500m", selector={"kubernetes.io/os": "windows"})]
    (command,) = plan_of(tmp_path, asking)["commands"]
    assert {entry["to"] for entry in command["placements"]} == {"akswin000000"}


@pytest.mark.parametrize("zone", ["0", "1", "2"])
def test_an_aks_node_outside_zones_is_labelled_with_its_fault_domain_and_costs_what_the_region_does(
    zone: str, tmp_path: Path
) -> None:
    labels = {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "eastus2"}
    plan = plan_of(tmp_path, one_pod_each([aks_node("aks-user-1-vmss000000", "user", zone="", labels=labels)]))
    assert plan["before"]["pricePerHour"] == 0.096


def test_explain_gives_a_fargate_node_one_reason_and_no_word_about_node_pools(tmp_path: Path) -> None:
    manifests = [node("fargate-1", FARGATE, taints=[FARGATE_TAINT]), pod("job-1", "fargate-1")]
    told = json.loads(run(tmp_path, manifests, "explain", "fargate-1", "-o", "json"))
    assert [reason["code"] for reason in told["alone"]["reasons"]] == ["FargateNode"]


def test_the_compactor_knows_what_it_saves_although_other_nodes_have_no_price(tmp_path: Path) -> None:
    fargate = node("fargate-1", FARGATE, taints=[FARGATE_TAINT])
    manifests = [*one_pod_each([eks_node("a", "web"), eks_node("b", "web")]), fargate]
    assert "it would drain 1 node, which saves 0.096 $/h" in run(tmp_path, manifests, "compact", "--plan")


def test_the_compactor_leaves_nodes_of_node_pools_to_karpenter(tmp_path: Path) -> None:
    auto = {"karpenter.sh/nodepool": "system", "eks.amazonaws.com/compute-type": "auto"}
    manifests = one_pod_each([node("a", {"karpenter.sh/nodepool": "general"}), node("b", {}), node("c", auto)])
    told = json.loads(run(tmp_path, manifests, "compact", "--plan", "-o", "json"))
    assert {entry["name"]: entry["reasons"][0]["message"] for entry in told["nodes"]} == {
        "a": "is of NodePool general, whose nodes Karpenter removes",
        "b": "has no label that names its pool; --pool-label names such a label",
        "c": "is of NodePool system, whose nodes EKS Auto Mode removes",
    }


# -- what to have instead --------------------------------------------------------------------------------------------


def suggested(path: Path, manifests: Sequence[Manifest]) -> dict[str, Any]:
    found: dict[str, Any] = plan_of(path, manifests, "--suggest-pools")["suggestions"]
    return found


def rules_of(suggestion: dict[str, Any]) -> dict[str, list[str]]:
    rules = suggestion["manifest"]["spec"]["template"]["spec"]["requirements"]
    return {rule["key"].rpartition("/")[2]: rule["values"] for rule in rules}


def test_suggested_machines_are_for_any_purpose_and_of_no_old_generation(tmp_path: Path) -> None:
    (aws,) = suggested(tmp_path, one_pod_each([eks_node(f"n{at}", "web") for at in range(3)]))["pools"]
    assert rules_of(aws)["instance-category"] == ["c", "m", "r"]
    assert rules_of(aws)["instance-generation"] == ["4"]
    assert not {kind.partition(".")[0] for kind in aws["fleet"]["instanceTypes"]} & {"m1", "m3", "m4", "c4"}
    azure = [aks_node(f"aks-user-1-vmss00000{at}", "user", zone="eastus2-1") for at in range(3)]
    (pool,) = suggested(tmp_path, one_pod_each(azure))["pools"]
    assert rules_of(pool)["sku-family"] == ["D", "E", "F"]
    assert not any(kind.endswith("_Promo") for kind in pool["fleet"]["instanceTypes"])


@pytest.mark.parametrize(
    ("made", "key", "gpu"),
    [
        (eks_node("a", "gpu", type="g5.2xlarge", cpu="7910m", memory="28Gi"), "instance-gpu-name", "a10g"),
        (
            gke_node("a", "gpu", type="a2-highgpu-1g", cpu="11", memory="80Gi"),
            "instance-gpu-name",
            "nvidia-tesla-a100",
        ),
        (aks_node("a", "gpu", type="Standard_NC4as_T4_v3", zone="eastus2-1", memory="24Gi"), "sku-gpu-name", "t4"),
    ],
)
def test_pods_of_gpu_nodes_are_suggested_machines_with_the_same_gpu(
    made: Manifest, key: str, gpu: str, tmp_path: Path
) -> None:
    for amounts in (made["status"]["capacity"], made["status"]["allocatable"]):
        amounts["nvidia.com/gpu"] = "1"
    user = pod("infer-1", "a", cpu="1")
    user["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    (pool,) = suggested(tmp_path, [made, user])["pools"]
    assert rules_of(pool)[key] == [gpu]
    assert pool["fleet"]["unplacedPods"] == 0


def test_nothing_of_a_cloud_is_suggested_for_machines_that_no_cloud_sells(tmp_path: Path) -> None:
    manifests = one_pod_each([node(f"md-{at}", {"cluster.x-k8s.io/deployment-name": "md"}) for at in range(3)])
    assert suggested(tmp_path, manifests) == {"groups": [], "pools": []}
    told = run(tmp_path, manifests, "plan", "--suggest-pools")
    assert "No machines are known that could take the place of those of the node groups." in told


def test_the_number_of_a_fault_domain_is_no_zone_to_ask_for(tmp_path: Path) -> None:
    place = {"topology.kubernetes.io/region": "eastus2", "topology.kubernetes.io/zone": "0"}
    azure = [aks_node(f"aks-user-1-vmss00000{at}", "user", labels=place, zone="") for at in range(2)]
    (pool,) = suggested(tmp_path, one_pod_each(azure))["pools"]
    assert "zone" not in rules_of(pool)
    assert pool["fleet"]["unplacedPods"] == 0
