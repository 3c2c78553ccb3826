"""Nodes whose pods fit on nodes that stay."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as changed
from tests.disruption.scenarios import (
    NOTHING,
    NOW,
    POOL,
    REFERENCE,
    NodeWithPods,
    Scenario,
    ago,
    either_search,
    node,
    pool_of,
)
from tests.factories import (
    Z1,
    Z2,
    Z3,
    affinity_to,
    anti_affinity,
    csi_node,
    host_port,
    node_claim,
    node_term,
    pod,
    pv,
    pvc,
    spread,
)

from karpool.disruption.plan import Plan
from karpool.model.labels import DO_NOT_DISRUPT, ZONE
from karpool.model.nodepool import NodePool
from karpool.wire.objects import Condition

STILL = pool_of("still", consolidate_after="Never", limits={"cpu": 0})
KEEP = {DO_NOT_DISRUPT: "true"}
NO_SUPPLY = pool_of(limits={"cpu": 0})
APP = {"app": "web"}


def case(
    name: str, *, removes: str = "a", pods: Any = 1, pods_on_b: Any = 1, more_nodes: Any = (), **given: Any
) -> Scenario:
    """Node `a` with pods that can only go to node `b`: no new node may be made."""
    known = {key: given.pop(key) for key in list(given) if key in Scenario.__dataclass_fields__}
    nodes = [node("a", pods=pods), node("b", "large", pods=pods_on_b, pool="still", **given), *more_nodes]
    return Scenario(name, nodes=nodes, removes=removes, **{"pools": (NO_SUPPLY, STILL), **known})


def moves(plan: Plan) -> list[tuple[str, str | None, Any]]:
    return [(move.pod, move.source, move.target) for step in plan.steps for move in step.command.moves]


def unready(pool: NodePool) -> NodePool:
    return changed(pool, status=changed(pool.status, conditions=(Condition(type="Ready", status="False"),)))


def deleting(pool: NodePool) -> NodePool:
    return changed(pool, metadata=changed(pool.metadata, deletion_timestamp=ago(minutes=1)))


ROOM = [
    case("room for one pod", check=lambda p: moves(p) == [("default/a-0", "a", "b")]),
    case("no room", pods=[{"cpu": 3}], pods_on_b=[{"cpu": 6}], removes=NOTHING, reasons={"a": "PodsWouldNotFit"}),
    case("room for one of two pods", pods=[{"cpu": 1}, {"cpu": 1}], pods_on_b=[{"cpu": 6}], removes=NOTHING),
    case("memory", pods=[{"memory": "10Gi"}], pods_on_b=[{"memory": "25Gi"}], removes=NOTHING),
    case(
        "extended resources",
        pods=[{"requests": {"example.com/gpu": 1}}],
        removes=NOTHING,
        reasons={"a": "PodsWouldNotFit"},
    ),
    case("taint not tolerated", taints=["team=blue"], removes=NOTHING, messages={"a": "team=blue"}),
    case("taint tolerated", pods=[{"tolerations": ["team=blue"]}], taints=["team=blue"]),
    case("PreferNoSchedule is only a preference", taints=["team=blue:PreferNoSchedule"]),
    case("cordoned", cordoned=True, removes=NOTHING, reasons={"a": "PodsWouldNotFit"}),
    case("node selector that only its node has", pods=[{"selector": {ZONE: Z1}}], zone=Z2, removes=NOTHING),
    case(
        "required affinity with alternatives",
        pods=[{"terms": [node_term((ZONE, "In", Z3)), node_term((ZONE, "In", Z2))]}],
        zone=Z2,
    ),
    case("host port is free", pods=[{"ports": [host_port(80)]}]),
    case(
        "host port is taken", pods=[{"ports": [host_port(80)]}], pods_on_b=[{"ports": [host_port(80)]}], removes=NOTHING
    ),
    case(
        "anti-affinity to its like",
        pods=[{"labels": APP, "anti": [anti_affinity(APP)]}],
        pods_on_b=[{"labels": APP}],
        removes=NOTHING,
    ),
    case(
        "anti-affinity of those already there",
        pods=[{"labels": APP}],
        pods_on_b=[{"anti": [anti_affinity(APP)]}],
        removes=NOTHING,
    ),
    case(
        "affinity to a pod that is there",
        pods=[{"near": [affinity_to({"app": "db"})]}],
        pods_on_b=[{"labels": {"app": "db"}}],
    ),
    case(
        "affinity to a pod that moves along", pods=[{"labels": {"app": "db"}}, {"near": [affinity_to({"app": "db"})]}]
    ),
    case("affinity to a pod that is elsewhere", pods=[{"near": [affinity_to({"app": "db"})]}], removes=NOTHING),
    case(
        "spread over zones would be broken",
        pods=[{"labels": APP, "spread": [spread(APP)]}],
        pods_on_b=[{"labels": APP}],
        zone=Z2,
        more_nodes=[node("c", "tiny", pods=[{"cpu": "800m"}], pool="still", zone=Z1)],
        removes=NOTHING,
    ),
    case(
        "spread that is only a preference",
        pods=[{"labels": APP, "spread": [spread(APP, when="ScheduleAnyway")]}],
        pods_on_b=[{"labels": APP}],
        zone=Z2,
    ),
    case(
        "volume in another zone",
        pods=[{"claims": ["data"]}],
        zone=Z2,
        other_objects={
            "persistent_volumes": (pv("disk", zones=[Z1]),),
            "persistent_volume_claims": (pvc("data", volume="disk"),),
        },
        removes=NOTHING,
    ),
    case(
        "no more volumes can be attached",
        pods=[{"claims": ["data"]}],
        pods_on_b=[{"claims": ["other"]}],
        other_objects={
            "persistent_volumes": (pv("disk", driver="csi"), pv("disk-2", driver="csi")),
            "csi_nodes": (csi_node("b", csi=1),),
            "persistent_volume_claims": (pvc("data", volume="disk"), pvc("other", volume="disk-2")),
        },
        removes=NOTHING,
    ),
    case("node of nobody is a place, too", managed=False),
    case("node that says do-not-disrupt is a place, too", annotations=KEEP),
    case("node of a static pool is a place, too", pools=(NO_SUPPLY, pool_of("still", replicas=1))),
    case("node of a pool that is not ready is a place, too", pools=(NO_SUPPLY, unready(STILL))),
    case("node of a pool that is being deleted is a place, too", pools=(NO_SUPPLY, deleting(STILL))),
    case("node whose pool is gone is a place, too", pools=(NO_SUPPLY,)),
    case(
        "node that is being deleted is no place",
        claim={"deleted": ago(minutes=1)},
        removes=NOTHING,
        reasons={"a": "PodsWouldNotFit"},
    ),
    case(
        "node that is not up yet is no place",
        initialized=False,
        removes=NOTHING,
        reasons={"a": "UninitializedDestination"},
        messages={"a": "b, which is not initialized"},
    ),
    case(
        "one that is up among many that are not",
        pods_on_b=0,
        initialized=False,
        more_nodes=[
            *(node(f"b{i}", initialized=False, pool="still") for i in range(9)),
            node("z", "large", pods=1, pool="still"),
        ],
        check=lambda p: moves(p) == [("default/a-0", "a", "z")],
    ),
    case(
        "claim without a node is no place",
        pods_on_b=[{"cpu": "7500m"}],
        more_nodes=[
            NodeWithPods(None, node_claim("c", pool="still", capacity={"cpu": 4, "memory": "16Gi", "pods": 110}), ())
        ],
        removes=NOTHING,
        reasons={"a": "UninitializedDestination"},
    ),
]

NOBODY = [
    Scenario(
        "no ready pool at all: deletion works",
        nodes=[node("a", pods=1), node("b", "large", pods=1, annotations=KEEP)],
        pools=[unready(POOL)],
        removes="a",
    ),
    Scenario(
        "no ready pool at all: replacement does not",
        nodes=[node("a", "huge", pods=1)],
        pools=[unready(POOL)],
        reasons={"a": "PodsWouldNotFit"},
    ),
    Scenario(
        "its pool is being deleted: it may go",
        nodes=[node("a", pods=1), node("b", "large", pods=1, annotations=KEEP)],
        pools=[deleting(POOL)],
        removes="a",
    ),
    Scenario(
        "its pool is being deleted: another pool replaces it",
        nodes=[node("a", "huge", pods=1)],
        pools=(deleting(POOL), pool_of("other")),
        removes="a",
        launches="tiny",
        check=lambda p: p.steps[0].command.replacements[0].pool == "other",
    ),
    Scenario(
        "empty nodes of a pool that is not ready",
        nodes=[node("a")],
        pools=[unready(POOL)],
        removes="a",
        method="Emptiness",
    ),
    Scenario(
        "a static pool supplies nobody else",
        nodes=[node("a", "huge", pods=1)],
        pools=(NO_SUPPLY, pool_of("fixed", replicas=3)),
        reasons={"a": "PodsWouldNotFit"},
    ),
]

PENDING = [
    Scenario(
        "a pending pod that fits nowhere is no obstacle",
        nodes=[node("a", pods=1), node("b", "large", pods=1, pool="still")],
        pools=(NO_SUPPLY, STILL),
        pods=[pod("w-0", cpu=99, pending=True)],
        removes="a",
        check=lambda p: (moves(p), p.unschedulable[0][0]) == ([("default/a-0", "a", "b")], "default/w-0"),
    ),
    Scenario(
        "a pending pod keeps the room that the move needed",
        nodes=[node("a", pods=[{"cpu": "2500m"}]), node("b", pods=[{"cpu": 1}], pool="still")],
        pools=(NO_SUPPLY, STILL),
        pods=[pod("w-0", cpu=2, pending=True)],
        reasons={"a": "PodsWouldNotFit"},
    ),
    Scenario(
        "a pending pod on the node moves with it, from nowhere",
        nodes=[node("a", "large", pods=1)],
        pods=[pod("w-0", cpu=3, pending=True)],
        removes="a",
        launches="medium",
        check=lambda p: moves(p) == [("default/a-0", "a", 0), ("default/w-0", None, 0)],
    ),
    Scenario(
        "a pending pod that only fits on this node keeps it",
        nodes=[node("a", pods=1, labels={"disk": "ssd"}), node("b", "large", pods=1, pool="still")],
        pools=(NO_SUPPLY, STILL),
        pods=[pod("w-0", selector={"disk": "ssd"}, pending=True)],
        reasons={"a": "PodsWouldNotFit"},
        messages={"a": "default/w-0"},
    ),
    Scenario(
        "pods of a deleting node take room",
        nodes=[
            node("a", pods=[{"cpu": "3500m"}]),
            node("b", pods=[{"cpu": "200m"}], pool="still"),
            node("c", "tiny", pods=1, claim={"deleted": ago(minutes=1)}),
        ],
        pools=(NO_SUPPLY, STILL),
        reasons={"a": "PodsWouldNotFit", "c": "NodeDeleting"},
    ),
    Scenario(
        "a deleting node's pods that find no room are no obstacle",
        nodes=[
            node("a", pods=1),
            node("b", pods=1, pool="still"),
            node("c", "huge", pods=[{"cpu": 60}], claim={"deleted": ago(minutes=1)}),
        ],
        pools=(NO_SUPPLY, STILL),
        removes="a",
    ),
    Scenario(
        "pods of a deleting node may use a node that is not up",
        nodes=[
            node("b", "large", initialized=False),
            node("c", pods=1, claim={"deleted": ago(minutes=1)}),
            node("a", pods=[{"cpu": "100m"}]),
            node("d", pods=1, pool="still"),
        ],
        pools=(NO_SUPPLY, STILL),
        removes="a",
    ),
]


@either_search(ROOM)
def test_a_node_goes_when_all_its_pods_have_another_place(scenario: Scenario) -> None:
    scenario.verify()


@either_search(NOBODY)
def test_pools_that_cannot_supply_nodes_do_not_stop_everything(scenario: Scenario) -> None:
    scenario.verify()


@either_search(PENDING)
def test_pods_that_wait_for_room_get_what_they_find_today(scenario: Scenario) -> None:
    scenario.verify()


def test_totals_count_bound_pods_that_no_daemon_set_owns() -> None:
    nodes = [
        node("a", pods=[{}, {"owner": "DaemonSet"}, {"owner": "Node"}, {"phase": "Succeeded"}, {"deleted": NOW}]),
        node("b", "large", pods=6),
        node("c", pods=2, claim={"deleted": ago(minutes=1)}),
    ]
    made = Scenario("totals", nodes=nodes, pods=[pod("w-0", pending=True)]).plan()
    assert made.before.pods == 3 + 6 + 2
    assert made.before.nodes == 3
    assert {fate.candidate.name: fate.pods for fate in made.fates} == {"a": 3, "b": 6, "c": 2}


def test_nodes_that_are_being_deleted_count_before_and_after() -> None:
    made = Scenario("deleting", nodes=[node("a"), node("b", claim={"deleted": ago(minutes=1)})]).plan()
    assert (made.before.nodes, made.after.nodes) == (2, 1)
    assert made.before.price == pytest.approx(0.4)
    assert made.after.price == pytest.approx(0.2)


def test_a_moved_pod_moves_on_from_where_it_is() -> None:
    """The source of a later move is the node that the step before sent the pod to."""
    nodes = [node("a", "medium", pods=1), node("b", "medium", pods=2), node("c", "medium", pods=3)]
    made = Scenario("chain", nodes=nodes, pools=[pool_of(budgets=["1"])]).plan(None)
    place = {held.key: held.spec.node_name for one in nodes for held in one.pods}
    for step in made.steps:
        for move in step.command.moves:
            assert move.source == place[move.pod]
            target = move.target
            place[move.pod] = step.replacement_names[target] if isinstance(target, int) else target
        assert not set(place.values()) & set(step.command.nodes)
    assert len(made.steps) >= 2


def test_names_of_new_nodes_are_unique_and_nobody_elses() -> None:
    nodes = [node(f"new-{number}", "huge", pods=7, zone=zone) for number, zone in ((1, Z1), (3, Z2))]
    nodes += [node("x", "huge", pods=[{"selector": {ZONE: Z3}, "cpu": 3}], zone=Z3)]
    scenario = Scenario("names", nodes=nodes, settings=replace(REFERENCE, ignore_budgets=True))
    made = scenario.plan(None)
    given = [name for step in made.steps for name in step.replacement_names]
    assert len(given) == len(set(given))
    assert not set(given) & {"new-1", "new-3"}


def test_a_new_node_takes_pods_in_a_later_step() -> None:
    """Two nodes have drifted; the one that replaces the first has room for the pod of the second."""
    nodes = [
        node("a", "huge", pods=[{"cpu": 1}], claim={"drifted": ago(hours=2)}),
        node("b", "tiny", pods=[{"cpu": "500m"}], claim={"drifted": ago(hours=1)}),
    ]
    made = Scenario("again", nodes=nodes).plan(None)
    assert moves(made) == [("default/a-0", "a", 0), ("default/b-0", "b", "new-1")]
    assert made.after.nodes == 1


def test_a_plan_with_more_steps_begins_with_the_plan_of_one_step() -> None:
    scenario = Scenario(
        "steps", nodes=[node(f"n{i}", "large", pods=2 + i % 3) for i in range(6)], pools=[pool_of(budgets=["2"])]
    )
    assert scenario.plan(1).steps == scenario.plan(None).steps[:1]
    assert scenario.plan(2).steps == scenario.plan(None).steps[:2]


def test_nothing_goes_twice_and_every_node_that_stays_says_why() -> None:
    scenario = replace(
        Scenario("many", nodes=[node(f"n{i}", "large", pods=1 + i % 7) for i in range(9)]),
        pools=[pool_of(budgets=["1"])],
    )
    made = scenario.plan(None)
    gone = [name for step in made.steps for name in step.command.nodes]
    assert len(gone) == len(set(gone))
    assert all(fate.reasons for fate in made.fates)
    assert {fate.candidate.name for fate in made.fates if fate.step} == set(gone) & {f"n{i}" for i in range(9)}
