"""Nodes that are no longer what their pool asks for: replaced at any price, one at a time."""

from dataclasses import replace
from typing import Any

import pytest
from tests.disruption.scenarios import (
    CATALOG,
    NOTHING,
    NOW,
    POOL,
    REFERENCE,
    Scenario,
    ago,
    either_search,
    node,
    pool_of,
)
from tests.factories import Z1, Z2, host_port, instance_type, node_pool, pdb, pod

from karpool.catalog.instance_types import Catalog
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
COMPLETE = replace(REFERENCE, complete_catalog=True)
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
    Scenario(
        "replaced by its like, whatever the price",
        nodes=[node("a", pods=FULL, **drifted())],
        removes="a",
        method="Drift",
        launches="medium",
    ),
    Scenario(
        "replaced by a more expensive one, if nothing else will do",
        nodes=[node("a", "small", pods=[{"cpu": 1}], **drifted())],
        pools=[pool_of(requirements=[(INSTANCE_TYPE, "In", "medium")])],
        removes="a",
        launches="medium",
    ),
    Scenario(
        "pods find room on other nodes",
        nodes=[node("a", pods=1, **drifted()), node("b", pods=1)],
        removes="a",
        launches=NOTHING,
    ),
    Scenario("empty and drifted: emptiness takes it", nodes=[node("a", **drifted())], removes="a", method="Emptiness"),
    Scenario(
        "empty and drifted, consolidateAfter Never: drift takes it",
        nodes=[node("a", **drifted())],
        pools=[NEVER],
        removes="a",
        method="Drift",
    ),
    Scenario(
        "the empty one goes first, though drifted later",
        nodes=[node("a", pods=1, **drifted(9)), node("b", **drifted(1))],
        pools=[NEVER],
        removes="b",
    ),
    Scenario(
        "the one drifted longest goes first",
        nodes=[node("a", pods=FULL, **drifted(1)), node("b", pods=FULL, **drifted(9))],
        removes="b",
    ),
    Scenario(
        "drift comes before consolidation",
        nodes=[node("a", pods=FULL, **drifted()), node("b", "huge", pods=1)],
        removes="a",
        method="Drift",
    ),
    Scenario(
        "three pods of two CPUs, types of three",
        nodes=[node("a", "nine", pods=[{"cpu": 2}] * 3, catalog=three_cpus(), **drifted())],
        catalog=three_cpus(),
        removes="a",
        launches="three three three",
    ),
    Scenario(
        "several drifted, budget of one",
        nodes=[node("a", pods=FULL, **drifted()), node("b", pods=FULL, **drifted())],
        pools=[pool_of(budgets=["1"])],
        removes="a",
        reasons={"b": "NotThisStep"},
    ),
    Scenario(
        "budget of none",
        nodes=[node("a", pods=FULL, **drifted())],
        pools=[pool_of(budgets=["0"])],
        reasons={"a": "BudgetExhausted"},
    ),
    Scenario(
        "budget for other reasons",
        nodes=[node("a", pods=FULL, **drifted())],
        pools=[pool_of(budgets=[Budget(nodes="0", reasons=("Empty", "Underutilized"))])],
        removes="a",
    ),
    Scenario(
        "a node that is not ready eats the budget",
        nodes=[node("a", pods=FULL, **drifted()), node("b", pods=FULL, ready=False)],
        pools=[pool_of(budgets=["1"])],
        reasons={"a": "BudgetExhausted"},
    ),
    Scenario(
        "policy WhenEmpty does not hold drift back",
        nodes=[node("a", pods=FULL, **drifted())],
        pools=[pool_of(policy="WhenEmpty")],
        removes="a",
    ),
    Scenario(
        "a pod that fits nowhere",
        nodes=[node("a", pods=[{"cpu": "3500m", "selector": {"disk": "ssd"}}], **drifted())],
        reasons={"a": "PodsWouldNotFit"},
        messages={"a": "default/a-0"},
    ),
    Scenario(
        "the first cannot go, the next can",
        nodes=[node("a", pods=[{"selector": {"disk": "ssd"}}], **drifted(9)), node("b", pods=FULL, **drifted())],
        removes="b",
    ),
    Scenario(
        "blocked pod, no grace",
        nodes=[node("a", pods=[{"annotations": TRUE}], **drifted())],
        reasons={"a": "PodDoNotDisrupt"},
    ),
    Scenario(
        "blocked by a PDB, no grace",
        nodes=[node("a", pods=1, **drifted())],
        pdbs=[pdb("keep", {"app": "a"}, allowed=0)],
        reasons={"a": "PodDisruptionBudget"},
    ),
    Scenario(
        "do-not-disrupt until later",
        nodes=[node("a", pods=[{"annotations": {DO_NOT_DISRUPT: "2h"}, "started": ago(hours=1)}], **drifted())],
        messages={"a": "13:00 UTC"},
    ),
    Scenario(
        "blocked pod and termination grace: the node drains, nothing comes for the pod",
        nodes=[node("a", pods=[{"annotations": TRUE}], **drifted(termination_grace_period="1h"))],
        removes="a",
        launches=NOTHING,
    ),
    Scenario(
        "fully blocking PDB and termination grace: no replacement",
        nodes=[node("a", pods=FULL, **drifted(termination_grace_period="1h"))],
        pdbs=[pdb("keep", {"app": "a"}, allowed=0, max_unavailable=0)],
        removes="a",
        launches=NOTHING,
        check=lambda p: p.steps[0].command.moves == (),
    ),
    Scenario(
        "PDB that allows none now, and termination grace: a replacement",
        nodes=[node("a", pods=FULL, **drifted(termination_grace_period="1h"))],
        pdbs=[pdb("keep", {"app": "a"}, allowed=0, min_available=1)],
        removes="a",
        launches="medium",
    ),
    Scenario(
        "one blocked pod and one that moves, termination grace",
        nodes=[node("a", pods=[{"annotations": TRUE, "cpu": 2}, {"cpu": 1}], **drifted(termination_grace_period="1h"))],
        removes="a",
        launches="small",
        check=lambda p: [m.pod for m in p.steps[0].command.moves] == ["default/a-1"],
    ),
    Scenario(
        "node says do-not-disrupt",
        nodes=[node("a", pods=FULL, annotations=TRUE, **drifted(termination_grace_period="1h"))],
        reasons={"a": "NodeDoNotDisrupt"},
    ),
    Scenario(
        "the heaviest pool that fits supplies the new node",
        nodes=[node("a", pods=FULL, **drifted())],
        pools=(POOL, pool_of("heavy", weight=10)),
        removes="a",
        check=lambda p: p.steps[0].command.replacements[0].pool == "heavy",
    ),
    Scenario(
        "its pool is at its limit, another supplies",
        nodes=[node("a", pods=FULL, pool="old", **drifted())],
        pools=(pool_of("old", limits={"cpu": 0}), POOL),
        removes="a",
        check=lambda p: p.steps[0].command.replacements[0].pool == "default",
    ),
    Scenario(
        "uninitialized destination",
        nodes=[node("a", pods=1, **drifted()), node("b", "huge", initialized=False)],
        reasons={"a": "UninitializedDestination"},
    ),
]

