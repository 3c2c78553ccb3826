"""Nothing is disrupted while too many nodes of the cluster, or of a zone, are not ready."""

from datetime import timedelta

import pytest
from tests.disruption.scenarios import NOW, Scenario, ago
from tests.disruption.scenarios import node as with_pods
from tests.factories import node

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stops_of import stops_of
from karpool.model.node import Node
from karpool.model.objects import Objects


def nodes(ready: int, unready: int, zone: str | None = None) -> list[Node]:
    return [
        *(node(f"up-{zone}-{number}", zone=zone) for number in range(ready)),
        *(node(f"down-{zone}-{number}", zone=zone, ready=False) for number in range(unready)),
    ]


def told(listed: list[Node], settings: BrakeSettings | None = None) -> list[str]:
    stops = stops_of(Objects(nodes=tuple(listed)), settings or BrakeSettings(), NOW)
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


def test_a_zone_with_too_few_nodes_is_not_looked_at_alone() -> None:
    assert told([*nodes(9, 0, "a"), *nodes(0, 2, "b")]) == []
    assert told([*nodes(9, 0, "a"), *nodes(0, 2, "b")], BrakeSettings(least_nodes_of_zone=2)) != []


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
