"""Who may be disrupted at all, and what each rule says of those who may not.

The stage: node `a` with one small pod, and node `b` with room for it. Unless a rule keeps it, `a` goes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.disruption.scenes import Box, Scene, ago, box, names, pool_of
from tests.factories import node_claim, node_pool, pdb, pod, toleration

from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import CAPACITY_TYPE, DISRUPTED_TAINT, DO_NOT_DISRUPT, INSTANCE_TYPE, NODEPOOL, ZONE

TRUE = {DO_NOT_DISRUPT: "true"}
HOUR = {DO_NOT_DISRUPT: "1h"}
STAY = pool_of("still", consolidate_after="Never")


def stage(name: str, goes: str = "a", pods: int | Sequence[Mapping[str, Any]] = 1, **given: Any) -> Scene:
    """Node `a` under test; node `b`, in a pool that is never consolidated, has room for everything."""
    known = {key: given.pop(key) for key in list(given) if key in Scene.__dataclass_fields__}
    also: Sequence[Box] = given.pop("also", ())
    boxes = [box("a", pods=pods, **given), box("b", "huge", 1, pool="still"), *also]
    return Scene(name, boxes, goes, **{"pools": (pool_of(), STAY), **known})


NODES = [
    stage("nothing keeps it"),
    stage("no NodeClaim", "", managed=False, why={"a": "NotManaged", "b": "ConsolidateAfterNever"}),
    stage("not initialized", "", initialized=False, why={"a": "NodeNotInitialized"}),
    stage("claim is being deleted", "", claim={"deleted": ago(minutes=1)}, why={"a": "NodeDeleting"}),
    stage("instance is terminating", "", claim={"terminating": True}, why={"a": "NodeDeleting"}),
    stage("only the Node is being deleted, and its claim is not", deleted=ago(minutes=1)),
    stage("node says do-not-disrupt", "", annotations=TRUE, why={"a": "NodeDoNotDisrupt"}),
    stage("node says do-not-disrupt: false", annotations={DO_NOT_DISRUPT: "false"}),
    stage("durations mean nothing on nodes", annotations=HOUR),
    stage("only the claim says do-not-disrupt", claim={"annotations": TRUE}),
    stage("no nodepool label", "", labels={NODEPOOL: None}, why={"a": "MissingNodePoolLabel"}),
    stage("pool does not exist", "", labels={NODEPOOL: "lost"}, why={"a": "NodePoolNotFound"}, said={"a": "lost"}),
    stage("type label missing", "", labels={INSTANCE_TYPE: None}, why={"a": "UnknownInstanceType"}),
    stage("unknown type", "", labels={INSTANCE_TYPE: "x9"}, why={"a": "UnknownInstanceType"}, said={"a": "x9"}),
    stage("zone label missing", "", labels={ZONE: None}, why={"a": "MissingZone"}),
    stage(
        "capacity-type label missing",
        "",
        pools=(node_pool(), STAY),
        labels={CAPACITY_TYPE: None},
        why={"a": "MissingCapacityType"},
    ),
    stage("empty, and its type is unknown: no matter", pods=0, labels={INSTANCE_TYPE: "x9"}, by="Emptiness"),
    stage("empty, without a zone: no matter", pods=0, labels={ZONE: None}),
    stage("cordoned", cordoned=True),
    stage("not ready", ready=False, settings=DisruptionSettings(ignore_budgets=True)),
    stage("a left-over taint of an earlier command", taints=[DISRUPTED_TAINT]),
    stage(
        "policy WhenEmpty", "", pool="e", pools=(pool_of("e", policy="WhenEmpty"), STAY), why={"a": "PolicyWhenEmpty"}
    ),
    stage("policy WhenEmpty, and it is empty", pods=0, pool="e", pools=(pool_of("e", policy="WhenEmpty"), STAY)),
    stage("static pool", "", pool="s", pools=(pool_of("s", replicas=1), STAY), why={"a": "StaticPool"}),
    stage("static pool, empty", "", 0, pool="s", pools=(pool_of("s", replicas=1), STAY), why={"a": "StaticPool"}),
]

PODS = [
    stage("do-not-disrupt pod", "", [{"annotations": TRUE}], why={"a": "PodDoNotDisrupt"}, said={"a": "default/a-0"}),
    stage("termination grace period does not help consolidation", "", [{"annotations": TRUE}],
          claim={"termination_grace_period": "1h"}, why={"a": "PodDoNotDisrupt"}),
    stage("do-not-disrupt pod that is terminating", pods=[{}, {"annotations": TRUE, "deleted": ago(minutes=1)}]),
    stage("do-not-disrupt pod that has succeeded", pods=[{}, {"annotations": TRUE, "phase": "Succeeded"}]),
    stage("do-not-disrupt pod that has failed, alone", pods=[{"annotations": TRUE, "phase": "Failed"}], by="Emptiness"),
    stage("do-not-disrupt DaemonSet pod", "", [{}, {"annotations": TRUE, "owner": "DaemonSet"}],
          why={"a": "PodDoNotDisrupt"}),
    stage("do-not-disrupt DaemonSet pod on an otherwise empty node", "", [{"annotations": TRUE, "owner": "DaemonSet"}],
          why={"a": "PodDoNotDisrupt"}),
    stage("do-not-disrupt mirror pod", "", [{}, {"annotations": TRUE, "owner": "Node"}], why={"a": "PodDoNotDisrupt"}),
    stage("do-not-disrupt for an hour, half an hour ago", "", [{"annotations": HOUR, "started": ago(minutes=30)}],
          why={"a": "PodDoNotDisrupt"}, said={"a": "12:30 UTC"}),
    stage("do-not-disrupt for an hour, an hour ago", pods=[{"annotations": HOUR, "started": ago(hours=1)}]),
    stage("do-not-disrupt for an hour, all but a second ago", "",
          [{"annotations": HOUR, "started": ago(minutes=59, seconds=59)}]),
    stage("the longest of several durations counts", "",
          [{"annotations": {DO_NOT_DISRUPT: d}, "started": ago(hours=2)} for d in ("1h", "90m", "3h")],
          said={"a": "default/a-2"}),
    stage("do-not-disrupt: false", pods=[{"annotations": {DO_NOT_DISRUPT: "false"}}]),
    stage("do-not-disrupt: True is not true", pods=[{"annotations": {DO_NOT_DISRUPT: "True"}}]),
    stage("do-not-disrupt: 0s", pods=[{"annotations": {DO_NOT_DISRUPT: "0s"}}]),
    stage("do-not-disrupt: -5m", pods=[{"annotations": {DO_NOT_DISRUPT: "-5m"}}]),
    stage("a bare pod is moved like any other", pods=[{"owner": None}],
          check=lambda p: p.steps[0].command.moves[0].pod == "default/a-0"),
    stage("a pod of a Job is moved like any other", pods=[{"owner": "Job"}]),
    stage("a pod that tolerates everything", pods=[{"tolerations": [toleration()]}]),
]  # fmt: skip

APP = {"app": "a"}
ZERO = [pdb("keep", APP, allowed=0)]
BUDGETS = [
    stage("PDB allows none", "", pdbs=ZERO, why={"a": "PodDisruptionBudget"}, said={"a": "default/keep"}),
    stage("PDB allows one, five pods share it", pods=5, pdbs=[pdb("keep", APP, allowed=1)],
          check=lambda p: p.steps[0].command.waves["default/keep"].waves == 5),
    stage("PDB allows two, five pods share it", pods=5, pdbs=[pdb("keep", APP, allowed=2)],
          check=lambda p: p.steps[0].command.waves["default/keep"].waves == 3),
    stage("PDB of another namespace", pdbs=[pdb("keep", APP, allowed=0, namespace="other")]),
    stage("PDB for other pods", pdbs=[pdb("keep", {"app": "other"}, allowed=0)]),
    stage("PDB for all pods of the namespace", "", pdbs=[pdb("keep", {}, allowed=0)], why={"a": "PodDisruptionBudget"}),
    stage("PDB without a selector covers nobody", pdbs=[pdb("keep", None, allowed=0)]),
    stage("two PDBs, both generous", "", pdbs=[pdb("x", APP, allowed=9), pdb("y", {}, allowed=9)],
          why={"a": "MultiplePodDisruptionBudgets"}, said={"a": "default/x, default/y"}),
    stage("PDB that says it never allows, whatever its status", "", why={"a": "PodDisruptionBudget"},
          pdbs=[pdb("keep", APP, allowed=1, max_unavailable=0)]),
    stage("PDB minAvailable 100%", "", pdbs=[pdb("keep", APP, allowed=1, min_available="100%")]),
    stage("a number as minAvailable is judged by its status", pdbs=[pdb("keep", APP, allowed=1, min_available=3)]),
    stage("unready pod, PDB AlwaysAllow", pods=[{"ready": False}],
          pdbs=[pdb("keep", APP, allowed=0, unhealthy_policy="AlwaysAllow")]),
    stage("ready pod, PDB AlwaysAllow", "", pdbs=[pdb("keep", APP, allowed=0, unhealthy_policy="AlwaysAllow")]),
    stage("unready pod, PDB IfHealthyBudget", "", [{"ready": False}],
          pdbs=[pdb("keep", APP, allowed=0, unhealthy_policy="IfHealthyBudget")]),
    stage("one unready and one ready pod, PDB AlwaysAllow", "", [{"ready": False}, {}],
          pdbs=[pdb("keep", APP, allowed=0, unhealthy_policy="AlwaysAllow")], said={"a": "default/a-1"}),
    stage("PDB on a DaemonSet pod", "", [{}, {"owner": "DaemonSet", "labels": {"app": "agent"}}],
          pdbs=[pdb("keep", {"app": "agent"}, allowed=0)], why={"a": "PodDisruptionBudget"}),
    stage("PDB on a mirror pod", pods=[{}, {"owner": "Node", "labels": {"app": "agent"}}],
          pdbs=[pdb("keep", {"app": "agent"}, allowed=0)]),
    stage("PDB on a terminating pod", pods=[{}, {"deleted": ago(minutes=1), "labels": {"app": "old"}}],
          pdbs=[pdb("keep", {"app": "old"}, allowed=0)]),
    stage("PDB on a finished pod", pods=[{}, {"phase": "Succeeded", "labels": {"app": "old"}}],
          pdbs=[pdb("keep", {"app": "old"}, allowed=0)]),
    stage("PDB on a pod that stays to the end", pods=[{"tolerations": [toleration(DISRUPTED_TAINT)]}], pdbs=ZERO),
    stage("do-not-disrupt is named before a PDB", "", [{}, {"annotations": TRUE}], pdbs=ZERO,
          why={"a": "PodDoNotDisrupt"}),
]  # fmt: skip


@pytest.mark.parametrize("scene", NODES, ids=names)
def test_a_node_is_a_candidate_or_says_why_not(scene: Scene) -> None:
    scene.verify()


@pytest.mark.parametrize("scene", PODS, ids=names)
def test_a_pod_keeps_its_node_or_lets_it_go(scene: Scene) -> None:
    scene.verify()


@pytest.mark.parametrize("scene", BUDGETS, ids=names)
def test_a_pod_disruption_budget_keeps_a_node_or_lets_it_go(scene: Scene) -> None:
    scene.verify()


def test_a_claim_whose_node_has_not_come_is_no_candidate() -> None:
    coming = Box(None, node_claim("c", capacity={"cpu": 4, "memory": "16Gi", "pods": 110}), ())
    Scene("claim without node", [coming, box("b", pods=1)], why={"c": "NoNode"}).verify()


def test_without_instance_types_no_node_is_a_candidate() -> None:
    from karpool.catalog.instance_types import Catalog

    Scene("no types", [box("a")], catalog=Catalog(()), why={"a": "NoInstanceTypes"}).verify()


def test_pods_of_other_nodes_do_not_matter_to_a_node() -> None:
    marked = pod("x-0", node="b", annotations=TRUE)
    stage("the other node is marked", also=[Box(None, None, (marked,))]).verify()


def test_every_node_that_stays_has_a_reason_with_ignored_budgets_too() -> None:
    Scene(
        "nothing to do",
        [box("a", pods=7), box("b", pods=7)],
        settings=DisruptionSettings(ignore_budgets=True),
        why={"a": "NotCheaper", "b": "NotCheaper"},
    ).verify()
