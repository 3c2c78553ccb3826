"""What NodePools should say of themselves."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import NODE_CLASS, claim_for, node, node_claim, node_pool
from tests.tables import row, table

from karpool.cluster.nodes import StateNode
from karpool.cluster.pairing import join
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodePool, PoolStatus
from karpool.operator.pool_status import DesiredPoolStatus, pool_status, status_patch, total_resources
from karpool.operator.registration_health import RegistrationHealth
from karpool.wire.objects import Condition
from karpool.wire.problems import Flaw
from karpool.wire.quantity import parse_quantity

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
THEN = "2026-01-01T00:00:00Z"
FLAW = Flaw("spec.weight", "WeightRange", "0 is out of range")


# -- what a status should say ------------------------------------------------------------------------------------


def status(pool: NodePool | None = None, **known: Any) -> DesiredPoolStatus:
    judged = {"resources": total_resources(()), "node_class_ready": True, "registers": None, "flaws": ()}
    return pool_status(pool or node_pool(), **{**judged, **known})


def statuses(desired: DesiredPoolStatus) -> dict[str, str]:
    return {entry.type: entry.status for entry in desired.conditions}


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, {"ValidationSucceeded": "True", "NodeClassReady": "True", "Ready": "True"}),
        ({"flaws": [FLAW]}, {"ValidationSucceeded": "False", "NodeClassReady": "True", "Ready": "False"}),
        ({"node_class_ready": False}, {"ValidationSucceeded": "True", "NodeClassReady": "False", "Ready": "False"}),
        ({"node_class_ready": None}, {"ValidationSucceeded": "True", "Ready": "True"}),
        (
            {"registers": False},
            {
                "ValidationSucceeded": "True",
                "NodeClassReady": "True",
                "Ready": "True",
                "NodeRegistrationHealthy": "False",
            },
        ),
    ],
)
def test_a_pool_is_ready_if_it_is_valid_and_has_a_node_class(known: dict[str, Any], expected: dict[str, str]) -> None:
    assert statuses(status(**known)) == expected


@pytest.mark.parametrize("node_class", ["False", "Unknown"])
def test_what_another_says_of_the_node_class_counts_where_nobody_here_can_judge(node_class: str) -> None:
    pool = node_pool()
    pool = replace(pool, status=PoolStatus(conditions=(Condition("NodeClassReady", node_class, "AmiGone", "no AMI"),)))
    desired = status(pool, node_class_ready=None)
    assert statuses(desired) == {"ValidationSucceeded": "True", "Ready": node_class}
    assert desired.conditions[-1].message == "no AMI"


def test_conditions_say_what_is_wrong() -> None:
    messages = {entry.type: entry.message for entry in status(flaws=[FLAW, FLAW], node_class_ready=False).conditions}
    assert messages["ValidationSucceeded"] == "spec.weight: 0 is out of range; spec.weight: 0 is out of range"
    assert messages["NodeClassReady"] == f"KWOKNodeClass {NODE_CLASS.name} is not there, or is being deleted"
    assert messages["Ready"] == messages["ValidationSucceeded"]


A = node("a", cpu="3900m", capacity={"cpu": "4"})
STARTING = node("s", cpu="0", memory=None, pods=None, registered=False, initialized=False, labels={"x": "y"})


@table(
    row("none", nodes=[], claims=[], cpu="0", count=0),
    row("node", nodes=[A], claims=[claim_for(A)], cpu="4", count=1),
    row("unclaimed", nodes=[A], claims=[], cpu="4", count=1),
    row("launched", nodes=[], claims=[node_claim("c", capacity={"cpu": "2"})], cpu="2", count=1),
    row("unlaunched", nodes=[], claims=[node_claim("c", capacity={"cpu": "2"}, launched=False)], cpu="0", count=0),
    row("starting", nodes=[STARTING], claims=[node_claim("s", capacity={"cpu": "8"})], cpu="8", count=1),
    row("leaving", nodes=[A], claims=[claim_for(A, deleted=NOW)], cpu="0", count=0),
    row("two", nodes=[A, node("b")], claims=[claim_for(A), claim_for(node("b"))], cpu="8", count=2),
    row("other pool", nodes=[A, node("b", pool="other")], claims=[], cpu="4", count=1),
)
def test_resources_are_the_capacity_of_machines_that_stay(
    nodes: list[Node], claims: list[NodeClaim], cpu: str, count: int
) -> None:
    total = total_resources(machines(nodes, claims))
    assert (str(total["cpu"]), total["nodes"].units) == (cpu, count)
    assert {"memory", "pods", "ephemeral-storage"} <= total.keys()


def machines(nodes: list[Node], claims: list[NodeClaim], pool: str = "default") -> list[StateNode]:
    return [state for state in join(nodes, claims) if state.pool == pool]


def pool_with(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "generation": 3}, "status": fields}


def applied(desired: DesiredPoolStatus, before: dict[str, Any]) -> dict[str, Any]:
    """The status after the patch."""
    merged = {**before["status"], **status_patch(before, desired, NOW).get("status", {})}
    return {**before, "status": merged}


def test_a_status_that_is_written_needs_no_patch() -> None:
    desired = status(resources=total_resources(machines([A], [])))
    assert status_patch(applied(desired, pool_with()), desired, NOW + timedelta(hours=1)) == {}


def test_the_same_amount_in_other_words_needs_no_patch() -> None:
    desired = status(resources={"cpu": parse_quantity("8"), "nodes": parse_quantity("1")})
    before = applied(desired, pool_with())
    before["status"]["resources"] = {"cpu": "8000m", "nodes": 1}
    assert status_patch(before, desired, NOW) == {}


def test_resources_that_no_machine_has_any_more_are_taken_out() -> None:
    before = pool_with(resources={"example.com/gpu": "8", "cpu": "?"})
    patch = status_patch(before, status(resources={"cpu": parse_quantity("4"), "nodes": parse_quantity("1")}), NOW)
    assert patch["status"]["resources"] == {"example.com/gpu": None, "cpu": "4", "nodes": "1"}
    assert patch["status"]["nodes"] == 1


def test_conditions_of_others_and_unknown_fields_survive_a_patch() -> None:
    theirs = {"type": "Theirs", "status": "True", "colour": "red"}
    ours = {"type": "Ready", "status": "True", "lastTransitionTime": THEN, "since": "ever"}
    before = pool_with(conditions=[theirs, ours])
    after = status_patch(before, status(), NOW)["status"]["conditions"]
    assert after[0] == theirs
    assert after[1]["since"] == "ever"
    assert (after[1]["reason"], after[1]["lastTransitionTime"]) == ("Ready", THEN)
    assert after[1]["observedGeneration"] == 3


@pytest.mark.parametrize(
    ("observed", "expected"),
    [(None, "False"), (3, "False"), (2, "Unknown")],
    ids=["another's", "this generation", "an earlier generation"],
)
def test_how_nodes_register_is_forgotten_when_the_pool_changes(observed: int | None, expected: str) -> None:
    entry = {"type": "NodeRegistrationHealthy", "status": "False", "lastTransitionTime": THEN}
    before = pool_with(conditions=[entry if observed is None else {**entry, "observedGeneration": observed}])
    after = {entry["type"]: entry["status"] for entry in applied(status(), before)["status"]["conditions"]}
    assert after["NodeRegistrationHealthy"] == expected


# -- how nodes register ------------------------------------------------------------------------------------------

MINUTE = timedelta(minutes=1)


def outcome(name: str, ending: str) -> NodeClaim | None:
    """A claim as it is after its fate."""
    if ending == "gone":
        return None
    deleted = {"late": NOW, "early": NOW - 18 * MINUTE}.get(ending)
    return node_claim(name, registered=ending == "good", created=NOW - 20 * MINUTE, deleted=deleted)


@pytest.mark.parametrize(
    ("endings", "healthy"),
    [
        ([], None),
        (["good"], True),
        (["late"], None),
        (["late", "gone"], False),
        (["early", "early", "early"], None),
        (["late", "late", "good", "good"], False),
        (["late", "good", "good", "good"], True),
        (["late", "late", "good", "good", "good"], True),
        (["waits"], None),
    ],
)
def test_two_failures_among_four_are_too_many(endings: list[str], healthy: object) -> None:
    registrations, pools = RegistrationHealth(), [node_pool()]
    registrations.observe(pools, [node_claim("old", registered=True)], NOW)
    for number, ending in enumerate(endings):
        name = f"c{number}"
        registrations.observe(pools, [node_claim(name, created=NOW - 20 * MINUTE)], NOW)
        after = outcome(name, ending)
        registrations.observe(pools, [] if after is None else [after], NOW)
    assert registrations.healthy("default") is healthy


def test_a_claim_that_was_deleted_early_and_goes_late_is_no_failure() -> None:
    registrations, pools = RegistrationHealth(), [node_pool()]
    registrations.observe(pools, [], NOW)
    for name in ("a", "b"):
        registrations.observe(pools, [node_claim(name, created=NOW - MINUTE, deleted=NOW)], NOW)
        registrations.observe(pools, [], NOW + timedelta(hours=1))
    assert registrations.healthy("default") is None


def test_outcomes_begin_anew_with_a_changed_pool() -> None:
    registrations, pool = RegistrationHealth(), node_pool()
    registrations.observe([pool], [], NOW)
    registrations.observe([pool], [node_claim("a", registered=True)], NOW)
    assert registrations.healthy("default") is True
    registrations.observe([replace(pool, metadata=replace(pool.metadata, generation=2))], [], NOW)
    assert registrations.healthy("default") is None
