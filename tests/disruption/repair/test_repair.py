"""Repair as a method: who is repaired, in which order, what is done, and what stands against it."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from tests.disruption.repair.policies import POLICIES, fault, policy
from tests.disruption.scenarios import (
    CATALOG,
    NOTHING,
    NOW,
    REFERENCE,
    NodeWithPods,
    Scenario,
    ago,
    either_search,
    node,
    pool_of,
)
from tests.factories import pdb

from karpool.disruption.command import Cause
from karpool.disruption.decide import decide
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.explain import explain_node
from karpool.disruption.plan import Plan, context_of
from karpool.disruption.repair.policies import RepairPolicies
from karpool.model.labels import DO_NOT_DISRUPT, DO_NOT_REPAIR
from karpool.model.nodepool import Budget
from karpool.packing.options import Options

REPAIRS = replace(REFERENCE, repair=POLICIES)
QUIET = pool_of(consolidate_after="Never")
"""A pool in which only repair has something to do."""
NO_BUDGET = pool_of(
    consolidate_after="Never", budgets=[Budget(nodes="0", reasons=("Unhealthy",)), Budget(nodes="100%")]
)
FULL = [{"cpu": "3500m"}]
PINNED = [{"cpu": "3500m", "annotations": {DO_NOT_DISRUPT: "true"}}]


def sick(name: str, kind: str = "Broken", *, minutes: float = 5, pods: Any = FULL, **rest: Any) -> NodeWithPods:
    """A node that has had a fault for some minutes."""
    return node(name, pods=pods, conditions=[fault(kind, ago(minutes=minutes))], **rest)


def well(*names: str) -> list[NodeWithPods]:
    return [node(name, pods=FULL) for name in names]


def repairing(name: str, *nodes: NodeWithPods, **rest: Any) -> Scenario:
    return Scenario(name, nodes=nodes, **{"settings": REPAIRS, "pools": [QUIET], **rest})


def bound(seconds: float | None) -> Any:
    def check(plan: Plan) -> bool:
        found = plan.steps[0].command.drain_bound
        return (None if found is None else found.total_seconds()) == seconds

    return check


def decision(word: str) -> Any:
    def check(plan: Plan) -> bool:
        return plan.steps[0].command.decision == word

    return check


SCENARIOS = [
    repairing(
        "a broken node is replaced",
        sick("a"),
        removes="a",
        method="Repair",
        launches="medium",
        reasons={"a": "Unhealthy"},
        messages={"a": "condition Broken is True"},
    ),
    repairing("nothing is repaired without policies", sick("a"), settings=REFERENCE),
    repairing("its pods find room elsewhere", sick("a", pods=1), node("b", pods=1), removes="a", launches=NOTHING),
    repairing(
        "an empty one is only deleted, by repair",
        sick("a", pods=0),
        pools=[pool_of()],
        removes="a",
        method="Repair",
        launches=NOTHING,
        check=decision("delete"),
    ),
    repairing("tolerated", sick("a", minutes=0.4), reasons={"a": "RepairTolerated"}, messages={"a": "12:00:06 UTC"}),
    repairing(
        "a hanging node is rebooted and stays",
        sick("a", "Hanging"),
        removes="a",
        method="Repair",
        launches=NOTHING,
        check=decision("reboot"),
    ),
    repairing(
        "do-not-disrupt of the node means nothing to repair",
        sick("a", annotations={DO_NOT_DISRUPT: "true"}),
        removes="a",
    ),
    repairing("do-not-repair", sick("a", annotations={DO_NOT_REPAIR: "true"}), reasons={"a": "NodeDoNotRepair"}),
    repairing("do-not-repair with another value", sick("a", annotations={DO_NOT_REPAIR: "false"}), removes="a"),
    repairing(
        "do-not-repair of a node that is tolerated is not mentioned",
        sick("a", minutes=0.4, annotations={DO_NOT_REPAIR: "true"}),
        reasons={"a": "RepairTolerated"},
    ),
    repairing("a budget of none", sick("a"), pools=[NO_BUDGET], reasons={"a": "BudgetExhausted"}),
    repairing(
        "a node that never came up takes no budget", sick("a", initialized=False), pools=[NO_BUDGET], removes="a"
    ),
    repairing(
        "a node that is not registered",
        sick("a", registered=False, initialized=False),
        reasons={"a": "NodeNotRegistered"},
    ),
    repairing(
        "a pod that blocks leaves within the policy's bound",
        sick("a", pods=PINNED),
        removes="a",
        launches="medium",
        check=bound(45),
    ),
    repairing(
        "the claim's own period is shorter",
        sick("a", claim={"termination_grace_period": "20s"}),
        removes="a",
        check=bound(20),
    ),
    repairing(
        "a pod that blocks, and no bound anywhere",
        node("a", pods=PINNED, conditions=[fault("Ready", ago(hours=1), status="Unknown")]),
        reasons={"a": "DrainBoundRequired"},
        messages={"a": "no terminationGracePeriod ends that"},
    ),
    repairing(
        "a budget of pods that allows none, and no bound anywhere",
        node(
            "a",
            pods=[{"cpu": "3500m", "labels": {"app": "web"}}],
            conditions=[fault("Ready", ago(hours=1), status="Unknown")],
        ),
        pdbs=[pdb("web", {"app": "web"}, allowed=0)],
        reasons={"a": "DrainBoundRequired"},
    ),
    repairing(
        "a pod that blocks, and a bound of the claim only",
        node(
            "a",
            pods=PINNED,
            conditions=[fault("Ready", ago(hours=1), status="Unknown")],
            claim={"termination_grace_period": "5m"},
        ),
        removes="a",
        check=bound(None),
    ),
    repairing(
        "unhealthy pods have no other place",
        sick("a", pods=[{"cpu": "3", "selector": {"disk": "ssd"}}]),
        reasons={"a": "PodsWouldNotFit"},
    ),
    repairing(
        "a pod without a place keeps its node, and the next one is repaired",
        sick("a", minutes=50, pods=[{"cpu": "3", "selector": {"disk": "ssd"}}]),
        sick("b"),
        *well("c", "d", "e", "f"),
        removes="b",
        reasons={"a": "PodsWouldNotFit"},
    ),
    repairing(
        "a node that is being deleted", sick("a", claim={"deleted": ago(minutes=1)}), reasons={"a": "NodeDeleting"}
    ),
    repairing("one of five", sick("a"), *well("b", "c", "d", "e"), removes="a"),
    repairing(
        "two of five are too many",
        sick("a"),
        sick("b"),
        *well("c", "d", "e"),
        reasons={"a": "TooManyUnhealthy", "b": "TooManyUnhealthy"},
        messages={"a": "2 of 5 nodes are unhealthy, more than 1 (20%)"},
    ),
    repairing(
        "two of six, one of them vetoed",
        sick("a"),
        sick("b", annotations={DO_NOT_REPAIR: "true"}),
        *well("c", "d", "e", "f"),
        removes="a",
        reasons={"b": "NodeDoNotRepair"},
    ),
    repairing(
        "three of six, one of them tolerated",
        sick("a"),
        sick("b", minutes=0),
        sick("c"),
        *well("d", "e", "f"),
        reasons={"a": "TooManyUnhealthy", "b": "RepairTolerated"},
    ),
    repairing(
        "another pool is none of its business",
        sick("a"),
        sick("b", pool="other"),
        *well("c", "d"),
        pools=[QUIET, pool_of("other", consolidate_after="Never")],
        removes="a",
    ),
    repairing("before emptiness", sick("a"), node("b"), pools=[pool_of()], removes="a", method="Repair"),
]


@either_search(SCENARIOS)
def test_repair(scenario: Scenario) -> None:
    scenario.verify()


RANKED = RepairPolicies.checked(
    [
        policy(priority=10),
        policy("Slow", "True", regex=".*", tolerated="0s", priority=10),
        policy("Urgent", "True", regex=".*", tolerated="0s", priority=50),
    ]
)


@pytest.mark.parametrize(("waited", "first"), [(45, "a"), (29, "b"), (30, "a")])
def test_half_an_hour_of_waiting_weighs_as_much_as_a_priority(waited: float, first: str) -> None:
    nodes = [sick("a", "Slow", minutes=waited), sick("b", "Urgent", minutes=0), *well("c", "d", "e", "f")]
    case = repairing("order", *nodes, settings=replace(REFERENCE, repair=RANKED), removes=first)
    case.verify()


def test_nodes_alike_are_repaired_by_trouble_and_name() -> None:
    nodes = [sick("b", pods=2), sick("a", pods=2), sick("c", pods=1), *well("d", "e", "f", "g", "h", "i", "j", "k")]
    repairing("order", *nodes, removes="c").verify()
    repairing("order", *nodes[:2], *nodes[3:], removes="a").verify()


def test_nodes_that_are_not_ready_take_nothing_of_the_budget_for_repair() -> None:
    nodes = [node(name, pods=FULL, ready=name not in "ab") for name in "abcdefghij"]
    case = repairing("budget", *nodes, pools=[pool_of(budgets=["20%"])])
    context = context_of(case.objects, CATALOG, now=NOW, settings=REPAIRS, options=Options())
    left = {cause: context.allowance(case.pools[0], cause).remaining for cause in (Cause.DRIFTED, Cause.UNHEALTHY)}
    assert left == {Cause.DRIFTED: 0, Cause.UNHEALTHY: 2}


def test_a_node_that_is_rebooted_is_left_alone_and_takes_of_every_budget() -> None:
    rebooting = sick("a")
    assert rebooting.claim is not None
    status = structs.replace(
        rebooting.claim.status,
        conditions=(*rebooting.claim.status.conditions, fault("Rebooting", ago(minutes=1), reason="RebootIssued")),
    )
    nodes = [replace(rebooting, claim=structs.replace(rebooting.claim, status=status)), *well(*"bcdefghij")]
    case = repairing("rebooting", *nodes, pools=[pool_of(budgets=["20%"])], reasons={"a": "NodeRebooting"})
    case.verify()
    context = context_of(case.objects, CATALOG, now=NOW, settings=REPAIRS, options=Options())
    left = {cause: context.allowance(case.pools[0], cause).remaining for cause in Cause}
    assert left == dict.fromkeys(Cause, 1)


def test_explain_tells_every_rule_of_repair() -> None:
    case = repairing("explained", sick("a"), pools=[NO_BUDGET])
    context = context_of(case.objects, CATALOG, now=NOW, settings=REPAIRS, options=Options())
    explained = explain_node(DecisionPass(context), context.candidate(context.snapshot.nodes.rows["a"]))
    said = {outcome.rule: outcome.passed for outcome in explained.repairs}
    assert said["unhealthy"]
    assert said["most of its pool is healthy"]
    assert not said["a budget for Unhealthy is left"]
    assert explained.alone is None
    free = replace(case, pools=[QUIET])
    context = context_of(free.objects, CATALOG, now=NOW, settings=REPAIRS, options=Options())
    explained = explain_node(DecisionPass(context), context.candidate(context.snapshot.nodes.rows["a"]))
    assert explained.alone is not None
    assert explained.alone.cause is Cause.UNHEALTHY


@pytest.mark.parametrize(("up", "repaired"), [(True, ()), (False, ("a",))], ids=["up", "never came up"])
def test_a_node_that_a_pod_waits_for_is_repaired_only_if_it_never_came_up(up: bool, repaired: tuple[str, ...]) -> None:  # noqa: FBT001
    case = repairing("nominated", sick("a", initialized=up), pools=[NO_BUDGET if not up else QUIET])
    plain = context_of(case.objects, CATALOG, now=NOW, settings=REPAIRS, options=Options())
    waited_for = replace(plain.policies, nominated=frozenset({"a"}))
    decided = decide(plain.engine, waited_for, NOW)
    assert tuple(name for command in decided.commands for name in command.nodes) == repaired
    later = decide(plain.engine, plain.policies, NOW)
    assert [command.nodes for command in later.commands] == [("a",)]
