"""Legacy repair: who is deleted at once, and what stops it."""

from typing import Any

import pytest
from tests.disruption.repair.policies import FALLBACK, POLICIES, fault, policy
from tests.disruption.scenarios import NOW, NodeWithPods, ago, cluster, node, pool_of

from karpool.disruption.brakes.stop import NO_STOPS, Stop, Stops
from karpool.disruption.repair.legacy import legacy_repairs
from karpool.disruption.repair.policies import RepairPolicies
from karpool.model.labels import DO_NOT_REPAIR

PAUSED = Stops([Stop("Paused", "is paused", "NodePool default", "default")])


def sick(name: str, kind: str = "Broken", **rest: Any) -> NodeWithPods:
    return node(name, conditions=[fault(kind, ago(minutes=5), reason="x")], **rest)


def repaired(*nodes: NodeWithPods, policies: RepairPolicies = POLICIES, stops: Stops = NO_STOPS) -> list[str]:
    objects = cluster(nodes, pools=[pool_of(budgets=["0"])])
    return [repair.node.name for repair in legacy_repairs(policies, objects, stops, NOW)]


def test_a_broken_node_goes_whatever_budgets_and_vetoes_say() -> None:
    assert repaired(sick("a", annotations={DO_NOT_REPAIR: "true"}), node("b")) == ["a"]


@pytest.mark.parametrize(
    "nodes",
    [
        [sick("a", "Hanging")],
        [sick("a"), sick("b"), node("c"), node("d"), node("e")],
        [node("a", conditions=[fault("Broken", ago(seconds=20))])],
        [sick("a", claim={"deleted": ago(minutes=1)})],
        [sick("a", managed=False)],
    ],
    ids=["a policy that reboots", "too many", "tolerated", "deleted already", "not managed"],
)
def test_a_node_stays(nodes: list[NodeWithPods]) -> None:
    assert repaired(*nodes) == []


def test_a_brake_stops_it() -> None:
    assert repaired(sick("a"), stops=PAUSED) == []


def test_the_fallback_serves_its_own_condition_only() -> None:
    listed = RepairPolicies.checked([FALLBACK, policy("Storage", "False", regex="DiskDead")])
    other = node("a", conditions=[fault("Storage", ago(hours=1), status="False", reason="Slow")])
    assert repaired(other, policies=listed) == []


def test_a_claim_without_a_pool_is_measured_by_the_whole_cluster() -> None:
    alone = sick("a", pool="")
    assert repaired(alone, *(node(name) for name in "bcde")) == ["a"]
    # Of the pool's own nodes, one in four may be unhealthy.
    assert repaired(alone, sick("b"), node("c"), node("d"), node("e")) == ["b"]
