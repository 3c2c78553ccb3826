"""What holds for every decision on any cluster."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from tests.examples import examples
from tests.strategies import Cluster, clusters

from karpool.compaction.config import Config, PoolConfig
from karpool.compaction.decide import CompactionDecision, decide
from karpool.compaction.explain import explain
from karpool.compaction.pods import needs_new_node
from karpool.compaction.settings import CompactionSettings
from karpool.model.objects import Objects
from karpool.model.requests import effective_requests
from karpool.wire.quantity import ZERO, Quantity

LATER: Final = datetime(2030, 1, 1, tzinfo=UTC)
AT_ONCE: Final = CompactionSettings(needed_marked_time=timedelta(0))
OPEN: Final = PoolConfig(enabled=True, cpu_limit=1.0)


def decided(objects: Objects) -> CompactionDecision:
    pools = {pool.name: OPEN for pool in objects.node_pools}
    return decide(objects, Config(node_pools=pools), LATER, AT_ONCE)


def after(objects: Objects, decision: CompactionDecision) -> dict[str, dict[str, Quantity]]:
    """What is requested of each node once every pod has moved."""
    moves = {place.pod: place.target for chosen in decision.chosen for place in chosen.placements}
    requested: dict[str, dict[str, Quantity]] = {}
    for pod in objects.pods:
        home = moves.get(pod.key) or pod.spec.node_name
        if not pod.terminal and home:
            taken = requested.setdefault(home, {})
            for name, amount in {**effective_requests(pod), "pods": Quantity(10**9)}.items():
                taken[name] = taken.get(name, ZERO) + amount
    return requested


@pytest.mark.slow
@examples(60)
@given(clusters(in_motion=True))
def test_nobody_is_sent_to_a_node_that_leaves_or_has_no_room(cluster: Cluster) -> None:
    objects = cluster.objects
    decision = decided(objects)
    going = {chosen.node for chosen in decision.chosen}
    nodes = {node.name: node for node in objects.nodes}
    targets = {place.target for chosen in decision.chosen for place in chosen.placements}
    assert not targets & going
    assert None not in targets
    requested = after(objects, decision)
    for name in filter(None, targets):
        node = nodes[name]
        assert not node.spec.unschedulable
        assert node.metadata.deletion_timestamp is None
        room = node.status.allocatable
        assert all(amount <= room.get(key, ZERO) for key, amount in requested[name].items())


@pytest.mark.slow
@examples(60)
@given(clusters(in_motion=True))
def test_every_pod_of_a_chosen_node_has_a_place_and_every_other_node_a_reason(cluster: Cluster) -> None:
    decision = decided(cluster.objects)
    going = {chosen.node for chosen in decision.chosen}
    for chosen in decision.chosen:
        on_it = {pod.key for pod in cluster.objects.pods if pod.spec.node_name == chosen.node and needs_new_node(pod)}
        assert {place.pod for place in chosen.placements} == on_it
    assert all(bool(verdict.reasons) != (verdict.view.name in going) for verdict in decision.nodes)
    assert len({chosen.pool for chosen in decision.chosen}) == len(decision.chosen)
    assert decided(cluster.objects) == decision


@pytest.mark.slow
@examples(25)
@given(clusters(in_motion=True))
def test_what_is_told_of_a_node_is_what_was_decided(cluster: Cluster) -> None:
    objects = cluster.objects
    decision = decided(objects)
    config = Config(node_pools={pool.name: OPEN for pool in objects.node_pools})
    places = {chosen.node: {place.pod: place.target for place in chosen.placements} for chosen in decision.chosen}
    for verdict in decision.nodes:
        explanation = explain(objects, config, LATER, verdict.view.name, AT_ONCE)
        assert set(verdict.reasons) <= set(explanation.reasons)
        assert explanation.chosen == (not explanation.reasons) == (verdict.view.name in places)
        moving = {outcome.pod.key: outcome for outcome in explanation.pods if needs_new_node(outcome.pod)}
        if explanation.chosen:
            assert {key: outcome.target for key, outcome in moving.items()} == places[verdict.view.name]
        assert all((outcome.target is None) == (outcome.nowhere is not None) for outcome in moving.values())
