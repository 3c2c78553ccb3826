"""Nodes that are no longer what their pool asks for: replaced at any price, one at a time."""

from dataclasses import replace
from typing import Any

import pytest
from tests.disruption.scenes import CATALOG, NOW, POOL, Scene, ago, box, names, pool_of
from tests.factories import Z1, Z2, host_port, instance_type, node_pool, pdb, pod

from karpool.catalog.instance_types import Catalog
from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import (
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    INSTANCE_TYPE,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    ON_DEMAND,
    RESERVED,
    SPOT,
)
from karpool.model.nodepool import Budget

DRIFTED = {"drifted": ago(hours=1)}
TRUE = {DO_NOT_DISRUPT: "true"}
NEVER = pool_of(consolidate_after="Never")
COMPLETE = DisruptionSettings(complete_catalog=True)
FULL = [{"cpu": "3500m"}]


def drifted(since: float = 1, **claim: Any) -> dict[str, Any]:
    """A claim that has been drifted for so many hours."""
    return {"claim": {"drifted": ago(hours=since), **claim}}


def hashed(text: str, version: str = "v3") -> dict[str, str]:
    return {NODEPOOL_HASH: text, NODEPOOL_HASH_VERSION: version}


def three_cpus() -> Catalog:
    return Catalog(
        (instance_type("three", 3, "16Gi", price=0.2), instance_type("nine", 9, "32Gi", price=0.5, offers=()))
    )


DRIFT = [
    Scene("replaced by its like, whatever the price", [box("a", pods=FULL, **drifted())], "a", by="Drift", to="medium"),
    Scene("replaced by a dearer one, if nothing else will do", [box("a", "small", [{"cpu": 1}], **drifted())], "a",
          to="medium",
          pools=[pool_of(requirements=[(INSTANCE_TYPE, "In", "medium")])]),
    Scene("pods find room on other nodes", [box("a", pods=1, **drifted()), box("b", pods=1)], "a", to=""),
    Scene("empty and drifted: emptiness takes it", [box("a", **drifted())], "a", by="Emptiness"),
    Scene("empty and drifted, consolidateAfter Never: drift takes it", [box("a", **drifted())], "a", pools=[NEVER],
          by="Drift"),
    Scene("the empty one goes first, though drifted later", [box("a", pods=1, **drifted(9)), box("b", **drifted(1))],
          "b",
          pools=[NEVER]),
    Scene("the one drifted longest goes first", [box("a", pods=FULL, **drifted(1)), box("b", pods=FULL, **drifted(9))],
          "b"),
    Scene("drift comes before consolidation", [box("a", pods=FULL, **drifted()), box("b", "huge", 1)], "a", by="Drift"),
    Scene("three pods of two CPUs, types of three", [
        box("a", "nine", [{"cpu": 2}] * 3, catalog=three_cpus(), **drifted())], "a", to="three three three",
        catalog=three_cpus()),
    Scene("several drifted, budget of one", [box("a", pods=FULL, **drifted()), box("b", pods=FULL, **drifted())], "a",
          pools=[pool_of(budgets=["1"])], why={"b": "NotThisStep"}),
    Scene("budget of none", [box("a", pods=FULL, **drifted())], pools=[pool_of(budgets=["0"])],
          why={"a": "BudgetExhausted"}),
    Scene("budget for other reasons", [box("a", pods=FULL, **drifted())], "a",
          pools=[pool_of(budgets=[Budget(nodes="0", reasons=("Empty", "Underutilized"))])]),
    Scene("a node that is not ready eats the budget",
          [box("a", pods=FULL, **drifted()), box("b", pods=FULL, ready=False)],
          pools=[pool_of(budgets=["1"])], why={"a": "BudgetExhausted"}),
    Scene("policy WhenEmpty does not hold drift back", [box("a", pods=FULL, **drifted())], "a",
          pools=[pool_of(policy="WhenEmpty")]),
    Scene("a pod that fits nowhere", [box("a", pods=[{"cpu": "3500m", "selector": {"disk": "ssd"}}], **drifted())],
          why={"a": "PodsWouldNotFit"}, said={"a": "default/a-0"}),
    Scene("the first cannot go, the next can", [
        box("a", pods=[{"selector": {"disk": "ssd"}}], **drifted(9)), box("b", pods=FULL, **drifted())], "b"),
    Scene("blocked pod, no grace", [box("a", pods=[{"annotations": TRUE}], **drifted())], why={"a": "PodDoNotDisrupt"}),
    Scene("blocked by a PDB, no grace", [box("a", pods=1, **drifted())], pdbs=[pdb("keep", {"app": "a"}, allowed=0)],
          why={"a": "PodDisruptionBudget"}),
    Scene("do-not-disrupt until later", [
        box("a", pods=[{"annotations": {DO_NOT_DISRUPT: "2h"}, "started": ago(hours=1)}], **drifted())],
        said={"a": "13:00 UTC"}),
    Scene("blocked pod and termination grace: the node drains, nothing comes for the pod", [
        box("a", pods=[{"annotations": TRUE}], **drifted(termination_grace_period="1h"))], "a", to=""),
    Scene("fully blocking PDB and termination grace: no replacement", [
        box("a", pods=FULL, **drifted(termination_grace_period="1h"))], "a", to="",
        pdbs=[pdb("keep", {"app": "a"}, allowed=0, max_unavailable=0)],
        check=lambda p: p.steps[0].command.moves == ()),
    Scene("PDB that allows none now, and termination grace: a replacement", [
        box("a", pods=FULL, **drifted(termination_grace_period="1h"))], "a", to="medium",
        pdbs=[pdb("keep", {"app": "a"}, allowed=0, min_available=1)]),
    Scene("one blocked pod and one that moves, termination grace", [
        box("a", pods=[{"annotations": TRUE, "cpu": 2}, {"cpu": 1}], **drifted(termination_grace_period="1h"))], "a",
        to="small",
        check=lambda p: [m.pod for m in p.steps[0].command.moves] == ["default/a-1"]),
    Scene("node says do-not-disrupt", [box("a", pods=FULL, annotations=TRUE, **drifted(termination_grace_period="1h"))],
          why={"a": "NodeDoNotDisrupt"}),
    Scene("the heaviest pool that fits supplies the new node", [box("a", pods=FULL, **drifted())], "a",
          pools=(POOL, pool_of("heavy", weight=10)),
          check=lambda p: p.steps[0].command.replacements[0].pool == "heavy"),
    Scene("its pool is at its limit, another supplies", [box("a", pods=FULL, pool="old", **drifted())], "a",
          pools=(pool_of("old", limits={"cpu": 0}), POOL),
          check=lambda p: p.steps[0].command.replacements[0].pool == "default"),
    Scene("uninitialized destination", [box("a", pods=1, **drifted()), box("b", "huge", initialized=False)],
          why={"a": "UninitializedDestination"}),
]  # fmt: skip

