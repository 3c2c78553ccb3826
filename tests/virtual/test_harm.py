"""A pool whose moved pods do not run stops by itself, over restarts, and goes on when they run again."""

from dataclasses import replace

import pytest
from tests.virtual.worlds import HOUR, checked_cluster

from karpool.controller.observer import DecisionObserver
from karpool.disruption.brakes.harm import harm_of
from karpool.disruption.brakes.ledger import ledger_of
from karpool.disruption.decide import Decision
from karpool.execution.tickets import Ticket
from karpool.model.labels import DISRUPTIONS
from karpool.virtual.changes import with_annotation
from karpool.virtual.cluster import VirtualCluster

MINUTE = 60.0
# Pods take 25 minutes to start, so that those that move are not well for long.
SLOW = (
    "workloads: [{name: web, cpu: 900m, memory: 1Gi, startTime: 25m, replicas: {steps: ["
    "{after: 0s, value: 24}, {after: 40m, value: 8}]}}]"
)

# A node with several pods of a budget takes half an hour to drain.
ONE_BY_ONE = (
    "workloads: [{name: web, cpu: 900m, memory: 1Gi, startTime: 8m, protection: {maxUnavailable: 1}, replicas: "
    "{steps: [{after: 0s, value: 24}, {after: 40m, value: 8}]}}]"
)


class Heard(DecisionObserver):
    """Which commands came to their end, and what brakes held last."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.completed: list[Ticket] = []
        self.stops: list[tuple[str, str | None, str]] = []
        cluster.controller.observers.append(self)

    def command_completed(self, ticket: Ticket) -> None:
        self.completed.append(ticket)

    def pass_finished(self, decision: Decision) -> None:
        self.stops = [(str(stop.code), stop.pool, stop.message) for stop in decision.stops]


def until_harm(cluster: VirtualCluster) -> None:
    pool = cluster.store.pools.get("general")
    while pool is not None and harm_of(pool) is None:
        assert cluster.queue.time < 3 * HOUR
        cluster.run(cluster.queue.time + 30)
        pool = cluster.store.pools.get("general")
    cluster.run(cluster.queue.time + 2 * MINUTE)


@pytest.mark.parametrize("dies", [False, True], ids=["lives", "dies"])
def test_a_pool_stops_says_which_command_did_it_and_goes_on_when_its_pods_run(*, dies: bool) -> None:
    cluster, _ = checked_cluster(SLOW)
    heard = Heard(cluster)
    until_harm(cluster)
    if dies:
        cluster.controller.stop()
        cluster.controller.start()
        cluster.run(cluster.queue.time + 2 * MINUTE)
    (stop,) = [stop for stop in heard.stops if stop[1] == "general"]
    assert stop[0] == "HarmDone"
    assert any(f"command {ticket.id} (" in stop[2] for ticket in heard.completed)
    assert "is Pending since" in stop[2]
    nodes = len(cluster.store.nodes)
    cluster.run(cluster.queue.time + 25 * MINUTE)
    assert len(cluster.store.nodes) == nodes
    cluster.run(cluster.queue.time + 20 * MINUTE)
    pool = cluster.store.pools.get("general")
    assert pool is not None
    assert harm_of(pool) is None
    assert heard.stops == []


def test_a_person_lets_go_at_once() -> None:
    cluster, _ = checked_cluster(SLOW)
    heard = Heard(cluster)
    until_harm(cluster)
    assert heard.stops
    pool = cluster.store.pools.get("general")
    assert pool is not None
    cluster.store.pools.put(with_annotation(pool, "karpool.sh/harm", None))
    cluster.run(cluster.queue.time + 3 * MINUTE)
    assert heard.stops == []


def test_ledgers_are_tidied_with_the_check_switched_off_too() -> None:
    cluster, _ = checked_cluster(SLOW)
    off = replace(cluster.controller.settings.brakes, harmed_pods=0)
    cluster.controller.settings = replace(cluster.controller.settings, brakes=off)
    heard = Heard(cluster)
    while not heard.completed:
        assert cluster.queue.time < 3 * HOUR
        cluster.run(cluster.queue.time + 30)
    pool = cluster.store.pools.get("general")
    assert pool is not None
    assert ledger_of(pool)
    cluster.run(cluster.queue.time + 2 * HOUR)
    pool = cluster.store.pools.get("general")
    assert pool is not None
    assert DISRUPTIONS not in pool.metadata.annotations


def test_a_slow_drain_in_which_a_budget_lets_one_pod_go_after_the_other_is_no_harm() -> None:
    cluster, _ = checked_cluster(ONE_BY_ONE)
    heard = Heard(cluster)
    longest = 0.0
    while cluster.queue.time < 3 * HOUR:
        cluster.run(cluster.queue.time + MINUTE)
        ages = [cluster.now - deleted for each in cluster.store.claims if (deleted := each.metadata.deletion_timestamp)]
        longest = max(longest, *(age.total_seconds() for age in ages), 0.0)
        assert "HarmDone" not in [code for code, _, _ in heard.stops]
    assert longest > 20 * MINUTE
