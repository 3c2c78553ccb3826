"""Savings are told when they are real: the nodes are gone, and what replaces them runs."""

from datetime import timedelta

import msgspec
import pytest
from tests.virtual.test_harm import MINUTE, SLOW, Heard
from tests.virtual.worlds import checked_cluster, virtual_cluster

from karpool.execution.tickets import COMMAND, Ticket
from karpool.virtual.changes import with_annotation


def test_savings_are_told_when_the_nodes_are_gone() -> None:
    cluster, _ = checked_cluster(SLOW)
    heard = Heard(cluster)
    cluster.run(40 * MINUTE)
    assert heard.completed == []
    before = cluster.recorder.samples[-1].price_per_hour
    cluster.run(58 * MINUTE)
    assert heard.completed
    for ticket in heard.completed:
        assert ticket.savings is not None
        assert ticket.created < cluster.now - timedelta(seconds=5)
    saved = sum(ticket.savings or 0.0 for ticket in heard.completed)
    assert before - cluster.recorder.samples[-1].price_per_hour == pytest.approx(saved)


@pytest.mark.parametrize("committed", [True, False])
def test_a_command_that_lost_a_node_at_the_last_moment_tells_no_savings(*, committed: bool) -> None:
    cluster = virtual_cluster("workloads: [{name: web, cpu: 1200m, memory: 1Gi, replicas: 9}]")
    heard = Heard(cluster)
    cluster.run(10 * MINUTE)
    one, other = sorted(cluster.store.claims, key=lambda claim: claim.name)[:2]
    nodes = (one.status.node_name, other.status.node_name)
    ticket = Ticket("c1", cluster.now, "Drift", "Drifted", nodes, committed=committed, savings=0.5)
    cluster.store.claims.put(with_annotation(one, COMMAND, msgspec.json.encode(ticket).decode()))
    cluster.store.claims.remove(one.name)
    told = [(each.nodes, each.savings) for each in heard.completed if each.id == "c1"]
    assert told == ([((one.status.node_name,), None)] if committed else [])
