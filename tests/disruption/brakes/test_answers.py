"""Where another controller launches and terminates NodeClaims, nothing begins that needs it while it is gone."""

from dataclasses import replace as replaced
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.disruption.scenarios import NOW, REFERENCE, NodeWithPods, Scenario, ago, node
from tests.factories import node_claim, node_pool

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.brakes.stops_of import stops_of
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodeClassRef, NodePool
from karpool.model.objects import Objects
from karpool.wire.objects import Condition

BESIDE = BrakeSettings(launched_by_others=True)
OTHER = NodeClassRef(group="other.sh", kind="OtherNodeClass", name="default")


def untouched(name: str = "new", *, written: dict[str, datetime] | None = None, **rest: Any) -> NodeClaim:
    """A claim on which nothing is written but these conditions."""
    claim = node_claim(name, **{"launched": False, "created": ago(seconds=20), **rest})
    conditions = tuple(
        Condition(type=kind, status="Unknown", last_transition_time=moment) for kind, moment in (written or {}).items()
    )
    return replace(claim, status=replace(claim.status, conditions=conditions))


def stops(
    *claims: NodeClaim,
    nodes: tuple[Node, ...] = (),
    settings: BrakeSettings = BESIDE,
    now: datetime = NOW,
    pools: tuple[NodePool, ...] = (),
) -> list[Stop]:
    held = stops_of(Objects(node_claims=claims, nodes=nodes, node_pools=pools or (node_pool(),)), settings, now)
    return [stop for stop in held if stop.code == "NobodyAnswers"]


def test_a_claim_that_nobody_answers_for_stops_all_but_empty_nodes_and_says_so() -> None:
    (stop,) = stops(untouched())
    assert (stop.object, stop.pool, stop.spares_empty, stop.halts) == ("NodeClaim new", "default", True, False)
    assert stop.message == (
        "was created at 11:59:40 UTC, and nobody answers for it: only empty nodes go until somebody does"
    )
    assert stops(untouched(), now=NOW - timedelta(seconds=1)) == []


@pytest.mark.parametrize(
    "answered",
    [
        untouched(written={"Launched": ago(seconds=19)}),
        replace(untouched(), status=replace(untouched().status, provider_id="kwok://new")),
        node_claim("new", created=ago(seconds=20)),
    ],
    ids=["a condition", "an instance", "launched"],
)
def test_whatever_somebody_writes_on_a_claim_is_an_answer(answered: NodeClaim) -> None:
    assert stops(answered) == []


def test_what_commands_write_themselves_is_no_answer() -> None:
    assert stops(untouched(written={"DisruptionReason": ago(seconds=10)}))


def test_a_claim_that_is_left_alone_by_somebody_who_works_stops_nothing() -> None:
    stuck = untouched(created=ago(minutes=5))
    before = untouched("a", written={"Launched": ago(minutes=4, seconds=50)})
    after = untouched("b", written={"Launched": ago(minutes=4, seconds=30)})
    assert stops(stuck, before)
    assert stops(stuck, before, after) == []


def deleted(name: str = "gone", **rest: Any) -> NodeClaim:
    return untouched(name, **{"deleted": ago(seconds=20), "node_name": name, "created": ago(hours=1), **rest})


def test_a_deleted_claim_that_nobody_terminates_stops_everything() -> None:
    here = node("gone").node
    assert here is not None
    (stop,) = stops(deleted(), nodes=(here,))
    assert (stop.object, stop.spares_empty) == ("NodeClaim gone", False)
    assert stop.message == ("was deleted at 11:59:40 UTC, and nobody terminates it: nothing goes until somebody does")
    leaves = replace(here, metadata=replace(here.metadata, deletion_timestamp=ago(seconds=5)))
    assert stops(deleted(), nodes=(leaves,)) == [], "a long drain is an answer"
    assert stops(deleted(written={"Drained": ago(seconds=20)}), nodes=(here,)) == []
    assert stops(deleted()) == [], "its node is gone"
    assert stops(deleted(node_name="")), "it had no node"
    own = replace(deleted(), metadata=replace(deleted().metadata, finalizers=("example.com/other",)))
    assert stops(own, nodes=(here,)) == [], "it is not kept for that controller"


def test_only_pools_with_the_same_kind_of_node_class_stop() -> None:
    pools = (node_pool("default"), node_pool("other", node_class=OTHER))
    assert [stop.pool for stop in stops(untouched(), pools=pools)] == ["default"]


def test_who_launches_itself_or_does_not_care_is_not_stopped() -> None:
    assert stops(untouched(), settings=BrakeSettings()) == []
    assert stops(untouched(), settings=BrakeSettings(launched_by_others=True, answered_within=timedelta(0))) == []


@pytest.mark.parametrize(("claim", "goes"), [(untouched(), [("empty",)]), (deleted(node_name=""), [])])
def test_a_plan_launches_nothing_that_nobody_would_answer_for(claim: NodeClaim, goes: list[tuple[str, ...]]) -> None:
    nodes = [node("empty"), node("used", "huge", pods=1)]
    free = Scenario("somebody answers", nodes=nodes).plan(most_steps=None)
    assert {name for step in free.steps for name in step.command.nodes} == {"empty", "used"}
    settings = replaced(REFERENCE, brakes=BESIDE)
    held = Scenario("nobody answers", nodes=[*nodes, NodeWithPods(None, claim, ())], settings=settings)
    assert [step.command.nodes for step in held.plan(most_steps=None).steps] == goes