ARM = ("kubernetes.io/arch", "In", "arm64")
DETECTION = [
    Scenario(
        "hashes differ",
        nodes=[node("a", pods=FULL, claim={"annotations": hashed("1")})],
        pools=[pool_of(annotations=hashed("2"))],
        removes="a",
        method="Drift",
    ),
    Scenario(
        "hashes are equal",
        nodes=[node("a", pods=FULL, claim={"annotations": hashed("1")})],
        pools=[pool_of(annotations=hashed("1"))],
    ),
    Scenario(
        "hashes of different versions are not compared",
        nodes=[node("a", pods=FULL, claim={"annotations": hashed("1", "v2")})],
        pools=[pool_of(annotations=hashed("2"))],
    ),
    Scenario("claim without a hash", nodes=[node("a", pods=FULL)], pools=[pool_of(annotations=hashed("2"))]),
    Scenario(
        "requirement narrowed",
        nodes=[node("a", pods=FULL)],
        pools=[pool_of(requirements=[(INSTANCE_TYPE, "In", "large")])],
        removes="a",
        method="Drift",
        launches="large",
    ),
    Scenario(
        "requirement widened",
        nodes=[node("a", pods=FULL)],
        pools=[
            pool_of(
                "default",
                SPOT,
                ON_DEMAND,
                requirements=[(INSTANCE_TYPE, "In", "medium", "large")],
                consolidate_after="Never",
            )
        ],
    ),
    Scenario(
        "new key that the node lacks",
        nodes=[node("a", pods=FULL)],
        pools=[pool_of(requirements=[("team", "In", "red")])],
        removes="a",
    ),
    Scenario(
        "new key that the node has",
        nodes=[node("a", pods=FULL, labels={"team": "red"})],
        pools=[pool_of(requirements=[("team", "In", "red")])],
    ),
    Scenario(
        "Exists on a label that is there",
        nodes=[node("a", pods=FULL, labels={"team": "red"})],
        pools=[pool_of(requirements=[("team", "Exists")])],
    ),
    Scenario(
        "Exists on a label that is missing",
        nodes=[node("a", pods=FULL)],
        pools=[pool_of(requirements=[("team", "Exists")])],
        removes="a",
    ),
    Scenario(
        "DoesNotExist on a label that is there",
        nodes=[node("a", pods=FULL, labels={"team": "red"})],
        pools=[pool_of(requirements=[("team", "DoesNotExist")])],
        removes="a",
    ),
    Scenario(
        "NotIn on a label that is missing",
        nodes=[node("a", pods=FULL)],
        pools=[pool_of(requirements=[("team", "NotIn", "red")])],
    ),
    Scenario(
        "Gt above the label",
        nodes=[node("a", pods=FULL, labels={"generation": "3"})],
        pools=[pool_of(requirements=[("generation", "Gt", "3")])],
        removes="a",
    ),
    Scenario(
        "Gt below the label",
        nodes=[node("a", pods=FULL, labels={"generation": "4"})],
        pools=[pool_of(requirements=[("generation", "Gt", "3")])],
    ),
    Scenario(
        "template labels are no requirements on old nodes",
        nodes=[node("a", pods=FULL)],
        pools=[pool_of(labels={"team": "red"})],
    ),
    Scenario(
        "type unknown, claim old enough",
        nodes=[node("a", pods=FULL, labels={INSTANCE_TYPE: "x9"})],
        settings=COMPLETE,
        removes="a",
    ),
    Scenario(
        "type unknown, claim too young",
        nodes=[node("a", pods=FULL, labels={INSTANCE_TYPE: "x9"}, created=ago(minutes=59))],
        settings=COMPLETE,
    ),
    Scenario(
        "type unknown, but the catalogue may not know all", nodes=[node("a", pods=FULL, labels={INSTANCE_TYPE: "x9"})]
    ),
    Scenario(
        "type no longer offered in its zone",
        nodes=[node("a", pods=FULL, zone="elsewhere")],
        settings=COMPLETE,
        removes="a",
        method="Drift",
    ),
    Scenario(
        "type offered but sold out",
        nodes=[
            node(
                "a",
                "one",
                pods=FULL,
                catalog=Catalog((instance_type("one", 4, price=0.2, unavailable=[(ON_DEMAND, Z1)]),)),
            )
        ],
        settings=COMPLETE,
        catalog=Catalog((instance_type("one", 4, price=0.2, unavailable=[(ON_DEMAND, Z1)]),)),
    ),
    Scenario(
        "reserved node, only on-demand is left",
        nodes=[node("a", pods=FULL, capacity_type=RESERVED)],
        settings=COMPLETE,
        pools=[pool_of("default", RESERVED, ON_DEMAND)],
    ),
    Scenario(
        "reserved node, only spot is left",
        nodes=[
            node(
                "a",
                "one",
                pods=FULL,
                capacity_type=RESERVED,
                catalog=Catalog((instance_type("one", 4, price=0.2, offers=[(SPOT, Z1)]),)),
            )
        ],
        settings=COMPLETE,
        catalog=Catalog((instance_type("one", 4, price=0.2, offers=[(SPOT, Z1)]),)),
        pools=[node_pool()],
        removes="a",
        method="Drift",
    ),
    Scenario("not launched is not drifted", nodes=[node("a", pods=FULL, claim={"drifted": True, "launched": False})]),
]