ARM = ("kubernetes.io/arch", "In", "arm64")
DETECTION = [
    Scene("hashes differ", [box("a", pods=FULL, claim={"annotations": hashed("1")})], "a",
          pools=[pool_of(annotations=hashed("2"))], by="Drift"),
    Scene("hashes are equal", [box("a", pods=FULL, claim={"annotations": hashed("1")})],
          pools=[pool_of(annotations=hashed("1"))]),
    Scene("hashes of different versions are not compared",
          [box("a", pods=FULL, claim={"annotations": hashed("1", "v2")})],
          pools=[pool_of(annotations=hashed("2"))]),
    Scene("claim without a hash", [box("a", pods=FULL)], pools=[pool_of(annotations=hashed("2"))]),
    Scene("requirement narrowed", [box("a", pods=FULL)], "a",
          pools=[pool_of(requirements=[(INSTANCE_TYPE, "In", "large")])], by="Drift", to="large"),
    Scene("requirement widened", [box("a", pods=FULL)], pools=[pool_of("default", SPOT, ON_DEMAND,
          requirements=[(INSTANCE_TYPE, "In", "medium", "large")], consolidate_after="Never")]),
    Scene("new key that the node lacks", [box("a", pods=FULL)], "a",
          pools=[pool_of(requirements=[("team", "In", "red")])]),
    Scene("new key that the node has", [box("a", pods=FULL, labels={"team": "red"})],
          pools=[pool_of(requirements=[("team", "In", "red")])]),
    Scene("Exists on a label that is there", [box("a", pods=FULL, labels={"team": "red"})],
          pools=[pool_of(requirements=[("team", "Exists")])]),
    Scene("Exists on a label that is missing", [box("a", pods=FULL)], "a",
          pools=[pool_of(requirements=[("team", "Exists")])]),
    Scene("DoesNotExist on a label that is there", [box("a", pods=FULL, labels={"team": "red"})], "a",
          pools=[pool_of(requirements=[("team", "DoesNotExist")])]),
    Scene("NotIn on a label that is missing", [box("a", pods=FULL)],
          pools=[pool_of(requirements=[("team", "NotIn", "red")])]),
    Scene("Gt above the label", [box("a", pods=FULL, labels={"generation": "3"})], "a",
          pools=[pool_of(requirements=[("generation", "Gt", "3")])]),
    Scene("Gt below the label", [box("a", pods=FULL, labels={"generation": "4"})],
          pools=[pool_of(requirements=[("generation", "Gt", "3")])]),
    Scene("template labels are no requirements on old nodes", [box("a", pods=FULL)],
          pools=[pool_of(labels={"team": "red"})]),
    Scene("type unknown, claim old enough", [box("a", pods=FULL, labels={INSTANCE_TYPE: "x9"})], "a",
          settings=COMPLETE),
    Scene("type unknown, claim too young", [box("a", pods=FULL, labels={INSTANCE_TYPE: "x9"}, created=ago(minutes=59))],
          settings=COMPLETE),
    Scene("type unknown, but the catalogue may not know all", [box("a", pods=FULL, labels={INSTANCE_TYPE: "x9"})]),
    Scene("type no longer offered in its zone", [box("a", pods=FULL, zone="elsewhere")], "a", settings=COMPLETE,
          by="Drift"),
    Scene("type offered but sold out", [box("a", "one", pods=FULL, catalog=Catalog((
          instance_type("one", 4, price=0.2, unavailable=[(ON_DEMAND, Z1)]),)))], settings=COMPLETE, catalog=Catalog((
          instance_type("one", 4, price=0.2, unavailable=[(ON_DEMAND, Z1)]),))),
    Scene("reserved node, only on-demand is left", [box("a", pods=FULL, kind=RESERVED)], settings=COMPLETE,
          pools=[pool_of("default", RESERVED, ON_DEMAND)]),
    Scene("reserved node, only spot is left", [box("a", "one", FULL, kind=RESERVED, catalog=Catalog((
          instance_type("one", 4, price=0.2, offers=[(SPOT, Z1)]),)))], "a", settings=COMPLETE, by="Drift",
          catalog=Catalog((instance_type("one", 4, price=0.2, offers=[(SPOT, Z1)]),)), pools=[node_pool()]),
    Scene("not launched is not drifted", [box("a", pods=FULL, claim={"drifted": True, "launched": False})]),
]  # fmt: skip


