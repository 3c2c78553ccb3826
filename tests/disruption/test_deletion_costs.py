"""Which pods a ReplicaSet should lose first: those of nodes that leave, then those of nodes that are worth most."""

from collections.abc import Iterable, Mapping
from dataclasses import replace as replaced
from typing import Any

import pytest
from tests.disruption.scenarios import CATALOG, NOW, POOL, REFERENCE, NodeWithPods, ago, cluster, node, pool_of
from tests.factories import pdb, pod

from karpool.cluster.nodes import StateNode
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.disruption.context import DecisionContext
from karpool.disruption.deletion_costs import LEAVING, MOST_NODES, cost_writes, leftovers, node_costs
from karpool.disruption.policies_in_force import Policies
from karpool.model.deletion_cost import cost_edit
from karpool.model.labels import (
    DISRUPTED_TAINT,
    DO_NOT_DISRUPT,
    OWN_DELETION_COST,
    POD_DELETION_COST,
)
from karpool.model.nodepool import NodePool
from karpool.packing.engine import Engine
from karpool.packing.options import Options

SETTINGS = replaced(REFERENCE, pod_deletion_costs=True)


def context_of(
    nodes: Iterable[NodeWithPods], pools: tuple[NodePool, ...] = (POOL,), pdbs: Iterable[Any] = (), **policies: Any
) -> DecisionContext:
    objects = cluster(nodes, pools=pools, pod_disruption_budgets=tuple(pdbs))
    named = {pool.name: pool for pool in pools}
    in_force = Policies(named, PdbLimits(objects.pod_disruption_budgets), SETTINGS, **policies)
    return DecisionContext(Engine(Snapshot(objects), CATALOG, Options()), in_force, NOW)


def costs(*nodes: NodeWithPods, **rest: Any) -> dict[str, int]:
    return node_costs(context_of(nodes, **rest))


def own(cost: int) -> dict[str, str]:
    return {POD_DELETION_COST: str(cost), OWN_DELETION_COST: str(cost)}


def drifted(name: str, size: str = "medium", **rest: Any) -> NodeWithPods:
    return node(name, size, claim={"drifted": ago(hours=1)}, **rest)


# -- order -----------------------------------------------------------------------------------------------------------


def test_the_node_that_saves_most_for_its_pods_is_the_first_to_empty() -> None:
    # 0.4 $/h for 1 pod, 0.2 for 1, 0.1 for 1
    assert costs(node("c", "small", pods=1), node("a", "large", pods=1), node("b", "medium", pods=1)) == {
        "a": -3,
        "b": -2,
        "c": -1,
    }


def test_nodes_that_leave_come_before_all_others_and_drifted_ones_before_the_rest() -> None:
    found = costs(
        node("rich", "large", pods=1),
        node("tainted", pods=1, taints=[f"{DISRUPTED_TAINT}:NoSchedule"]),
        node("deleted", pods=1, claim={"deleted": NOW}),
        node("commanded", pods=1),
        drifted("drifted", "small", pods=1),
        in_command=frozenset({"commanded"}),
    )
    assert found == {"tainted": LEAVING, "deleted": LEAVING, "commanded": LEAVING, "drifted": -2, "rich": -1}


def test_a_drifted_node_of_a_static_pool_counts_as_any_other() -> None:
    static = pool_of(replicas=2)
    assert costs(drifted("a", "small", pods=1), node("b", "large", pods=1), pools=(static,)) == {"b": -2, "a": -1}


def test_as_many_nodes_of_a_pool_are_ranked_as_its_budgets_let_go_for_each_reason() -> None:
    nodes = [node(name, size, pods=1) for name, size in (("a", "large"), ("b", "medium"), ("c", "small"))]
    assert costs(*nodes, pools=(pool_of(budgets=[2]),)) == {"a": -2, "b": -1}
    assert costs(*nodes, pools=(pool_of(budgets=[0]),)) == {}


# -- nodes that get no cost ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kept",
    [
        node("kept", pods=[{"annotations": {DO_NOT_DISRUPT: "true"}}]),
        node("kept", pods=[{}, {"owner": "StatefulSet"}]),
        node("kept", pods=[{}, {"owner": None}]),
        node("kept", annotations={DO_NOT_DISRUPT: "true"}, pods=1),
        node("kept", pods=1, managed=False),
        node("kept", pods=[{"labels": {"app": "guarded"}}]),
        node("kept", pods=1, pool="no-such-pool"),
    ],
    ids=["pod", "pinned", "bare pod", "node", "unmanaged", "pdb", "pool"],
)
def test_a_node_that_stays_gives_its_pods_no_cost(kept: NodeWithPods) -> None:
    guarded = pdb("guarded", {"app": "guarded"}, allowed=0)
    assert costs(kept, node("free", pods=1), pdbs=[guarded]) == {"free": -1}


@pytest.mark.parametrize(
    "spec", [{"owner": "Job"}, {"owner": "DaemonSet"}, {"owner": "StatefulSet", "namespace": "kube-system"}]
)
def test_pods_that_end_or_go_with_their_node_pin_nothing(spec: Mapping[str, Any]) -> None:
    assert costs(node("free", pods=[{}, {"name": "other", **spec}])) == {"free": -1}


