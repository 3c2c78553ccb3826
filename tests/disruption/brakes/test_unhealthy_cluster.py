"""Nothing is disrupted while too many nodes of the cluster, or of a zone, are not ready."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from tests.disruption.scenarios import NOW, Scenario, ago
from tests.disruption.scenarios import node as with_pods
from tests.factories import node, node_claim
from tests.factories.unreadable import unreadable

from karpool.disruption.brakes.health import unhealthy
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stops_of import stops_of
from karpool.model.labels import ZONE
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.wire.objects import Condition


def nodes(ready: int, unready: int, zone: str | None = None) -> list[Node]:
    return [
        *(node(f"up-{zone}-{number}", zone=zone) for number in range(ready)),
        *(node(f"down-{zone}-{number}", zone=zone, ready=False) for number in range(unready)),
    ]


def told(
    listed: list[Node], settings: BrakeSettings | None = None, claims: Sequence[NodeClaim] = (), now: datetime = NOW
) -> list[str]:
    objects = Objects(nodes=tuple(listed), node_claims=tuple(claims))
    stops = stops_of(objects, settings or BrakeSettings(), now)
    assert all((stop.code, stop.pool) == ("ClusterUnhealthy", None) for stop in stops)
    return [stop.message for stop in stops]


@pytest.mark.parametrize(
    ("ready", "unready", "stops"),
    [(0, 0, False), (11, 9, False), (10, 9, True), (0, 3, False), (0, 4, True), (4, 4, True), (5, 4, False)],
)
def test_over_45_percent_and_more_than_3_nodes_stop_everything(*, ready: int, unready: int, stops: bool) -> None:
    assert bool(told(nodes(ready, unready))) is stops


def test_the_reason_has_the_figures() -> None:
    assert told(nodes(4, 4)) == ["4 of 8 nodes are not ready, more than 45% and more than 3"]
    assert told([*nodes(9, 0, "a"), *nodes(1, 2, "b")]) == [
        "zone b is losing its nodes: 2 of 3 are not ready, more than 45%"
    ]


@pytest.mark.parametrize(
    ("ready", "unready", "stops"),
    [(1, 1, False), (0, 1, False), (0, 2, True), (1, 2, True), (2, 2, True), (3, 2, False)],
)
def test_a_zone_is_lost_when_over_45_percent_and_at_least_2_of_its_nodes_are_down(
    *, ready: int, unready: int, stops: bool
) -> None:
    for least in (1, 2):
        listed = [*nodes(9, 0, "a"), *nodes(ready, unready, "b")]
        assert bool(told(listed, BrakeSettings(least_nodes_of_zone=least))) is stops


def test_a_zone_with_too_few_nodes_is_not_looked_at_alone() -> None:
    listed = [*nodes(9, 0, "a"), *nodes(0, 2, "b")]
    assert told(listed) == ["zone b is losing its nodes: 2 of 2 are not ready, more than 45%"]
    assert told(listed, BrakeSettings(least_nodes_of_zone=3)) == []


def test_nodes_that_are_gone_though_nobody_deletes_their_claims_count_in_their_zone() -> None:
    def claim(number: int, **rest: Any) -> NodeClaim:
        return node_claim(f"c{number}", node_name=f"gone-{number}", registered=True, labels={ZONE: "b"}, **rest)

    left = [*nodes(9, 0, "a"), *nodes(2, 0, "b")]
    assert told(left, claims=[claim(1), claim(2)]) == [
        "zone b is losing its nodes: 2 of 4 are not ready (2 gone without being asked to), more than 45%"
    ]
    assert told(left, claims=[claim(1, deleted=NOW), claim(2)]) == []
    assert told(left, claims=[node_claim(f"c{n}", registered=False, labels={ZONE: "b"}) for n in range(9)]) == []
    assert told([*left, node("gone-1", zone="b")], claims=[claim(1), claim(2)]) == []


def test_nodes_without_a_ready_condition_and_nodes_that_cannot_be_read_count_as_not_ready() -> None:
    silent = [replace(each, status=replace(each.status, conditions=())) for each in nodes(4, 0)]
    assert told([*nodes(4, 0, "a"), *silent]) == ["4 of 8 nodes are not ready, more than 45% and more than 3"]
    hidden = [unreadable(each) for each in nodes(4, 0)]
    assert told([*nodes(4, 0, "a"), *hidden]) == [
        "4 of 8 nodes are not ready (4 cannot be read), more than 45% and more than 3"
    ]


def test_a_node_that_was_down_counts_until_it_has_been_ready_for_five_minutes() -> None:
    def ready_since(each: Node, since: datetime) -> Node:
        up = Condition(type="Ready", status="True", last_transition_time=since)
        return replace(each, status=replace(each.status, conditions=(up,)))

    back = [ready_since(each, NOW) for each in nodes(4, 0, "b")]
    listed, minute = [*nodes(4, 0, "a"), *back], timedelta(minutes=1)
    assert told(listed, now=NOW + 4 * minute) == [
        "4 of 8 nodes are not ready (4 ready for less than 5m), more than 45% and more than 3"
    ]
    assert told(listed, now=NOW + 5 * minute) == []
    same = Objects(nodes=tuple(listed))
    asked_in_any_order = [bool(list(unhealthy(same, BrakeSettings(), NOW + m * minute))) for m in (4, 5, 6, 4, 5, 4)]
    assert asked_in_any_order == [True, False, False, True, False, True]
    new = [ready_since(node(f"new-{n}", zone="b", created=NOW - minute), NOW) for n in range(9)]
    assert told([*nodes(4, 0, "a"), *new]) == []


def test_a_node_that_goes_because_its_instance_is_gone_counts_and_one_that_is_removed_on_purpose_does_not() -> None:
    def leaving(*, asked: bool) -> tuple[list[Node], list[NodeClaim]]:
        went = [node(f"l{n}", zone="b", ready=False, deleted=NOW) for n in range(3)]
        claims = [node_claim(each.name, node_name=each.name, registered=True, deleted=NOW) for each in went]
        why = (Condition(type="DisruptionReason", status="True"),) if asked else ()
        return went, [replace(c, status=replace(c.status, conditions=(*c.status.conditions, *why))) for c in claims]

    went, claims = leaving(asked=True)
    assert told([*nodes(9, 0, "a"), *went], claims=claims) == []
    went, claims = leaving(asked=False)
    assert told([*nodes(9, 0, "a"), *went], claims=claims) == [
        "zone b is losing its nodes: 3 of 3 are not ready, more than 45%"
    ]
    assert told([*nodes(9, 0, "a"), *went]) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_node_that_was_well_is_asked_again_when_it_changes_and_only_then_may_the_answer_differ(seed: int) -> None:
    chance, listed, now = Random(seed), nodes(9, 0, "a"), NOW
    claims = [node_claim(each.name, node_name=each.name, registered=True) for each in listed]
    answers = list[bool]()
    for _ in range(60):
        at = chance.randrange(len(listed))
        deleted = NOW if chance.random() < 0.3 else None
        listed[at] = node(listed[at].name, zone="a", ready=chance.random() < 0.6, deleted=deleted, created=now)
        if chance.random() < 0.3:
            claims[at] = replace(claims[at], metadata=replace(claims[at].metadata, deletion_timestamp=NOW))
        now += timedelta(minutes=chance.choice((-2, 1, 4)))
        known = told(listed, claims=claims, now=now)
        assert known == told([replace(each) for each in listed], claims=claims, now=now)
        answers.append(bool(known))
    assert len(set(answers)) == 2, "some of the clusters are healthy"


def test_limits_are_settings() -> None:
    assert told(nodes(4, 4), BrakeSettings(unready_nodes_allowed=4)) == []
    assert told(nodes(4, 4), BrakeSettings(most_unready_percent=50)) == []
    assert told(nodes(9, 1), BrakeSettings(most_unready_percent=5, unready_nodes_allowed=0)) != []


def test_nodes_that_are_leaving_or_have_not_been_up_yet_do_not_count() -> None:
    leaving = [node(f"l{number}", zone=None, ready=False, deleted=NOW) for number in range(9)]
    young = NOW - timedelta(minutes=14)
    new = [node(f"n{number}", zone=None, ready=False, initialized=False, created=young) for number in range(9)]
    stuck = [node(f"s{number}", zone=None, ready=False, initialized=False, created=ago(hours=1)) for number in range(9)]
    lost = [node(f"x{number}", zone=None, ready=False, created=young) for number in range(9)]
    assert told([*nodes(4, 0), *leaving]) == []
    assert told([*nodes(4, 0), *new]) == []
    assert told([*nodes(4, 0), *stuck]) != []
    assert told([*nodes(4, 0), *lost]) != []


def test_an_empty_node_stays_while_the_cluster_is_unhealthy() -> None:
    plan = Scenario("unhealthy", nodes=[with_pods("a"), *(with_pods(f"d{n}", ready=False) for n in range(4))]).plan()
    assert plan.steps == ()
    assert {fate.candidate.name: fate.reasons[0].code for fate in plan.fates}["a"] == "ClusterUnhealthy"