@pytest.mark.parametrize("scene", DRIFT, ids=names)
def test_a_drifted_node_goes_when_its_pods_have_a_place(scene: Scene) -> None:
    scene.verify()


@pytest.mark.parametrize("scene", DETECTION, ids=names)
def test_a_node_has_drifted_when_its_pool_asks_for_something_else(scene: Scene) -> None:
    scene.verify()


def static(replicas: int, nodes: int, count: int, *, limit: int | None = None, **pool: Any) -> Scene:
    """A static pool with some nodes, of which the first `count` have drifted."""
    boxes = [box(f"n{i}", pods=FULL, pool="fixed", **(drifted() if i < count else {})) for i in range(nodes)]
    fixed = pool_of("fixed", replicas=replicas, limits={} if limit is None else {"nodes": limit}, **pool)
    return Scene("static", boxes, pools=[fixed])


@pytest.mark.parametrize(
    ("scene", "together"),
    [
        (static(5, 5, 5, limit=5), 0),
        (static(5, 5, 5, limit=6), 1),
        (static(5, 5, 5, limit=7), 2),
        (static(5, 5, 3), 3),
        (static(5, 5, 5, budgets=["40%"]), 2),
        (static(5, 5, 5, budgets=["0"]), 0),
        (static(4, 5, 5), 0),
        (static(5, 5, 0), 0),
    ],
    ids=["limit 5", "limit 6", "limit 7", "three drifted", "budget 40%", "no budget", "too many nodes", "none drifted"],
)
def test_drifted_nodes_of_a_static_pool_are_replaced_within_its_limit(scene: Scene, together: int) -> None:
    from karpool.disruption.decision_pass import DecisionPass
    from karpool.disruption.plan import context_of
    from karpool.disruption.refusal_cache import RefusalCache

    context = context_of(scene.objects, CATALOG, now=NOW, settings=scene.settings, options=scene.options)
    commands = DecisionPass(context, RefusalCache()).decide()
    assert len(commands) == together
    assert all(command.method == "Drift" and len(command.replacements) == 1 for command in commands)
    assert {new.pool for command in commands for new in command.replacements} <= {"fixed"}


