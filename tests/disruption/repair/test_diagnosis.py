"""What policies say of a node: who matches, from when on, and what they decide together."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.disruption.repair.policies import FALLBACK, POLICIES, fault, policy
from tests.disruption.scenarios import NOW, ago
from tests.factories import claim_for, node

from karpool.cluster.nodes import StateNode
from karpool.disruption.repair.diagnosis import Diagnosis, diagnose, findings
from karpool.disruption.repair.history import with_reboot
from karpool.disruption.repair.policies import RepairAction, RepairPolicies, RepairPolicy
from karpool.model.labels import REBOOTS
from karpool.model.nodepool import REBOOTING
from karpool.wire.objects import Condition

MINUTE = timedelta(minutes=1)


def state_of(*conditions: Condition, claim: dict[str, Any] | None = None, **rest: Any) -> StateNode:
    made = node("a", conditions=conditions, **rest)
    return StateNode(made, claim_for(made, **(claim or {})))


def with_condition(state: StateNode, entry: Condition) -> StateNode:
    assert state.claim is not None
    status = replace(state.claim.status, conditions=(*state.claim.status.conditions, entry))
    return StateNode(state.node, replace(state.claim, status=status))


def diagnosed(policies: Sequence[RepairPolicy], *conditions: Condition, **rest: Any) -> Diagnosis | None:
    return diagnose(RepairPolicies.checked([FALLBACK, *policies]), state_of(*conditions, **rest), NOW)


def test_a_healthy_node_needs_nothing() -> None:
    assert diagnose(POLICIES, state_of(fault("Other", ago(days=1))), NOW) is None


@pytest.mark.parametrize(("reason", "matched"), [("DiskDead", "30m"), ("SomeDiskDeadHere", "30m"), ("Fan", "10m")])
def test_an_expression_is_looked_for_anywhere_in_the_reason_and_else_the_fallback_serves(
    reason: str, matched: str
) -> None:
    listed = RepairPolicies.checked([FALLBACK, policy("Storage", "False", regex="DiskDead", tolerated="30m")])
    found = findings(listed, state_of(fault("Storage", ago(hours=1), status="False", reason=reason)))
    assert [str(entry.policy.toleration_duration) for entry in found] == [matched]


def test_a_specific_policy_keeps_the_fallback_out_while_it_waits_itself() -> None:
    slow = policy("Ready", "Unknown", regex="Lost", tolerated="30m")
    assert diagnosed([slow], fault("Ready", ago(minutes=15), status="Unknown", reason="Lost")) is None
    assert diagnosed([slow], fault("Ready", ago(minutes=15), status="Unknown", reason="Other")) is not None


def test_the_wait_counts_from_the_creation_of_the_node_if_the_condition_is_older() -> None:
    old = fault("Ready", ago(hours=5), status="Unknown")
    listed = [policy("Ready", "Unknown", regex=".*", tolerated="10m")]
    assert diagnosed(listed, old, created=ago(minutes=9)) is None
    assert diagnosed(listed, old, created=ago(minutes=10)) is not None


def test_the_wait_begins_again_when_a_reboot_has_ended() -> None:
    state = state_of(fault("Broken", ago(hours=1)))
    ended = Condition(type=REBOOTING, status="False", reason="RebootSucceeded", last_transition_time=ago(seconds=20))
    assert diagnose(POLICIES, state, NOW) is not None
    assert diagnose(POLICIES, with_condition(state, ended), NOW) is None


def test_a_condition_of_which_nobody_knows_since_when_is_tolerated() -> None:
    made = node("a", conditions=[fault("Broken", None)])
    unknown = replace(made, metadata=replace(made.metadata, creation_timestamp=None))
    assert diagnose(POLICIES, StateNode(unknown, claim_for(made)), NOW) is None


@pytest.mark.parametrize(
    ("policies", "action", "condition"),
    [
        (
            [policy("A", "True", regex=".", action="RebootNode", priority=90), policy("B", "True", regex=".")],
            "Rep",
            "B",
        ),
        ([policy("A", "True", regex=".", priority=1), policy("B", "True", regex=".", priority=2)], "Rep", "B"),
        ([policy("A", "True", regex=".", tolerated="1m"), policy("B", "True", regex=".", tolerated="0s")], "Rep", "B"),
        ([policy("B", "True", regex="."), policy("A", "True", regex=".")], "Rep", "A"),
        ([policy("A", "True", regex=".", action="RebootNode")], "Reb", "A"),
    ],
    ids=["replacing beats rebooting", "higher priority", "earlier", "smaller name", "reboot alone"],
)
def test_eligible_policies_come_to_one_decision(policies: list[RepairPolicy], action: str, condition: str) -> None:
    faults = [fault(entry.condition_type, ago(hours=1), reason="x") for entry in policies]
    decided = diagnosed(policies, *faults)
    assert decided is not None
    assert decided.action.startswith(action)
    assert decided.condition.type == condition


def test_the_shortest_bound_holds_also_if_it_is_nothing() -> None:
    listed = [
        policy("A", "True", regex=".", grace="10m"),
        policy("B", "True", regex=".", grace="0s"),
        policy("C", "True", regex="."),
    ]
    faults = [fault(kind, ago(hours=1), reason="x") for kind in "ABC"]
    assert (decided := diagnosed(listed, *faults)) is not None
    assert decided.drain_bound == timedelta(0)
    assert (decided := diagnosed(listed, faults[2])) is not None
    assert decided.drain_bound is None


def test_half_an_hour_of_waiting_counts_as_much_as_the_next_priority() -> None:
    listed = [
        policy("A", "True", regex=".", priority=10),
        policy("A2", "True", regex=".", priority=10),
        policy("B", "True", regex=".", priority=50),
    ]
    ranked = [replace(FALLBACK, priority=10), *listed]
    policies = RepairPolicies.checked(ranked)
    waiting = diagnose(policies, state_of(fault("A", ago(minutes=55), reason="x")), NOW)
    urgent = diagnose(policies, state_of(fault("B", ago(minutes=10), reason="x")), NOW)
    assert waiting is not None
    assert urgent is not None
    assert (waiting.score, urgent.score) == (1.5, 1.0)


def test_two_reboots_in_a_day_are_enough() -> None:
    state = state_of(fault("Hanging", ago(hours=1)))
    assert state.claim is not None
    once = with_reboot(state.claim, ago(hours=5))
    twice = with_reboot(
        replace(state.claim, metadata=replace(state.claim.metadata, annotations={REBOOTS: once})), ago(hours=1)
    )

    def action(history: str) -> tuple[RepairAction, bool]:
        again = diagnose(
            POLICIES, state_of(fault("Hanging", ago(hours=1)), claim={"annotations": {REBOOTS: history}}), NOW
        )
        assert again is not None
        return again.action, again.escalated

    assert action(once) == (RepairAction.REBOOT, False)
    assert action(twice) == (RepairAction.REPLACE, True)
    assert action("no time") == (RepairAction.REPLACE, True)
    assert action(f"{ago(hours=25).isoformat()},{ago(hours=1).isoformat()}") == (RepairAction.REBOOT, False)
