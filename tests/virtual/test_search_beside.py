"""A global search beside the decisions: nothing that is due waits for it, and its answer is followed at once."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.virtual.invariants import Invariants
from tests.virtual.test_simulate import catalog, scenario
from tests.virtual.worlds import CATALOG, HOUR, POOL
from tests.virtual.worlds import scenario as small

from karpool.controller.observer import DecisionObserver
from karpool.disruption.command import Cause, Command
from karpool.disruption.decide import Decision
from karpool.disruption.settings import GLOBAL
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.curves import seconds
from karpool.virtual.scenario import Decisions, Policy

pytestmark = pytest.mark.slow

SEARCHES = Policy(decisions=Decisions(search=GLOBAL, effort=0))
SHRINKING = """
workloads:
- {name: web, cpu: 900m, memory: 1Gi, replicas: {steps: [{after: 0s, value: 12}, {after: 20m, value: 5}]}}
- {name: large, cpu: "3", memory: 1Gi, replicas: {steps: [{after: 0s, value: 3}, {after: 40m, value: 0}]}}
"""


class Held:
    """Work that is done when somebody says so."""

    def __init__(self) -> None:
        self.work: list[tuple[Callable[[], Any], Callable[[Any, float], object]]] = []

    def __call__(self, work: Callable[[], Any], done: Callable[[Any, float], object]) -> None:
        self.work.append((work, done))

    def finish(self) -> None:
        """Do the oldest piece of work."""
        work, done = self.work.pop(0)
        done(work(), 1.0)


class Watched(DecisionObserver):
    """What a controller decided, and when."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.queue = cluster.queue
        self.passes: list[float] = []
        self.started: list[tuple[float, Command]] = []
        cluster.controller.observers.append(self)

    def pass_finished(self, decision: Decision) -> None:
        del decision
        self.passes.append(self.queue.time)

    def command_started(self, command: Command, _identity: str) -> None:
        self.started.append((self.queue.time, command))

    def causes(self) -> set[Cause]:
        return {command.cause for _, command in self.started}


def held_cluster() -> tuple[VirtualCluster, Held, Watched]:
    cluster = VirtualCluster(small(SHRINKING, pools=POOL), CATALOG, policy=SEARCHES, seed=1)
    cluster.controller.beside = held = Held()
    return cluster, held, Watched(cluster)


def test_empty_nodes_go_while_a_search_never_ends() -> None:
    cluster, held, watched = held_cluster()
    cluster.run(HOUR)
    assert len(held.work) == 1
    assert watched.causes() == {Cause.EMPTY}
    assert all(pod.bound for pod in cluster.store.pods)


def test_an_answer_is_followed_at_once_and_checked_against_the_cluster_of_then() -> None:
    cluster, held, watched = held_cluster()
    cluster.run(HOUR)
    watched.passes.clear()
    held.finish()
    cluster.run(HOUR + 1.0)
    assert watched.passes[0] == HOUR
    invariants = Invariants(cluster)
    for minute in range(1, 60):
        cluster.run(HOUR + 60.0 * minute)
        if held.work:
            held.finish()
    assert Cause.UNDERUTILIZED in watched.causes()
    invariants.expect_nothing_left_over()


def test_an_answer_after_a_restart_is_for_nobody() -> None:
    cluster, held, watched = held_cluster()
    cluster.run(0.25 * HOUR)
    assert held.work
    cluster.controller.stop()
    cluster.controller.start()
    held.finish()
    watched.passes.clear()
    cluster.run(0.25 * HOUR + 1.0)
    assert watched.passes == []


@pytest.mark.parametrize(
    ("name", "length", "warm_up"),
    [
        ("churn", "20m", "0s"),
        ("fallback", "40m", "0s"),
        ("tenants", "20m", "0s"),
        ("weights", "20m", "5m"),
        ("weights-architecture", "15m", "5m"),
        ("weights-capacity", "10m", "0s"),
        ("weights-gpu", "40m", "0s"),
        ("weights-taints", "20m", "0s"),
        ("spot", "15m", "45m"),
        ("off-hours", "30m", "60m"),
    ],
)
def test_no_scenario_breaks_a_rule_with_a_global_search(name: str, length: str, warm_up: str) -> None:
    made = scenario(name, length, warm_up)
    policies = [policy for policy in made.policies.values() if policy.disruption and policy.compactor is None]
    policy = policies[0]
    decisions = msgspec.structs.replace(policy.decisions, search=GLOBAL, effort=0)
    cluster = VirtualCluster(made, catalog(made), policy=msgspec.structs.replace(policy, decisions=decisions))
    Invariants(cluster)
    cluster.run(seconds(made.warm_up) + seconds(made.length))
    assert cluster.recorder.summary().pods_at_end > 0


def test_a_simulation_with_a_global_search_can_be_repeated() -> None:
    def outcome() -> tuple[float, int, list[tuple[float, tuple[str, ...]]]]:
        cluster = VirtualCluster(small(SHRINKING, pools=POOL), CATALOG, policy=SEARCHES, seed=3)
        watched = Watched(cluster)
        cluster.run(HOUR)
        summary = cluster.recorder.summary()
        return summary.cost, summary.evictions, [(time, command.nodes) for time, command in watched.started]

    first = outcome()
    assert first == outcome()
    assert first[2]