@pytest.mark.parametrize(
    ("scene", "code"),
    [
        (static(5, 5, 5, limit=5), "NodeLimitReached"),
        (static(4, 5, 5), "ScaleDownFirst"),
        (static(5, 5, 5, budgets=["0"]), "BudgetExhausted"),
    ],
    ids=["limit", "too many", "budget"],
)
def test_a_drifted_node_of_a_static_pool_that_stays_says_why(scene: Scene, code: str) -> None:
    made = scene.plan()
    assert not made.steps
    assert code in [reason.code for reason in made.fates[0].reasons]


def test_all_drifted_nodes_of_a_static_pool_are_replaced_in_the_end() -> None:
    made = static(3, 3, 3, limit=4).plan(None)
    assert [step.command.nodes for step in made.steps] == [("n0",), ("n1",), ("n2",)]
    assert made.after.nodes == 3


def test_a_new_node_has_every_label_that_its_pool_asks_for_and_so_has_not_drifted() -> None:
    rules = [("team", "Exists"), ("tier", "NotIn", "low"), ("generation", "Gt", "4"), ("size", "Lt", "3")]
    scene = Scene("labels", [box("a", pods=FULL, **drifted())], pools=[pool_of(requirements=rules)])
    assert len(scene.plan(None).steps) == 1


def test_ten_nodes_five_drifted_all_go_one_step_each() -> None:
    boxes = [box(f"n{i}", pods=FULL, **(drifted() if i < 5 else {})) for i in range(10)]
    made = Scene("ten", boxes, pools=[pool_of(budgets=["30%"])]).plan(None)
    assert [step.command.nodes for step in made.steps] == [(f"n{i}",) for i in range(5)]
    assert made.after.price == pytest.approx(made.before.price)


def test_pods_that_only_the_end_of_the_grace_moves_keep_room_in_later_steps() -> None:
    """The blocked pod of a drifted node comes back as pending: the next node is not emptied over its head."""
    blocked = box("a", "small", [{"annotations": TRUE, "cpu": 1}], **drifted(termination_grace_period="1h"))
    made = Scene("room", [blocked, box("b", "medium", [{"cpu": 2}])], pools=[POOL]).plan(None)
    assert made.steps[0].command.nodes == ("a",)
    assert all(new.instance_types[0] == "medium" for step in made.steps[1:] for new in step.command.replacements)


def test_static_drift_needs_a_pool_that_can_supply() -> None:
    from msgspec.structs import replace as changed

    from karpool.wire.objects import Condition

    scene = static(1, 1, 1)
    unready = changed(
        scene.pools[0], status=changed(scene.pools[0].status, conditions=(Condition(type="Ready", status="False"),))
    )
    made = replace(scene, pools=[unready]).plan()
    assert not made.steps
    assert "NoReadyNodePool" in [reason.code for reason in made.fates[0].reasons]


def test_host_ports_and_zones_are_kept_when_a_drifted_node_is_replaced() -> None:
    boxes = [
        box("a", pods=[{"ports": [host_port(80)]}], zone=Z2, **drifted()),
        box("b", pods=[{"ports": [host_port(80)]}]),
    ]
    Scene("ports", boxes, "a", to="tiny", by="Drift").verify()
    Scene("zone", [box("a", pods=[pod("x-0", node="a", selector={"topology.kubernetes.io/zone": Z2})], zone=Z2,
          **drifted())],
          "a", check=lambda p: p.steps[0].command.replacements[0].zones == (Z2,)).verify()  # fmt: skip


def test_the_capacity_type_of_a_drifted_replacement_is_settled() -> None:
    scene = Scene("kinds", [box("a", pods=FULL, **drifted())], "a", pools=[pool_of("default", SPOT, ON_DEMAND)])
    new = scene.plan().steps[0].command.replacements[0]
    assert new.capacity_type == SPOT
    assert new.requirements[CAPACITY_TYPE].values == {SPOT}