def test_a_pool_that_consolidates_never_is_ranked_only_for_its_drifted_nodes() -> None:
    never = pool_of(consolidate_after="Never")
    assert costs(drifted("a", pods=1), node("b", pods=1), pools=(never,)) == {"a": -1}


def test_a_type_that_nobody_offers_is_not_ranked() -> None:
    unknown = node("kept", pods=1, labels={"node.kubernetes.io/instance-type": "retired"})
    assert costs(unknown, node("free", pods=1)) == {"free": -1}


# -- writes ----------------------------------------------------------------------------------------------------------


def test_pods_of_replica_sets_get_the_cost_of_their_node_and_no_others_do() -> None:
    context = context_of([node("a", pods=[{"name": "web-1"}, {"name": "job-1", "owner": "Job"}])])
    assert [(entry.key, entry.cost) for entry in cost_writes(context.snapshot, {"a": -7}).pods] == [
        ("default/web-1", -7)
    ]


def test_what_somebody_else_wrote_stays_and_what_is_right_is_not_written_again() -> None:
    theirs, right, wrong = ({POD_DELETION_COST: "5"}, own(-1), own(-9))
    pods = [{"name": f"web-{n}", "annotations": notes} for n, notes in enumerate((theirs, right, wrong))]
    context = context_of([node("a", pods=pods)])
    assert [entry.key for entry in cost_writes(context.snapshot, {"a": -1}).pods] == ["default/web-2"]


def test_a_pod_whose_node_is_no_longer_ranked_loses_what_was_written_on_it() -> None:
    context = context_of([node("a", pods=[{"name": "web-1", "annotations": own(-3)}, {"name": "web-2"}])])
    (entry,) = leftovers(context.snapshot).pods
    assert (entry.key, entry.cost) == ("default/web-1", None)


@pytest.mark.parametrize(
    ("annotations", "cost", "edit"),
    [
        ({}, -3, {POD_DELETION_COST: "-3", OWN_DELETION_COST: "-3"}),
        (own(-2), -3, {POD_DELETION_COST: "-3", OWN_DELETION_COST: "-3"}),
        (own(-3), -3, {}),
        (own(-3), None, {POD_DELETION_COST: None, OWN_DELETION_COST: None}),
        ({}, None, {}),
        ({POD_DELETION_COST: "7"}, -3, {}),
        ({POD_DELETION_COST: "7"}, None, {}),
        ({POD_DELETION_COST: "7", OWN_DELETION_COST: "-3"}, -3, {OWN_DELETION_COST: None}),
        ({OWN_DELETION_COST: "-3"}, -3, {POD_DELETION_COST: "-3"}),
        ({OWN_DELETION_COST: "-3"}, None, {OWN_DELETION_COST: None}),
    ],
)
def test_an_edit_touches_only_what_karpool_wrote(
    annotations: dict[str, str], cost: int | None, edit: dict[str, str | None]
) -> None:
    assert cost_edit(annotations, cost) == edit


def test_fifty_nodes_are_written_at_once_the_ranked_ones_first_and_leaving_ones_besides() -> None:
    leaving = [node(f"l{n:02}", pods=1, taints=[f"{DISRUPTED_TAINT}:NoSchedule"]) for n in range(60)]
    ranked = [node(f"r{n:02}", pods=1) for n in range(40)]
    kept = [node(f"k{n:02}", annotations={DO_NOT_DISRUPT: "true"}, pods=[{"annotations": own(-1)}]) for n in range(20)]
    context = context_of([*leaving, *ranked, *kept])
    writes = cost_writes(context.snapshot, node_costs(context))
    counts = {letter: sum(entry.node[0] == letter for entry in writes.pods) for letter in "lrk"}
    assert counts == {"l": 60, "r": 40, "k": MOST_NODES - 40}
    assert writes.more
    assert {entry.cost for entry in writes.pods if entry.node[0] == "l"} == {LEAVING}


def test_a_pod_that_is_on_its_way_out_is_left_alone() -> None:
    context = context_of([node("a", pods=[{"deleted": NOW}])])
    assert cost_writes(context.snapshot, {"a": -1}).pods == ()


# -- what deletion costs mean for evictions --------------------------------------------------------------------------


def test_costs_say_nothing_of_evictions_where_they_say_which_node_goes() -> None:
    expensive = pod("web-1", node="a", annotations={POD_DELETION_COST: str(2**27)})
    entry = node("a", pods=[expensive])
    managed = context_of([entry])
    assert managed.candidate(managed.snapshot.nodes.rows["a"]).cost == pytest.approx(2.0)


def test_facts_of_a_node_are_renewed_though_somebody_has_looked_at_it_before() -> None:
    context = context_of([node("a", annotations={DO_NOT_DISRUPT: "true"}, pods=1)])
    row = context.snapshot.nodes.rows["a"]
    assert context.eligible_rows() == []
    freed = node("a", pods=1)
    context.snapshot.put_node(StateNode(freed.node, freed.claim))
    later = DecisionContext(context.engine, context.policies, NOW, context.memo)
    assert later.candidate(row).state.node is freed.node
    assert later.eligible_rows() == [row]
