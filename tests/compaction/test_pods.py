"""Which pods keep a node, and which of them are moved."""

from typing import Any

import pytest
from tests.compaction.clusters import (
    NOW,
    ROOMY,
    codes,
    config,
    decided,
    names,
    pool_config,
    pool_node,
)
from tests.factories import pdb, pod

from karpool.model.pod import EmptyDir, HostPath, Volume

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SCRATCH = Volume(name="scratch", empty_dir=EmptyDir())
MEMORY = Volume(name="fast", empty_dir=EmptyDir(medium="Memory"))
HOST = Volume(name="host", host_path=HostPath(path="/data"))


@pytest.mark.parametrize(
    ("rest", "code"),
    [
        ({}, None),
        ({"annotations": {SAFE: "false"}}, "PodNotSafeToEvict"),
        ({"annotations": {SAFE: "false"}, "namespace": "kube-system"}, "PodNotSafeToEvict"),
        ({"annotations": {SAFE: "false"}, "owner": "DaemonSet"}, "PodNotSafeToEvict"),
        ({"annotations": {SAFE: "false"}, "phase": "Succeeded"}, None),
        ({"annotations": {SAFE: "true"}}, None),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "PodDoNotDisrupt"),
        ({"volumes": [SCRATCH]}, "PodLocalStorage"),
        ({"volumes": [MEMORY]}, None),
        ({"volumes": [HOST]}, "PodLocalStorage"),
        ({"volumes": [SCRATCH, HOST], "annotations": {SAFE: "true"}}, None),
        ({"volumes": [SCRATCH], "annotations": {f"{SAFE}-local-volumes": "other, scratch"}}, None),
        ({"volumes": [SCRATCH, HOST], "annotations": {f"{SAFE}-local-volumes": "scratch"}}, "PodLocalStorage"),
        ({"volumes": [HOST], "owner": "DaemonSet"}, None),
        ({"volumes": [SCRATCH], "namespace": "kube-system"}, None),
        ({"owner": None}, "PodNotReplicated"),
        ({"owner": None, "annotations": {SAFE: "true"}}, "PodNotReplicated"),
        ({"owner": None, "namespace": "kube-system"}, None),
        ({"owner": None, "phase": "Failed"}, None),
        ({"owner": "Node"}, None),
        ({"owner": "StatefulSet"}, None),
        ({"owner": "Job"}, None),
        ({"owner": "ReplicationController"}, None),
        ({"owner": "CloneSet"}, None),
    ],
)
def test_which_pods_keep_a_node(rest: dict[str, Any], code: str | None) -> None:
    decision = decided(pool_node("n1", pods=["100m", pod("one-1", cpu="100m", node="n1", **rest)]), ROOMY)
    assert codes(decision)["n1"] == ([] if code is None else [code])
    assert names(decision) == ([] if code else ["n1"])


def test_every_pod_that_keeps_a_node_is_named() -> None:
    alone = pod("alone", node="n1", owner=None)
    scratch = pod("held-1", node="n1", volumes=[SCRATCH])
    (verdict, _) = decided(pool_node("n1", pods=[alone, scratch]), ROOMY).nodes
    assert [reason.object for reason in verdict.reasons] == ["Pod default/alone", "Pod default/held-1"]
    assert "scratch" in verdict.reasons[1].message


def test_only_ordinary_pods_are_moved() -> None:
    others = [
        pod("agent-1", node="n1", owner="DaemonSet"),
        pod("dns-1", node="n1", namespace="kube-system"),
        pod("static-1", node="n1", owner="Node"),
        pod("done-1", node="n1", owner="Job", phase="Succeeded"),
        pod("leaving-1", node="n1", deleted=NOW),
    ]
    (chosen,) = decided(pool_node("n1", pods=["100m", *others]), ROOMY).chosen
    assert [(place.pod, place.target) for place in chosen.placements] == [("default/n1-0", "z-roomy")]


@pytest.mark.parametrize(
    ("rest", "budgets", "warned"),
    [
        ({}, (), True),
        ({"annotations": {SAFE: "true"}}, (), False),
        ({"owner": "DaemonSet"}, (), False),
        ({}, (pdb("dns", {"app": "dns"}, namespace="kube-system"),), False),
    ],
)
def test_kube_system_pods_that_the_autoscaler_would_not_move_are_warned_of_or_keep_the_node(
    rest: dict[str, Any], budgets: Any, *, warned: bool
) -> None:
    nodes = (pool_node("n1", pods=["100m", pod("dns-1", node="n1", namespace="kube-system", **rest)]), ROOMY)
    (chosen,) = decided(*nodes, pod_disruption_budgets=budgets).chosen
    assert [reason.object for reason in chosen.warnings] == (["Pod kube-system/dns-1"] if warned else [])
    strict = decided(*nodes, given=config(main=pool_config(skip_system_pods=True)), pod_disruption_budgets=budgets)
    assert codes(strict)["n1"] == (["SystemPod"] if warned else [])


@pytest.mark.parametrize(
    ("budgets", "code"),
    [
        ((pdb("web", {"app": "web"}, allowed=1),), None),
        ((pdb("web", {"app": "web"}, allowed=0),), "PodDisruptionBudget"),
        ((pdb("web", {"app": "other"}, allowed=0),), None),
        ((pdb("web", {"app": "web"}, namespace="other", allowed=0),), None),
        ((pdb("a", {"app": "web"}, allowed=9), pdb("b", {"app": "web"}, allowed=9)), "MultiplePodDisruptionBudgets"),
    ],
)
def test_budgets_of_pods_are_respected_unless_told_otherwise(budgets: Any, code: str | None) -> None:
    nodes = (pool_node("n1", pods=[pod("web-1", node="n1"), pod("web-2", node="n1")]), ROOMY)
    decision = decided(*nodes, pod_disruption_budgets=budgets)
    assert codes(decision)["n1"] == ([] if code is None else [code] * 2)
    rash = config(main=pool_config(respect_pdbs=False))
    assert names(decided(*nodes, given=rash, pod_disruption_budgets=budgets)) == ["n1"]


def test_a_budget_may_let_pods_go_that_are_not_ready() -> None:
    budget = pdb("web", {"app": "web"}, allowed=0, unhealthy_policy="AlwaysAllow")
    sick = pool_node("n1", pods=[pod("web-1", node="n1", ready=False)])
    assert names(decided(sick, ROOMY, pod_disruption_budgets=(budget,))) == ["n1"]
