"""Nodes whose pods fit on nodes that stay."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as changed
from tests.disruption.scenes import NOW, POOL, Box, Scene, ago, box, names, pool_of
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
from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import DO_NOT_DISRUPT, ZONE
from karpool.model.nodepool import NodePool
from karpool.wire.objects import Condition

STILL = pool_of("still", consolidate_after="Never", limits={"cpu": 0})
KEEP = {DO_NOT_DISRUPT: "true"}
NO_SUPPLY = pool_of(limits={"cpu": 0})
APP = {"app": "web"}


def stage(name: str, goes: str = "a", pods: Any = 1, *, there: Any = 1, rest: Any = (), **given: Any) -> Scene:
    """Node `a` with pods that can only go to node `b`: no new node may be made."""
    known = {key: given.pop(key) for key in list(given) if key in Scene.__dataclass_fields__}
    boxes = [box("a", pods=pods), box("b", "large", there, pool="still", **given), *rest]
    return Scene(name, boxes, goes, **{"pools": (NO_SUPPLY, STILL), **known})


def moves(plan: Plan) -> list[tuple[str, str | None, Any]]:
    return [(move.pod, move.source, move.target) for step in plan.steps for move in step.command.moves]


def unready(pool: NodePool) -> NodePool:
    return changed(pool, status=changed(pool.status, conditions=(Condition(type="Ready", status="False"),)))


def deleting(pool: NodePool) -> NodePool:
    return changed(pool, metadata=changed(pool.metadata, deletion_timestamp=ago(minutes=1)))


ROOM = [
    stage("room for one pod", check=lambda p: moves(p) == [("default/a-0", "a", "b")]),
    stage("no room", "", [{"cpu": 3}], there=[{"cpu": 6}], why={"a": "PodsWouldNotFit"}),
    stage("room for one of two pods", "", [{"cpu": 1}, {"cpu": 1}], there=[{"cpu": 6}]),
    stage("memory", "", [{"memory": "10Gi"}], there=[{"memory": "25Gi"}]),
    stage("extended resources", "", [{"requests": {"example.com/gpu": 1}}], why={"a": "PodsWouldNotFit"}),
    stage("taint not tolerated", "", taints=["team=blue"], said={"a": "team=blue"}),
    stage("taint tolerated", pods=[{"tolerations": ["team=blue"]}], taints=["team=blue"]),
    stage("PreferNoSchedule is only a wish", taints=["team=blue:PreferNoSchedule"]),
    stage("cordoned", "", cordoned=True, why={"a": "PodsWouldNotFit"}),
    stage("node selector that only its node has", "", [{"selector": {ZONE: Z1}}], zone=Z2),
    stage("required affinity with alternatives",
          pods=[{"terms": [node_term((ZONE, "In", Z3)), node_term((ZONE, "In", Z2))]}], zone=Z2),
    stage("host port is free", pods=[{"ports": [host_port(80)]}]),
    stage("host port is taken", "", [{"ports": [host_port(80)]}], there=[{"ports": [host_port(80)]}]),
    stage("anti-affinity to its like", "", [{"labels": APP, "anti": [anti_affinity(APP)]}], there=[{"labels": APP}]),
    stage("anti-affinity of those already there", "", [{"labels": APP}], there=[{"anti": [anti_affinity(APP)]}]),
    stage("affinity to a pod that is there", pods=[{"near": [affinity_to({"app": "db"})]}],
          there=[{"labels": {"app": "db"}}]),
    stage("affinity to a pod that moves along",
          pods=[{"labels": {"app": "db"}}, {"near": [affinity_to({"app": "db"})]}]),
    stage("affinity to a pod that is elsewhere", "", [{"near": [affinity_to({"app": "db"})]}]),
    stage("spread over zones would be broken", "", [{"labels": APP, "spread": [spread(APP)]}], there=[{"labels": APP}],
          zone=Z2,
          rest=[box("c", "tiny", [{"cpu": "800m"}], pool="still", zone=Z1)]),
    stage("spread that is only a wish", pods=[{"labels": APP, "spread": [spread(APP, when="ScheduleAnyway")]}],
          there=[{"labels": APP}], zone=Z2),
    stage("volume in another zone", "", [{"claims": ["data"]}], zone=Z2,
          others={"persistent_volumes": (pv("disk", zones=[Z1]),),
          "persistent_volume_claims": (pvc("data", volume="disk"),)}),
    stage("no more volumes can be attached", "", [{"claims": ["data"]}], there=[{"claims": ["other"]}], others={
          "persistent_volumes": (pv("disk", driver="csi"), pv("disk-2", driver="csi")),
          "csi_nodes": (csi_node("b", csi=1),),
          "persistent_volume_claims": (pvc("data", volume="disk"), pvc("other", volume="disk-2"))}),
    stage("node of nobody is a place, too", managed=False),
    stage("node that says do-not-disrupt is a place, too", annotations=KEEP),
    stage("node of a static pool is a place, too", pools=(NO_SUPPLY, pool_of("still", replicas=1))),
    stage("node of a pool that is not ready is a place, too", pools=(NO_SUPPLY, unready(STILL))),
    stage("node of a pool that is being deleted is a place, too", pools=(NO_SUPPLY, deleting(STILL))),
    stage("node whose pool is gone is a place, too", pools=(NO_SUPPLY,)),
    stage("node that is being deleted is no place", "", claim={"deleted": ago(minutes=1)},
          why={"a": "PodsWouldNotFit"}),
    stage("node that is not up yet is no place", "", initialized=False, why={"a": "UninitializedDestination"},
          said={"a": "b, which is not initialized"}),
    stage("one that is up among many that are not", there=0, initialized=False,
          rest=[*(box(f"b{i}", initialized=False, pool="still") for i in range(9)), box("z", "large", 1, pool="still")],
          check=lambda p: moves(p) == [("default/a-0", "a", "z")]),
    stage("claim without a node is no place", "", there=[{"cpu": "7500m"}], rest=[
          Box(None, node_claim("c", pool="still", capacity={"cpu": 4, "memory": "16Gi", "pods": 110}), ())],
          why={"a": "UninitializedDestination"}),
]  # fmt: skip

NOBODY = [
    Scene("no ready pool at all: deletion works", [box("a", pods=1), box("b", "large", 1, annotations=KEEP)], "a",
          pools=[unready(POOL)]),
    Scene("no ready pool at all: replacement does not", [box("a", "huge", 1)], pools=[unready(POOL)],
          why={"a": "PodsWouldNotFit"}),
    Scene("its pool is being deleted: it may go", [box("a", pods=1), box("b", "large", 1, annotations=KEEP)], "a",
          pools=[deleting(POOL)]),
    Scene("its pool is being deleted: another pool replaces it", [box("a", "huge", 1)], "a", to="tiny",
          pools=(deleting(POOL), pool_of("other")), check=lambda p: p.steps[0].command.replacements[0].pool == "other"),
    Scene("empty nodes of a pool that is not ready", [box("a")], "a", pools=[unready(POOL)], by="Emptiness"),
    Scene("a static pool supplies nobody else", [box("a", "huge", 1)], pools=(NO_SUPPLY, pool_of("fixed", replicas=3)),
          why={"a": "PodsWouldNotFit"}),
]  # fmt: skip

PENDING = [
    Scene("a pending pod that fits nowhere is no obstacle", [box("a", pods=1), box("b", "large", 1, pool="still")], "a",
          pools=(NO_SUPPLY, STILL), pods=[pod("w-0", cpu=99, pending=True)],
          check=lambda p: (moves(p), p.unschedulable[0][0]) == ([("default/a-0", "a", "b")], "default/w-0")),
    Scene("a pending pod keeps the room that the move needed",
          [box("a", pods=[{"cpu": "2500m"}]), box("b", pods=[{"cpu": 1}], pool="still")], pools=(NO_SUPPLY, STILL),
          pods=[pod("w-0", cpu=2, pending=True)], why={"a": "PodsWouldNotFit"}),
    Scene("a pending pod on the node moves with it, from nowhere", [box("a", "large", 1)], "a", to="medium",
          pods=[pod("w-0", cpu=3, pending=True)],
          check=lambda p: moves(p) == [("default/a-0", "a", 0), ("default/w-0", None, 0)]),
    Scene("a pending pod that only fits on this node keeps it",
          [box("a", pods=1, labels={"disk": "ssd"}), box("b", "large", 1, pool="still")],
          pools=(NO_SUPPLY, STILL), pods=[pod("w-0", selector={"disk": "ssd"}, pending=True)],
          why={"a": "PodsWouldNotFit"},
          said={"a": "default/w-0"}),
    Scene("pods of a deleting node take room", [
          box("a", pods=[{"cpu": "3500m"}]), box("b", pods=[{"cpu": "200m"}], pool="still"),
          box("c", "tiny", 1, claim={"deleted": ago(minutes=1)})],
          pools=(NO_SUPPLY, STILL), why={"a": "PodsWouldNotFit", "c": "NodeDeleting"}),
    Scene("a deleting node's pods that find no room are no obstacle", [
          box("a", pods=1), box("b", pods=1, pool="still"),
          box("c", "huge", [{"cpu": 60}], claim={"deleted": ago(minutes=1)})], "a",
          pools=(NO_SUPPLY, STILL)),
    Scene("pods of a deleting node may use a node that is not up", [
          box("b", "large", initialized=False), box("c", pods=1, claim={"deleted": ago(minutes=1)}),
          box("a", pods=[{"cpu": "100m"}]), box("d", pods=1, pool="still")], "a", pools=(NO_SUPPLY, STILL)),
]  # fmt: skip


@pytest.mark.parametrize("scene", ROOM, ids=names)
def test_a_node_goes_when_all_its_pods_have_another_place(scene: Scene) -> None:
    scene.verify()


@pytest.mark.parametrize("scene", NOBODY, ids=names)
def test_pools_that_cannot_supply_nodes_do_not_stop_everything(scene: Scene) -> None:
    scene.verify()


@pytest.mark.parametrize("scene", PENDING, ids=names)
def test_pods_that_wait_for_room_get_what_they_find_today(scene: Scene) -> None:
    scene.verify()


def test_totals_count_bound_pods_that_no_daemon_set_owns() -> None:
    boxes = [
        box("a", pods=[{}, {"owner": "DaemonSet"}, {"owner": "Node"}, {"phase": "Succeeded"}, {"deleted": NOW}]),
        box("b", "large", 6),
        box("c", pods=2, claim={"deleted": ago(minutes=1)}),
    ]
    made = Scene("totals", boxes, pods=[pod("w-0", pending=True)]).plan()
    assert made.before.pods == 3 + 6 + 2
    assert made.before.nodes == 3
    assert {fate.candidate.name: fate.pods for fate in made.fates} == {"a": 3, "b": 6, "c": 2}


def test_nodes_that_are_being_deleted_count_before_and_after() -> None:
    made = Scene("deleting", [box("a"), box("b", claim={"deleted": ago(minutes=1)})]).plan()
    assert (made.before.nodes, made.after.nodes) == (2, 1)
    assert made.before.price == pytest.approx(0.4)
    assert made.after.price == pytest.approx(0.2)


def test_a_moved_pod_moves_on_from_where_it_is() -> None:
    """The source of a later move is the node that the step before sent the pod to."""
    boxes = [box("a", "medium", 1), box("b", "medium", 2), box("c", "medium", 3)]
    made = Scene("chain", boxes, pools=[pool_of(budgets=["1"])]).plan(None)
    place = {held.key: held.spec.node_name for one in boxes for held in one.pods}
    for step in made.steps:
        for move in step.command.moves:
            assert move.source == place[move.pod]
            target = move.target
            place[move.pod] = step.replacement_names[target] if isinstance(target, int) else target
        assert not set(place.values()) & set(step.command.nodes)
    assert len(made.steps) >= 2


def test_names_of_new_nodes_are_unique_and_nobody_elses() -> None:
    boxes = [box(f"new-{number}", "huge", 7, zone=zone) for number, zone in ((1, Z1), (3, Z2))]
    boxes += [box("x", "huge", [{"selector": {ZONE: Z3}, "cpu": 3}], zone=Z3)]
    scene = Scene("names", boxes, settings=DisruptionSettings(ignore_budgets=True))
    made = scene.plan(None)
    given = [name for step in made.steps for name in step.replacement_names]
    assert len(given) == len(set(given))
    assert not set(given) & {"new-1", "new-3"}


def test_a_new_node_takes_pods_in_a_later_step() -> None:
    """Two nodes have drifted; the one that replaces the first has room for the pod of the second."""
    boxes = [
        box("a", "huge", [{"cpu": 1}], claim={"drifted": ago(hours=2)}),
        box("b", "tiny", [{"cpu": "500m"}], claim={"drifted": ago(hours=1)}),
    ]
    made = Scene("again", boxes).plan(None)
    assert moves(made) == [("default/a-0", "a", 0), ("default/b-0", "b", "new-1")]
    assert made.after.nodes == 1


def test_a_plan_with_more_steps_begins_with_the_plan_of_one_step() -> None:
    scene = Scene("steps", [box(f"n{i}", "large", 2 + i % 3) for i in range(6)], pools=[pool_of(budgets=["2"])])
    assert scene.plan(1).steps == scene.plan(None).steps[:1]
    assert scene.plan(2).steps == scene.plan(None).steps[:2]


def test_nothing_goes_twice_and_every_node_that_stays_says_why() -> None:
    scene = replace(Scene("many", [box(f"n{i}", "large", 1 + i % 7) for i in range(9)]), pools=[pool_of(budgets=["1"])])
    made = scene.plan(None)
    gone = [name for step in made.steps for name in step.command.nodes]
    assert len(gone) == len(set(gone))
    assert all(fate.reasons for fate in made.fates)
    assert {fate.candidate.name for fate in made.fates if fate.step} == set(gone) & {f"n{i}" for i in range(9)}