@either_search(DRIFT)
def test_a_drifted_node_goes_when_its_pods_have_a_place(scenario: Scenario) -> None:
    scenario.verify()


@either_search(DETECTION)
def test_a_node_has_drifted_when_its_pool_asks_for_something_else(scenario: Scenario) -> None:
    scenario.verify()


def static(replicas: int, nodes: int, count: int, *, limit: int | None = None, **pool: Any) -> Scenario:
    """A static pool with some nodes, of which the first `count` have drifted."""
    made = [node(f"n{i}", pods=FULL, pool="fixed", **(drifted() if i < count else {})) for i in range(nodes)]
    fixed = pool_of("fixed", replicas=replicas, limits={} if limit is None else {"nodes": limit}, **pool)
    return Scenario("static", nodes=made, pools=[fixed])


@pytest.mark.parametrize(
    ("scenario", "together"),
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
def test_drifted_nodes_of_a_static_pool_are_replaced_within_its_limit(scenario: Scenario, together: int) -> None:
    from karpool.disruption.decide import first_commands
    from karpool.disruption.decision_pass import DecisionPass
    from karpool.disruption.plan import context_of

    context = context_of(scenario.objects, CATALOG, now=NOW, settings=scenario.settings, options=scenario.options)
    commands = first_commands(DecisionPass(context))
    assert len(commands) == together
    assert all(command.method == "Drift" and len(command.replacements) == 1 for command in commands)
    assert {new.pool for command in commands for new in command.replacements} <= {"fixed"}


@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        (static(5, 5, 5, limit=5), "NodeLimitReached"),
        (static(4, 5, 5), "ScaleDownFirst"),
        (static(5, 5, 5, budgets=["0"]), "BudgetExhausted"),
    ],
    ids=["limit", "too many", "budget"],
)
def test_a_drifted_node_of_a_static_pool_that_stays_says_why(scenario: Scenario, code: str) -> None:
    made = scenario.plan()
    assert not made.steps
    assert code in [reason.code for reason in made.fates[0].reasons]


