"""Who may be disrupted at all, and what each rule says of those who may not.

Each case: node `a` with one small pod, and node `b` with room for it. Unless a rule keeps it, `a` goes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.disruption.scenarios import NOTHING, REFERENCE, NodeWithPods, Scenario, ago, either_search, node, pool_of
from tests.factories import node_claim, node_pool, pdb, pod, toleration

from karpool.model.labels import CAPACITY_TYPE, DISRUPTED_TAINT, DO_NOT_DISRUPT, INSTANCE_TYPE, NODEPOOL, ZONE

TRUE = {DO_NOT_DISRUPT: "true"}
HOUR = {DO_NOT_DISRUPT: "1h"}
STAY = pool_of("still", consolidate_after="Never")


def case(name: str, *, removes: str = "a", pods: int | Sequence[Mapping[str, Any]] = 1, **given: Any) -> Scenario:
    """Node `a` under test; node `b`, in a pool that is never consolidated, has room for everything."""
    known = {key: given.pop(key) for key in list(given) if key in Scenario.__dataclass_fields__}
    more_nodes: Sequence[NodeWithPods] = given.pop("more_nodes", ())
    nodes = [node("a", pods=pods, **given), node("b", "huge", pods=1, pool="still"), *more_nodes]
    return Scenario(name, nodes=nodes, removes=removes, **{"pools": (pool_of(), STAY), **known})


NODES = [
    case("nothing keeps it"),
    case("no NodeClaim", managed=False, removes=NOTHING, reasons={"a": "NotManaged", "b": "ConsolidateAfterNever"}),
    case("not initialized", initialized=False, removes=NOTHING, reasons={"a": "NodeNotInitialized"}),
    case("claim is being deleted", claim={"deleted": ago(minutes=1)}, removes=NOTHING, reasons={"a": "NodeDeleting"}),
    case("instance is terminating", claim={"terminating": True}, removes=NOTHING, reasons={"a": "NodeDeleting"}),
    case("only the Node is being deleted, and its claim is not", deleted=ago(minutes=1)),
    case("node says do-not-disrupt", annotations=TRUE, removes=NOTHING, reasons={"a": "NodeDoNotDisrupt"}),
    case("node says do-not-disrupt: false", annotations={DO_NOT_DISRUPT: "false"}),
    case("durations mean nothing on nodes", annotations=HOUR),
    case("only the claim says do-not-disrupt", claim={"annotations": TRUE}),
    case("no nodepool label", labels={NODEPOOL: None}, removes=NOTHING, reasons={"a": "MissingNodePoolLabel"}),
    case(
        "pool does not exist",
        labels={NODEPOOL: "lost"},
        removes=NOTHING,
        reasons={"a": "NodePoolNotFound"},
        messages={"a": "lost"},
    ),
    case("type label missing", labels={INSTANCE_TYPE: None}, removes=NOTHING, reasons={"a": "UnknownInstanceType"}),
    case(
        "unknown type",
        labels={INSTANCE_TYPE: "x9"},
        removes=NOTHING,
        reasons={"a": "UnknownInstanceType"},
        messages={"a": "x9"},
    ),
    case("zone label missing", labels={ZONE: None}, removes=NOTHING, reasons={"a": "MissingZone"}),
    case(
        "capacity-type label missing",
        pools=(node_pool(), STAY),
        labels={CAPACITY_TYPE: None},
        removes=NOTHING,
        reasons={"a": "MissingCapacityType"},
    ),
    case("empty, and its type is unknown: no matter", pods=0, labels={INSTANCE_TYPE: "x9"}, method="Emptiness"),
    case("empty, without a zone: no matter", pods=0, labels={ZONE: None}),
    case("cordoned", cordoned=True),
    case("not ready", ready=False, settings=replace(REFERENCE, ignore_budgets=True)),
    case("a left-over taint of an earlier command", taints=[DISRUPTED_TAINT]),
    case(
        "policy WhenEmpty",
        pool="e",
        pools=(pool_of("e", policy="WhenEmpty"), STAY),
        removes=NOTHING,
        reasons={"a": "PolicyWhenEmpty"},
    ),
    case("policy WhenEmpty, and it is empty", pods=0, pool="e", pools=(pool_of("e", policy="WhenEmpty"), STAY)),
    case("static pool", pool="s", pools=(pool_of("s", replicas=1), STAY), removes=NOTHING, reasons={"a": "StaticPool"}),
    case(
        "static pool, empty",
        pods=0,
        pool="s",
        pools=(pool_of("s", replicas=1), STAY),
        removes=NOTHING,
        reasons={"a": "StaticPool"},
    ),
]

PODS = [
    case(
        "do-not-disrupt pod",
        pods=[{"annotations": TRUE}],
        removes=NOTHING,
        reasons={"a": "PodDoNotDisrupt"},
        messages={"a": "default/a-0"},
    ),
    case(
        "termination grace period does not help consolidation",
        pods=[{"annotations": TRUE}],
        claim={"termination_grace_period": "1h"},
        removes=NOTHING,
        reasons={"a": "PodDoNotDisrupt"},
    ),
    case("do-not-disrupt pod that is terminating", pods=[{}, {"annotations": TRUE, "deleted": ago(minutes=1)}]),
    case("do-not-disrupt pod that has succeeded", pods=[{}, {"annotations": TRUE, "phase": "Succeeded"}]),
    case(
        "do-not-disrupt pod that has failed, alone", pods=[{"annotations": TRUE, "phase": "Failed"}], method="Emptiness"
    ),
    case(
        "do-not-disrupt DaemonSet pod",
        pods=[{}, {"annotations": TRUE, "owner": "DaemonSet"}],
        removes=NOTHING,
        reasons={"a": "PodDoNotDisrupt"},
    ),
    case(
        "do-not-disrupt DaemonSet pod on an otherwise empty node",
        pods=[{"annotations": TRUE, "owner": "DaemonSet"}],
        removes=NOTHING,
        reasons={"a": "PodDoNotDisrupt"},
    ),
    case(
        "do-not-disrupt mirror pod",
        pods=[{}, {"annotations": TRUE, "owner": "Node"}],
        removes=NOTHING,
        reasons={"a": "PodDoNotDisrupt"},
    ),
    case(
        "do-not-disrupt for an hour, half an hour ago",
        pods=[{"annotations": HOUR, "started": ago(minutes=30)}],
        removes=NOTHING,
        reasons={"a": "PodDoNotDisrupt"},
        messages={"a": "12:30 UTC"},
    ),
    case("do-not-disrupt for an hour, an hour ago", pods=[{"annotations": HOUR, "started": ago(hours=1)}]),
    case(
        "do-not-disrupt for an hour, all but a second ago",
        pods=[{"annotations": HOUR, "started": ago(minutes=59, seconds=59)}],
        removes=NOTHING,
    ),
    case(
        "the longest of several durations counts",
        pods=[{"annotations": {DO_NOT_DISRUPT: d}, "started": ago(hours=2)} for d in ("1h", "90m", "3h")],
        removes=NOTHING,
        messages={"a": "default/a-2"},
    ),
    case("do-not-disrupt: false", pods=[{"annotations": {DO_NOT_DISRUPT: "false"}}]),
    case("do-not-disrupt: True is not true", pods=[{"annotations": {DO_NOT_DISRUPT: "True"}}]),
    case("do-not-disrupt: 0s", pods=[{"annotations": {DO_NOT_DISRUPT: "0s"}}]),
    case("do-not-disrupt: -5m", pods=[{"annotations": {DO_NOT_DISRUPT: "-5m"}}]),
    case(
        "a bare pod is moved like any other",
        pods=[{"owner": None}],
        check=lambda p: p.steps[0].command.moves[0].pod == "default/a-0",
    ),
    case("a pod of a Job is moved like any other", pods=[{"owner": "Job"}]),
    case("a pod that tolerates everything", pods=[{"tolerations": [toleration()]}]),
]

APP = {"app": "a"}
ZERO = [pdb("keep", APP, allowed=0)]
BUDGETS = [
    case(
        "PDB allows none",
        pdbs=ZERO,
        removes=NOTHING,
        reasons={"a": "PodDisruptionBudget"},
        messages={"a": "default/keep"},
    ),
    case(
        "PDB allows one, five pods share it",
        pods=5,
        pdbs=[pdb("keep", APP, allowed=1)],
        check=lambda p: p.steps[0].command.waves["default/keep"].waves == 5,
    ),
    case(
        "PDB allows two, five pods share it",
        pods=5,
        pdbs=[pdb("keep", APP, allowed=2)],
        check=lambda p: p.steps[0].command.waves["default/keep"].waves == 3,
    ),
    case("PDB of another namespace", pdbs=[pdb("keep", APP, allowed=0, namespace="other")]),
    case("PDB for other pods", pdbs=[pdb("keep", {"app": "other"}, allowed=0)]),
    case(
        "PDB for all pods of the namespace",
        pdbs=[pdb("keep", {}, allowed=0)],
        removes=NOTHING,
        reasons={"a": "PodDisruptionBudget"},
    ),
    case("PDB without a selector covers nobody", pdbs=[pdb("keep", None, allowed=0)]),
    case(
        "two PDBs, both generous",
        pdbs=[pdb("x", APP, allowed=9), pdb("y", {}, allowed=9)],
        removes=NOTHING,
        reasons={"a": "MultiplePodDisruptionBudgets"},
        messages={"a": "default/x, default/y"},
    ),
    case(
        "PDB that says it never allows, whatever its status",
        pdbs=[pdb("keep", APP, allowed=1, max_unavailable=0)],
        removes=NOTHING,
        reasons={"a": "PodDisruptionBudget"},
    ),
    case("PDB minAvailable 100%", pdbs=[pdb("keep", APP, allowed=1, min_available="100%")], removes=NOTHING),
    case("a number as minAvailable is judged by its status", pdbs=[pdb("keep", APP, allowed=1, min_available=3)]),
    case(
        "unready pod, PDB AlwaysAllow",
        pods=[{"ready": False}],
        pdbs=[pdb("keep", APP, allowed=0, unhealthy_policy="AlwaysAllow")],
    ),
    case(
        "ready pod, PDB AlwaysAllow",
        pdbs=[pdb("keep", APP, allowed=0, unhealthy_policy="AlwaysAllow")],
        removes=NOTHING,
    ),
    case(
        "unready pod, PDB IfHealthyBudget",
        pods=[{"ready": False}],
        pdbs=[pdb("keep", APP, allowed=0, unhealthy_policy="IfHealthyBudget")],
        removes=NOTHING,
    ),
    case(
        "one unready and one ready pod, PDB AlwaysAllow",
        pods=[{"ready": False}, {}],
        pdbs=[pdb("keep", APP, allowed=0, unhealthy_policy="AlwaysAllow")],
        removes=NOTHING,
        messages={"a": "default/a-1"},
    ),
    case(
        "PDB on a DaemonSet pod",
        pods=[{}, {"owner": "DaemonSet", "labels": {"app": "agent"}}],
        pdbs=[pdb("keep", {"app": "agent"}, allowed=0)],
        removes=NOTHING,
        reasons={"a": "PodDisruptionBudget"},
    ),
    case(
        "PDB on a mirror pod",
        pods=[{}, {"owner": "Node", "labels": {"app": "agent"}}],
        pdbs=[pdb("keep", {"app": "agent"}, allowed=0)],
    ),
    case(
        "PDB on a terminating pod",
        pods=[{}, {"deleted": ago(minutes=1), "labels": {"app": "old"}}],
        pdbs=[pdb("keep", {"app": "old"}, allowed=0)],
    ),
    case(
        "PDB on a finished pod",
        pods=[{}, {"phase": "Succeeded", "labels": {"app": "old"}}],
        pdbs=[pdb("keep", {"app": "old"}, allowed=0)],
    ),
    case("PDB on a pod that stays to the end", pods=[{"tolerations": [toleration(DISRUPTED_TAINT)]}], pdbs=ZERO),
    case(
        "do-not-disrupt is named before a PDB",
        pods=[{}, {"annotations": TRUE}],
        pdbs=ZERO,
        removes=NOTHING,
        reasons={"a": "PodDoNotDisrupt"},
    ),
]


@either_search(NODES)
def test_a_node_is_a_candidate_or_says_why_not(scenario: Scenario) -> None:
    scenario.verify()


@either_search(PODS)
def test_a_pod_keeps_its_node_or_lets_it_go(scenario: Scenario) -> None:
    scenario.verify()


@either_search(BUDGETS)
def test_a_pod_disruption_budget_keeps_a_node_or_lets_it_go(scenario: Scenario) -> None:
    scenario.verify()


def test_a_claim_whose_node_has_not_come_is_no_candidate() -> None:
    coming = NodeWithPods(None, node_claim("c", capacity={"cpu": 4, "memory": "16Gi", "pods": 110}), ())
    Scenario("claim without node", nodes=[coming, node("b", pods=1)], reasons={"c": "NoNode"}).verify()


def test_without_instance_types_no_node_is_a_candidate() -> None:
    from karpool.catalog.instance_types import Catalog

    Scenario("no types", nodes=[node("a")], catalog=Catalog(()), reasons={"a": "NoInstanceTypes"}).verify()


def test_pods_of_other_nodes_do_not_matter_to_a_node() -> None:
    marked = pod("x-0", node="b", annotations=TRUE)
    case("the other node is marked", more_nodes=[NodeWithPods(None, None, (marked,))]).verify()


def test_every_node_that_stays_has_a_reason_with_ignored_budgets_too() -> None:
    Scenario(
        "nothing to do",
        nodes=[node("a", pods=7), node("b", pods=7)],
        settings=replace(REFERENCE, ignore_budgets=True),
        reasons={"a": "NotCheaper", "b": "NotCheaper"},
    ).verify()
