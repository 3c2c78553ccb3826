"""What plan and explain say of clusters as clouds make them."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result
from tests.factories.clouds import (
    UUID,
    Manifest,
    aks_node,
    autoscaler_status,
    control_plane_taint,
    eks_node,
    gke_node,
    node,
    one_pod_each,
    openshift_node,
    pod,
    status_text,
    status_yaml,
)

from karpool.cli.main import cli

AT = ("--at", "2026-11-16T12:00:00Z")
QUICK = {command: {"effort": 0} for command in ("plan", "explain")}


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, arguments, default_map=QUICK)
    assert result.exit_code == 0, result.stderr
    return result


def written(path: Path, manifests: Sequence[Manifest]) -> str:
    file = path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}))
    return str(file)


def plan_of(path: Path, manifests: Sequence[Manifest], *options: str) -> dict[str, Any]:
    file = written(path, manifests)
    plan: dict[str, Any] = json.loads(run("plan", "-f", file, *AT, "--no-bound", *options, "--output", "json").stdout)
    return plan


class Cloud(NamedTuple):
    """A cluster, what its groups become, and why the nodes outside of groups stay, by code."""

    manifests: list[Manifest]
    groups: dict[str, tuple[int, int]]
    others: dict[str, str]


AUTO_MODE = {"eks.amazonaws.com/compute-type": "auto", "karpenter.sh/nodepool": "general-purpose"}
FARGATE = {"eks.amazonaws.com/compute-type": "fargate"}
FARGATE_TAINT = {"key": "eks.amazonaws.com/compute-type", "value": "fargate", "effect": "NoSchedule"}
MIG = "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/instanceGroups/gke-shop-pool-1a2b-grp"


def _named(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


CLOUDS = {
    "EKS with managed groups and Fargate": Cloud(
        [
            *one_pod_each([eks_node(name, "web") for name in _named("ip-10-0-0-", 6)]),
            node("fargate-ip-10-0-9-1", FARGATE, taints=[FARGATE_TAINT]),
            autoscaler_status(status_yaml({f"eks-web-{UUID}": (2, 10)})),
        ],
        {"web": (6, 2)},
        {"fargate-ip-10-0-9-1": "FargateNode"},
    ),
    "EKS Auto Mode": Cloud(
        one_pod_each([node(name, AUTO_MODE, type="c6g.large", zone="us-east-1a") for name in _named("i-0", 2)]),
        {},
        {"i-00": "AutoModeNode", "i-01": "AutoModeNode"},
    ),
    "GKE Standard": Cloud(
        [
            *one_pod_each([gke_node(f"gke-shop-pool-1a2b-{name}", "pool") for name in ("aaaa", "bbbb", "cccc")]),
            autoscaler_status(status_text({MIG: (1, 5)})),
        ],
        {"pool": (3, 1)},
        {},
    ),
    "GKE Autopilot": Cloud(
        one_pod_each([gke_node(f"gk3-shop-nap-1a2b-{name}", "nap-1") for name in ("aaaa", "bbbb")]),
        {},
        {"gk3-shop-nap-1a2b-aaaa": "AutopilotNode", "gk3-shop-nap-1a2b-bbbb": "AutopilotNode"},
    ),
    "AKS": Cloud(
        [
            *one_pod_each([aks_node(f"aks-user-12345678-vmss00000{at}", "user") for at in range(4)]),
            aks_node("aks-system-87654321-vmss000000", "system", mode="system"),
            pod("coredns-1", "aks-system-87654321-vmss000000", namespace="kube-system"),
            node("virtual-node-aci-linux", {"type": "virtual-kubelet"}),
            autoscaler_status(status_text({"aks-user-12345678-vmss": (1, 5), "aks-system-87654321-vmss": (1, 3)})),
        ],
        {"system": (1, 1), "user": (4, 1)},
        {"virtual-node-aci-linux": "VirtualNode"},
    ),
    "k3s": Cloud(
        [
            *one_pod_each([node("agent-1", {"node.kubernetes.io/instance-type": "k3s"})]),
            node("server-1", {"node-role.kubernetes.io/control-plane": "true"}),
        ],
        {},
        {"agent-1": "NotManaged", "server-1": "ControlPlaneNode"},
    ),
    "kind": Cloud(
        [
            *one_pod_each([node("kind-worker", {}), node("kind-worker2", {})]),
            node("kind-control-plane", {"node-role.kubernetes.io/control-plane": ""}, taints=[control_plane_taint()]),
        ],
        {},
        {"kind-worker": "NotManaged", "kind-worker2": "NotManaged", "kind-control-plane": "ControlPlaneNode"},
    ),
    "OpenShift": Cloud(
        [
            *one_pod_each([openshift_node(name, "shop-worker-us-east-1a") for name in _named("ip-10-0-1-", 3)]),
            openshift_node("ip-10-0-2-1", "shop-master", role="master", taints=[control_plane_taint("master")]),
        ],
        {"shop-worker-us-east-1a": (3, 1)},
        {"ip-10-0-2-1": "ControlPlaneNode"},
    ),
}


@pytest.mark.parametrize("cloud", CLOUDS.values(), ids=CLOUDS)
def test_a_plan_says_what_groups_become_and_why_other_nodes_are_left_alone(cloud: Cloud, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, cloud.manifests)
    assert {group["name"]: (group["before"], group["after"]) for group in plan["groups"]} == cloud.groups
    nodes = {entry["name"]: entry for entry in plan["nodes"]}
    for name, code in cloud.others.items():
        assert [reason["code"] for reason in nodes[name]["reasons"]] == [code]
        assert "nobody who could remove it manages it" not in nodes[name]["reasons"][0]["message"]
    grouped = {name for name, entry in nodes.items() if entry["managedBy"] == "NodeGroup"}
    assert grouped == nodes.keys() - cloud.others.keys()
    removed = [name for group in plan["groups"] for name in group["removed"]]
    assert set(removed) == {name for command in plan["commands"] for name in command["nodes"]}
    saved = plan["savings"]["pricePerHour"]
    assert saved is None or saved > 0 or not removed


@pytest.mark.slow
@pytest.mark.parametrize("cloud", CLOUDS.values(), ids=CLOUDS)
def test_explain_agrees_with_the_plan_and_its_counterfactuals_fit_the_cluster(cloud: Cloud, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, cloud.manifests)
    for entry in plan["nodes"]:
        told = json.loads(
            run("explain", entry["name"], "-f", written(tmp_path, cloud.manifests), *AT, "-o", "json").stdout
        )
        assert told["inPlan"]["verdict"] == entry["verdict"]
        assert told["inPlan"]["reasons"] == entry["reasons"]
        assert told["node"]["managedBy"] == entry["managedBy"]
        assert not (told["unblock"] and entry["name"] in cloud.others)
        assert entry["name"] not in cloud.others or not any("nodepool" in str(rule["reason"]) for rule in told["rules"])
        assert not any("NodeClaim" in condition["if"] for condition in told["unblock"])


SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
EMPTY_DIR = {"name": "scratch", "emptyDir": {}}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"annotations": {SAFE: "false"}}, "PodNotSafeToEvict"),
        ({"owner": None}, "PodNotReplicated"),
        ({"owner": None, "annotations": {SAFE: "true"}}, None),
        ({"volumes": [EMPTY_DIR]}, "PodLocalStorage"),
        ({"volumes": [EMPTY_DIR], "annotations": {SAFE: "true"}}, None),
        ({"volumes": [{"name": "scratch", "emptyDir": {"medium": "Memory"}}]}, None),
        ({"namespace": "kube-system"}, "SystemPod"),
        ({"namespace": "kube-system", "owner": "DaemonSet"}, None),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "PodDoNotDisrupt"),
    ],
)
def test_what_cluster_autoscaler_would_not_remove_stays(
    change: dict[str, Any], code: str | None, tmp_path: Path
) -> None:
    manifests = [
        eks_node("a", "web"),
        eks_node("b", "web"),
        pod("big-1", "b", cpu="1200m", annotations={SAFE: "false"}),
        pod("web-1", "a", **change),
    ]
    verdict = plan_of(tmp_path, manifests)["nodes"][0]
    assert verdict["verdict"] == ("delete" if code is None else "keep")
    assert code is None or [reason["code"] for reason in verdict["reasons"]] == [code]


def test_local_storage_does_not_keep_nodes_where_the_autoscaler_does_not_mind(tmp_path: Path) -> None:
    manifests = one_pod_each([gke_node("gke-a", "pool"), gke_node("gke-b", "pool")], volumes=[EMPTY_DIR])
    assert plan_of(tmp_path, manifests)["after"]["nodes"] == 1


def test_a_kube_system_pod_under_a_budget_moves(tmp_path: Path) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "dns", "namespace": "kube-system"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "dns"}}},
        "status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2},
    }
    manifests = [
        eks_node("a", "web"),
        eks_node("b", "web"),
        pod("dns-1", "a", namespace="kube-system"),
        pod("web-1", "b", cpu="600m"),
    ]
    assert plan_of(tmp_path, [*manifests, budget])["after"]["nodes"] == 1
    kept = plan_of(tmp_path, manifests)
    assert [entry["verdict"] for entry in kept["nodes"]] == ["keep", "delete"]


def test_a_node_with_scale_down_disabled_stays(tmp_path: Path) -> None:
    disabled = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    nodes = [eks_node("a", "web", annotations=disabled), eks_node("b", "web", annotations=disabled)]
    plan = plan_of(tmp_path, one_pod_each(nodes))
    assert {reason["code"] for entry in plan["nodes"] for reason in entry["reasons"]} == {"ScaleDownDisabled"}


def test_a_minimum_from_a_file_is_kept_and_said_to_be_unknown_without_one(tmp_path: Path) -> None:
    manifests = one_pod_each([eks_node(f"n{at}", "web") for at in range(6)])
    sizes = tmp_path / "sizes.yaml"
    sizes.write_text("groups: {web: {minimum: 4, maximum: 9}, gone: {minimum: 1}}")
    file = written(tmp_path, manifests)
    told = run("plan", "-f", file, *AT, "--groups", str(sizes), "--no-bound")
    assert "web   | 6 -> 4 | 0.576 -> 0.384 |     4-9" in told.stdout
    assert "GroupAtMinimum" in told.stdout
    assert "--groups names gone" in told.stderr
    unknown = run("plan", "-f", file, *AT, "--no-bound")
    assert "web   | 6 -> 2 | 0.576 -> 0.192 |     ?-?" in unknown.stdout
    assert "nobody says how small and large these node groups may be: web" in unknown.stderr


def test_a_status_that_cannot_be_read_is_told_instead_of_advice_to_fetch_it(tmp_path: Path) -> None:
    nodes = one_pod_each([eks_node(f"n{at}", "web") for at in range(3)])
    fetch = "kubectl get configmap cluster-autoscaler-status"
    unreadable = "ConfigMap kube-system/cluster-autoscaler-status cannot be read"
    texts = {"garbage: [}": True, "": True, "autoscalerStatus: Running": False, "Cluster-autoscaler status at 9": False}
    for text, told in texts.items():
        said = run("plan", "-f", written(tmp_path, [*nodes, autoscaler_status(text)]), *AT, "--no-bound").stderr
        assert (unreadable in said, fetch in said, "one. --groups says it" in said) == (told, False, True), text
    assert fetch in run("plan", "-f", written(tmp_path, nodes), *AT, "--no-bound").stderr


def grown(tmp_path: Path, most: int, affinity: Sequence[Manifest] = ()) -> dict[str, Any]:
    """A large node whose pod fits on a small one of another group, which may have so many."""
    manifests = [
        eks_node("small-0", "small"),
        pod("full-1", "small-0", cpu="1700m"),
        eks_node("large-0", "large", type="m5.4xlarge", cpu="15890m", memory="57Gi"),
        pod("web-1", "large-0"),
        autoscaler_status(status_yaml({f"eks-small-{UUID}": (1, most), f"eks-large-{UUID}": (0, 0)})),
    ]
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(affinity)}]}
    if affinity:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        manifests[3]["spec"]["affinity"] = {"nodeAffinity": required}
    return plan_of(tmp_path, manifests)


def test_a_group_grows_where_that_costs_less_and_only_up_to_its_maximum(tmp_path: Path) -> None:
    plan = grown(tmp_path, most=3)
    assert {group["name"]: (group["before"], group["after"]) for group in plan["groups"]} == {
        "large": (1, 0),
        "small": (1, 2),
    }
    new = plan["commands"][0]["replacements"][0]
    assert (new["nodePool"], new["instanceTypes"]) == ("small", ["m5.large"])
    full = grown(tmp_path, most=1)
    assert full["commands"] == []
    large = next(entry for entry in full["nodes"] if entry["name"] == "large-0")
    assert "group small: has its maximum of 1 nodes" in large["reasons"][0]["message"]


def test_a_pod_that_keeps_off_node_pools_moves_to_a_new_node_of_a_group(tmp_path: Path) -> None:
    plan = grown(tmp_path, most=3, affinity=[{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}])
    assert plan["commands"][0]["decision"] == "replace"
    kept = grown(tmp_path, most=3, affinity=[{"key": "karpenter.sh/nodepool", "operator": "Exists"}])
    assert kept["commands"] == []


def test_in_a_mixed_cluster_each_node_is_under_the_rules_of_who_manages_it(tmp_path: Path) -> None:
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "general"},
        "spec": {
            "template": {"spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "x"}}}
        },
    }
    labels = {
        "karpenter.sh/nodepool": "general",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
    }
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "general-1", "labels": labels},
        "spec": {},
        "status": {"nodeName": "karpenter-1", "providerID": "cloud:///karpenter-1"},
    }
    local = {"volumes": [EMPTY_DIR]}
    manifests = [
        pool,
        claim,
        node("karpenter-1", labels, type="m5.large", zone="us-east-1a"),
        eks_node("group-1", "web"),
        eks_node("group-2", "web"),
        pod("a-1", "karpenter-1", **local),
        pod("b-1", "group-1", **local),
        pod("c-1", "group-2", cpu="700m", selector={"eks.amazonaws.com/nodegroup": "web"}),
    ]
    plan = plan_of(tmp_path, manifests)
    nodes = {entry["name"]: entry for entry in plan["nodes"]}
    assert {name: (entry["managedBy"], entry["nodePool"]) for name, entry in nodes.items()} == {
        "group-1": ("NodeGroup", "web"),
        "group-2": ("NodeGroup", "web"),
        "karpenter-1": ("NodePool", "general"),
    }
    # Karpenter moves a pod with an emptyDir; Cluster Autoscaler keeps its node.
    assert nodes["karpenter-1"]["verdict"] == "delete"
    assert nodes["group-1"]["reasons"][0]["code"] == "PodLocalStorage"
    assert nodes["group-2"]["verdict"] == "delete"


def test_pods_that_ask_for_a_label_of_karpenter_do_not_move_to_groups(tmp_path: Path) -> None:
    manifests = [
        eks_node("group-1", "web"),
        eks_node("group-2", "web"),
        pod("a-1", "group-1", selector={"karpenter.sh/capacity-type": "on-demand"}),
        pod("b-1", "group-2"),
    ]
    kept = {entry["name"]: entry["verdict"] for entry in plan_of(tmp_path, manifests)["nodes"]}
    assert kept["group-1"] == "keep"


def test_the_plan_tells_what_the_compactor_would_drain_and_the_page_shows_groups(tmp_path: Path) -> None:
    file = written(tmp_path, one_pod_each([eks_node(f"n{at}", "web") for at in range(4)]))
    told = run("plan", "-f", file, *AT, "--no-bound").stdout
    assert "Left alone, `karpool compact` would drain 3 nodes in this order: n0, n" in told
    page = run("plan", "-f", file, *AT, "--no-bound", "--output", "html").stdout
    assert '<tr><th scope="row">web</th><td>4 → 1 nodes</td>' in page


def test_pools_are_suggested_with_money_and_a_manifest_that_holds_the_same_pods(tmp_path: Path) -> None:
    taint = {"key": "team", "value": "data", "effect": "NoSchedule"}
    large = {"type": "m5.4xlarge", "cpu": "15890m", "memory": "57Gi"}
    data = eks_node("data-1", "data", taints=[taint], labels={"disk": "fast", "unused": "x"}, **large)
    tolerating = [{"key": "team", "operator": "Exists"}]
    manifests = [
        *one_pod_each([eks_node(f"n{at}", "web") for at in range(3)]),
        data,
        pod("db-1", "data-1", cpu="3", selector={"disk": "fast"}, tolerations=tolerating),
    ]
    plan = plan_of(tmp_path, manifests, "--suggest-pools")
    pools = {pool["name"]: pool for pool in plan["suggestions"]["pools"]}
    assert {name: pool["nodes"] for name, pool in pools.items()} == {"web": 3, "data": 1}
    for pool in pools.values():
        assert pool["fleet"]["unplacedPods"] == 0
        assert pool["fleet"]["pricePerHour"] < pool["pricePerHour"]
        assert sum(pool["fleet"]["instanceTypes"].values()) == pool["fleet"]["nodes"]
    manifest = pools["data"]["manifest"]
    assert (manifest["apiVersion"], manifest["kind"]) == ("karpenter.sh/v1", "NodePool")
    template = manifest["spec"]["template"]
    assert template["metadata"]["labels"] == {"disk": "fast"}
    assert template["spec"]["taints"] == [taint]
    rules = {rule["key"]: rule["values"] for rule in template["spec"]["requirements"]}
    assert rules["karpenter.sh/capacity-type"] == ["on-demand"]
    assert rules["topology.kubernetes.io/zone"] == ["us-east-1a"]
    other = next(group for group in plan["suggestions"]["groups"] if group["name"] == "data")
    assert other["fleet"]["pricePerHour"] < other["pricePerHour"]
    assert len(other["fleet"]["instanceTypes"]) == 1
    pool_file = tmp_path / "pool.json"
    pool_file.write_text(json.dumps(manifest))
    run("validate", "-f", str(pool_file))


def test_savings_of_suggestions_are_told_against_today_and_against_the_plan(tmp_path: Path) -> None:
    manifests = one_pod_each([eks_node(f"n{at}", "web", type="m5.xlarge", cpu="3920m") for at in range(4)])
    plan = plan_of(tmp_path, manifests, "--suggest-pools")
    (pool,), (group,) = plan["suggestions"]["pools"], plan["suggestions"]["groups"]
    assert pool["pricePerHour"] == pytest.approx(4 * 0.192)
    assert pool["plannedPricePerHour"] == group["plannedPricePerHour"] == pytest.approx(0.192)
    told = run("plan", "-f", written(tmp_path, manifests), *AT, "--no-bound", "--suggest-pools").stdout
    fleet = pool["fleet"]["pricePerHour"]
    saved, beyond = (f"{730 * (price - fleet):,.0f} $/month" for price in (4 * 0.192, 0.192))
    assert f"the NodePool would save {saved} against today, {beyond} against the steps above." in " ".join(told.split())
    assert re.search(rf"or group web +\| another machine type .*{re.escape(saved)} \| +{re.escape(beyond)}", told)


def test_a_group_is_suggested_machines_of_other_families_although_its_label_names_one(tmp_path: Path) -> None:
    labels = {"cloud.google.com/machine-family": "n2"}
    nodes = [gke_node(f"g{at}", "pool", type="n2-standard-4", cpu="3920m", labels=labels) for at in range(3)]
    groups = plan_of(tmp_path, one_pod_each(nodes), "--suggest-pools")["suggestions"]["groups"]
    (kind,) = groups[0]["fleet"]["instanceTypes"]
    assert not kind.startswith("n2-")


OURS = one_pod_each([node(f"worker-{at}", {"acme.io/pool": "general"}) for at in range(3)])


def test_a_file_of_groups_says_what_nodes_without_a_type_cost(tmp_path: Path) -> None:
    file, sizes = written(tmp_path, OURS), tmp_path / "sizes.yaml"
    sizes.write_text("groups: {general: {price: 0.25}}\n")
    named = ("-f", file, *AT, "--pool-label", "acme.io/pool", "--groups", str(sizes))
    plan = json.loads(run("plan", *named, "--no-bound", "-o", "json").stdout)
    assert (plan["before"]["pricePerHour"], plan["savings"]["pricePerHour"]) == (0.75, 0.5)
    assert [part["source"] for part in plan["prices"]] == ["--groups"]
    compacted = run("compact", "--plan", *named).stdout
    assert "which saves 0.50 $/h" in compacted
    assert "Prices: --groups." in compacted
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "cluster: [cluster.json]\nlength: 1h\npoolLabel: acme.io/pool\ngroups: sizes.yaml\n"
        "policies: {p: {nodeGroups: false}}\n"
    )
    simulation = json.loads(run("simulate", str(scenario), "-o", "json").stdout)
    (simulated,) = simulation["policies"].values()
    assert simulated["cost"] == pytest.approx(0.75)
    assert [part["source"] for part in simulation["prices"]] == ["--groups"]


@pytest.mark.parametrize("maximum", ["", ", maximum: 6"])
def test_without_any_price_no_pod_is_moved_twice(maximum: str, tmp_path: Path) -> None:
    small = [node(f"worker-{at}", {"acme.io/pool": "general"}, cpu="8", memory="32Gi") for at in range(5)]
    large = [node(f"big-{at}", {"acme.io/pool": "big"}, cpu="16", memory="64Gi") for at in range(2)]
    pods = [pod(f"web-{at}", f"worker-{at % 5}", cpu="900m") for at in range(8)]
    pods += [pod(f"db-{at}", f"big-{at}", cpu="2", memory="8Gi") for at in range(2)]
    sizes = tmp_path / "sizes.yaml"
    sizes.write_text(f"groups: {{general: {{minimum: 1{maximum}}}, big: {{minimum: 1}}}}\n")
    options = ("--pool-label", "acme.io/pool", "--groups", str(sizes), "--effort", "1")
    plan = plan_of(tmp_path, [*small, *large, *pods], *options)
    moved = [placement["pod"] for command in plan["commands"] for placement in command["placements"]]
    assert plan["after"]["nodes"] == 2
    assert len(moved) == len(set(moved))
    assert (plan["before"]["pricePerHour"], plan["savings"]["pricePerHour"]) == (None, None)


def test_a_file_that_tells_a_price_leaves_sizes_to_the_status(tmp_path: Path) -> None:
    sizes = tmp_path / "sizes.yaml"
    sizes.write_text("groups: {web: {price: 0.25}}\n")
    status = autoscaler_status(status_yaml({"web": (2, 5)}))
    cluster = [status, *one_pod_each([node(f"n{at}", {"agentpool": "web"}) for at in range(3)])]
    (group,) = plan_of(tmp_path, cluster, "--groups", str(sizes))["groups"]
    assert (group["minimum"], group["maximum"], group["after"], group["priceAfter"]) == (2, 5, 2, 0.5)


def test_a_price_that_counts_for_nothing_or_is_none_is_told(tmp_path: Path) -> None:
    file, sizes = written(tmp_path, one_pod_each([eks_node("a", "web")])), tmp_path / "sizes.yaml"
    sizes.write_text("groups: {web: {price: 0.25}}\n")
    told = run("plan", "-f", file, *AT, "--no-bound", "--groups", str(sizes))
    assert "the price 0.25, which counts only where no other is known" in told.stderr
    sizes.write_text("groups: {web: {price: -1}}\n")
    refused = CliRunner().invoke(cli, ["plan", "-f", file, "--groups", str(sizes)])
    assert (refused.exit_code, "groups.web.price" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("manifests", "options", "hint"),
    [
        (OURS, (), "--pool-label makes nodes groups, whose prices --groups FILE names."),
        (OURS, ("--pool-label", "acme.io/pool"), "--groups FILE names prices of groups."),
        (
            one_pod_each([eks_node("a", "web", zone="mx-central-1a")]),
            (),
            "--catalog FILE or --price names prices of types.",
        ),
        (one_pod_each([eks_node("a", "web"), eks_node("w", "win", os="windows")]), (), "not counted."),
    ],
)
def test_a_hint_names_what_can_tell_the_unknown_prices(
    manifests: Sequence[Manifest], options: tuple[str, ...], hint: str, tmp_path: Path
) -> None:
    told = run("plan", "-f", written(tmp_path, manifests), *AT, "--no-bound", *options).stdout
    assert hint in " ".join(told.split())


def test_no_saving_is_claimed_for_a_pool_that_would_not_hold_its_pods_or_whose_prices_nobody_knows(
    tmp_path: Path,
) -> None:
    pinned = pod("pinned", "a", selector={"kubernetes.io/hostname": "a"})
    nowhere = written(tmp_path, [eks_node("a", "web"), pinned])
    told = run("plan", "-f", nowhere, *AT, "--no-bound", "--suggest-pools", "-o", "json").stdout
    fleet = json.loads(told)["suggestions"]["pools"][0]["fleet"]
    assert (fleet["unplacedPods"], fleet["pricePerHour"]) == (1, None)
    told = run("plan", "-f", nowhere, *AT, "--no-bound", "--suggest-pools").stdout
    assert "NodePool web: 1 pod would find no place: for example Pod shop/pinned: " in told
    assert "1 -> ?" in told
    unpriced = eks_node("a", "web", zone="mx-central-1a")
    told = run("plan", "-f", written(tmp_path, one_pod_each([unpriced])), *AT, "--no-bound", "--suggest-pools")
    assert "NodePool web: the prices of machines are not known" in told.stdout
    assert "karpool catalog update --cloud aws --region mx-central-1" in told.stderr


def test_no_pool_is_suggested_for_groups_of_two_clouds_or_regions(tmp_path: Path) -> None:
    manifests = [
        eks_node("a", "web"),
        eks_node("b", "api"),
        eks_node("c", "far", zone="eu-west-1a"),
        gke_node("d", "g"),
    ]
    plan = plan_of(tmp_path, one_pod_each(manifests), "--suggest-pools")
    assert sorted(pool["groups"] for pool in plan["suggestions"]["pools"]) == [["api", "web"], ["far"], ["g"]]
    classes = {
        pool["name"]: pool["manifest"]["spec"]["template"]["spec"]["nodeClassRef"]["kind"]
        for pool in plan["suggestions"]["pools"]
    }
    assert classes == {"api-web": "EC2NodeClass", "far": "EC2NodeClass", "g": "GCENodeClass"}


def test_of_a_node_that_is_left_alone_nobody_asks_where_its_pods_would_go(tmp_path: Path) -> None:
    fargate = node("fargate-ip-10-0-9-1", FARGATE, taints=[FARGATE_TAINT])
    file = written(tmp_path, one_pod_each([eks_node("a", "web"), fargate]))
    told = run("explain", fargate["metadata"]["name"], "-f", file, *AT).stdout
    assert "FargateNode" in told
    assert "would go" not in told
    assert "have to move" not in told
    assert "Rules: 0 of 1" in told


def test_suggestions_for_a_cluster_without_groups_say_so(tmp_path: Path) -> None:
    file = written(tmp_path, one_pod_each([node("kind-worker", {})]))
    assert "There are no node groups." in run("plan", "-f", file, *AT, "--no-bound", "--suggest-pools").stdout
    told = run("plan", "-f", written(tmp_path, one_pod_each([eks_node("a", "web")])), *AT, "--suggest-pools").stdout
    assert "kind: NodePool" in told


# -- the compactor ---------------------------------------------------------------------------------------------------


def compaction_of(path: Path, manifests: Sequence[Manifest], *options: str) -> dict[str, Any]:
    file = written(path, manifests)
    told: dict[str, Any] = json.loads(run("compact", "--plan", "-f", file, *AT, *options, "-o", "json").stdout)
    return told


@pytest.mark.parametrize("cloud", CLOUDS.values(), ids=CLOUDS)
def test_the_compactor_without_a_configuration_shows_every_pool_the_end_and_the_money(
    cloud: Cloud, tmp_path: Path
) -> None:
    told = compaction_of(tmp_path, cloud.manifests)
    assert told["configured"] is False
    pools = {name: pool for name, pool in told["end"]["pools"].items() if told["pools"][name]["enabled"]}
    assert {name: (pool["before"], pool["after"]) for name, pool in pools.items()} == cloud.groups
    assert len(told["end"]["drains"]) == sum(before - after for before, after in cloud.groups.values())
    reasons = {node["name"]: node["reasons"] for node in told["nodes"]}
    assert all(reasons[name][0]["code"] in {"NoPool", "PoolNotEnabled"} for name in cloud.others)


def test_the_compactor_ends_where_it_would_end_step_by_step(tmp_path: Path) -> None:
    nodes = [eks_node(f"n{at}", "web") for at in range(4)]
    pods = [pod(f"web-{at}", f"n{at}", cpu=f"{200 + 100 * at}m") for at in range(4)]
    now = ("--needed-marked-time-for-removal-seconds", "0")
    order = [drain["node"] for drain in compaction_of(tmp_path, [*nodes, *pods])["end"]["drains"]]
    stepped = []
    while chosen := compaction_of(tmp_path, [*nodes, *pods], *now)["chosen"]:
        stepped.append(chosen[0]["node"])
        places = {placement["pod"]: placement["to"] for placement in chosen[0]["placements"]}
        nodes = [entry for entry in nodes if entry["metadata"]["name"] != chosen[0]["node"]]
        for entry in pods:
            entry["spec"]["nodeName"] = places.get(f"shop/{entry['metadata']['name']}", entry["spec"]["nodeName"])
    assert order == stepped
    assert order == ["n0", "n2", "n3"]


def test_the_compactor_keeps_the_minimum_that_the_autoscaler_or_a_file_says(tmp_path: Path) -> None:
    manifests = one_pod_each([eks_node(f"n{at}", "web") for at in range(5)])
    status = autoscaler_status(status_text({f"eks-web-{UUID}": (5, 9)}))
    now = ("--needed-marked-time-for-removal-seconds", "0")
    told = compaction_of(tmp_path, [*manifests, status], *now)
    assert (told["chosen"], told["end"]["drains"]) == ([], [])
    assert {reason["code"] for node in told["nodes"] for reason in node["reasons"]} == {"GroupAtMinimum"}
    sizes = tmp_path / "sizes.yaml"
    sizes.write_text("groups: {web: {minimum: 4}}")
    assert len(compaction_of(tmp_path, [*manifests, status], "--groups", str(sizes))["end"]["drains"]) == 1
    config = tmp_path / "config.yaml"
    config.write_text("nodePools: {web: {enabled: true, scaleDownCPURequestRatioLimit: 0.5, minimumNodes: 3}}")
    configured = compaction_of(tmp_path, [*manifests, status], "--config", str(config))
    assert configured["configured"] is True
    assert len(configured["end"]["drains"]) == 2


def test_the_table_of_the_compactor_tells_the_end_and_its_order(tmp_path: Path) -> None:
    manifests = one_pod_each([eks_node(f"n{at}", "web") for at in range(4)])
    told = run("compact", "--plan", "-f", written(tmp_path, manifests), *AT, "--price", "m5.large=0.5").stdout
    assert "There is no configuration, so every node group takes part" in told
    assert "Left alone, it would drain 3 nodes, which saves 1.50 $/h" in told
    assert "web  | 4 -> 1 | 2.00 -> 0.50 |     ?-?" in told
    assert "In this order: n0, n" in told


OWN_LABEL = [node(f"srv-{number}", {"acme.io/pool": f"p{number % 2}"}) for number in range(4)]


@pytest.mark.parametrize(
    ("command", "options", "told"),
    [
        (("plan",), ("--pool-label", "acme.io/poool"), "no node has it; did you mean acme.io/pool?"),
        (("explain", "srv-0"), ("--pool-label", "acme.io/poool"), "no node has it; did you mean acme.io/pool?"),
        (("compact", "--plan"), ("--pool-label", "acme.io/poool"), "no node has it; did you mean acme.io/pool?"),
        (("plan",), (), "--pool-label acme.io/pool says so"),
        (("plan",), ("--pool-label", "acme.io/pool"), ""),
    ],
)
def test_a_label_of_ones_own_that_is_misspelt_or_not_given_is_told(
    command: tuple[str, ...], options: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    result = run(*command, "-f", written(tmp_path, one_pod_each(OWN_LABEL)), *AT, *options)
    lines = [line for line in result.stderr.splitlines() if "--pool-label" in line]
    assert len(lines) == bool(told)
    assert all(line.endswith(told) for line in lines)
