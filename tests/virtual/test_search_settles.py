"""A global search under `run`: on a workload that no longer changes, moves come to an end."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.examples import examples
from tests.virtual.invariants import Invariants
from tests.virtual.test_random_scenarios import BUSY, scenarios
from tests.virtual.worlds import CATALOG, HOUR

from karpool.controller.observer import DecisionObserver
from karpool.disruption.command import Command
from karpool.disruption.settings import GLOBAL
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.initial_cluster import with_cluster
from karpool.virtual.scenario import Decisions, Policy, Scenario

pytestmark = pytest.mark.slow

SEARCHES = Policy(decisions=Decisions(search=GLOBAL, effort=0))
QUIET = BUSY + 5 * HOUR


class Commands(DecisionObserver):
    """When commands started, in seconds."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        self.times: list[float] = []
        cluster.controller.observers.append(self)

    def command_started(self, command: Command, _identity: str) -> None:
        del command
        self.times.append(self.cluster.queue.time)

    def since(self, time: float) -> int:
        return sum(started >= time for started in self.times)


@examples(4)
@given(drawn=scenarios(), seed=st.integers(0, 3))
def test_after_random_churn_moves_stop_and_no_rule_was_broken(drawn: Scenario, seed: int) -> None:
    cluster = VirtualCluster(replace(drawn, faults=()), CATALOG, policy=SEARCHES, seed=seed)
    invariants, commands = Invariants(cluster), Commands(cluster)
    cluster.run(BUSY)
    nodes = len(list(cluster.store.nodes))
    cluster.run(QUIET)
    assert commands.since(BUSY) <= 3 * nodes + 3
    assert commands.since(QUIET - HOUR) == 0
    invariants.expect_nothing_left_over()


@pytest.mark.parametrize("seed", [1])
def test_a_cluster_that_nobody_changes_is_left_alone_in_the_end(generated: Any, seed: int) -> None:
    world = generated(20, 60 + seed)
    scenario = with_cluster(Scenario(), world.objects)
    cluster = VirtualCluster(scenario, world.catalog, policy=SEARCHES, initial=world.objects)
    commands = Commands(cluster)
    before = price(cluster)
    cluster.run(4 * HOUR)
    assert 0 < commands.since(0.0) <= 60
    assert commands.since(3 * HOUR) == 0
    assert price(cluster) < before
    assert all(pod.bound for pod in cluster.store.pods)


def price(cluster: VirtualCluster) -> float:
    """$/h of all machines that run."""
    return sum(instance.price for instance in cluster.cloud.instances.values())