def test_all_drifted_nodes_of_a_static_pool_are_replaced_in_the_end() -> None:
    made = static(3, 3, 3, limit=4).plan(None)
    assert [step.command.nodes for step in made.steps] == [("n0",), ("n1",), ("n2",)]
    assert made.after.nodes == 3


def test_a_new_node_has_every_label_that_its_pool_asks_for_and_so_has_not_drifted() -> None:
    rules = [("team", "Exists"), ("tier", "NotIn", "low"), ("generation", "Gt", "4"), ("size", "Lt", "3")]
    scenario = Scenario("labels", nodes=[node("a", pods=FULL, **drifted())], pools=[pool_of(requirements=rules)])
    assert len(scenario.plan(None).steps) == 1


def test_ten_nodes_five_drifted_all_go_one_step_each() -> None:
    nodes = [node(f"n{i}", pods=FULL, **(drifted() if i < 5 else {})) for i in range(10)]
    made = Scenario("ten", nodes=nodes, pools=[pool_of(budgets=["30%"])]).plan(None)
    assert [step.command.nodes for step in made.steps] == [(f"n{i}",) for i in range(5)]
    assert made.after.price == pytest.approx(made.before.price)


def test_pods_that_only_the_end_of_the_grace_moves_keep_room_in_later_steps() -> None:
    """The blocked pod of a drifted node comes back as pending: the next node is not emptied over its head."""
    blocked = node("a", "small", pods=[{"annotations": TRUE, "cpu": 1}], **drifted(termination_grace_period="1h"))
    made = Scenario("room", nodes=[blocked, node("b", "medium", pods=[{"cpu": 2}])], pools=[POOL]).plan(None)
    assert made.steps[0].command.nodes == ("a",)
    assert all(new.instance_types[0] == "medium" for step in made.steps[1:] for new in step.command.replacements)


def test_static_drift_needs_a_pool_that_can_supply() -> None:
    from msgspec.structs import replace as changed

    from karpool.wire.objects import Condition

    scenario = static(1, 1, 1)
    unready = changed(
        scenario.pools[0],
        status=changed(scenario.pools[0].status, conditions=(Condition(type="Ready", status="False"),)),
    )
    made = replace(scenario, pools=[unready]).plan()
    assert not made.steps
    assert "NoReadyNodePool" in [reason.code for reason in made.fates[0].reasons]


def test_host_ports_and_zones_are_kept_when_a_drifted_node_is_replaced() -> None:
    nodes = [
        node("a", pods=[{"ports": [host_port(80)]}], zone=Z2, **drifted()),
        node("b", pods=[{"ports": [host_port(80)]}]),
    ]
    Scenario("ports", nodes=nodes, removes="a", method="Drift", launches="tiny").verify()
    Scenario(
        "zone",
        nodes=[
            node("a", pods=[pod("x-0", node="a", selector={"topology.kubernetes.io/zone": Z2})], zone=Z2, **drifted())
        ],
        removes="a",
        check=lambda p: p.steps[0].command.replacements[0].zones == (Z2,),
    ).verify()


def test_the_capacity_type_of_a_drifted_replacement_is_settled() -> None:
    scenario = Scenario(
        "kinds", nodes=[node("a", pods=FULL, **drifted())], pools=[pool_of("default", SPOT, ON_DEMAND)], removes="a"
    )
    new = scenario.plan().steps[0].command.replacements[0]
    assert new.capacity_type == SPOT
    assert new.requirements[CAPACITY_TYPE].values == {SPOT}


@pytest.mark.parametrize(
    ("replicas", "says"),
    [(2, "it has 2 and wants 2"), (1, "some of them will be deleted"), (3, "more will be launched")],
)
def test_nodes_of_a_static_pool_say_what_it_does_about_its_number(replicas: int, says: str) -> None:
    made = Scenario("fixed", nodes=[node("a"), node("b")], pools=[pool_of(replicas=replicas)]).plan()
    assert not made.steps
    told = [reason.message for fate in made.fates for reason in fate.reasons if reason.code == "StaticPool"]
    assert len(told) >= 2
    assert all(says in message for message in told)
