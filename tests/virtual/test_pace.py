"""Drains are paced: few pods of a workload are away at a time, and replacements that never come hold up no drain."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace
from tests.virtual.worlds import CATALOG, HOUR, scenario

from karpool.controller.observer import DecisionObserver
from karpool.disruption.brakes.harm import harm_of
from karpool.disruption.settings import PREFIX
from karpool.execution.actions import EvictPod, RecordEvent
from karpool.execution.state import WaitOver
from karpool.model.pod import Pod
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.scenario import Decisions, DrainPaceLimits, Policy
from karpool.wire.objects import is_true

OPEN = """
pools:
- metadata: {name: general}
  spec:
    template:
      spec:
        requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
    disruption: {consolidateAfter: 30s, budgets: [{nodes: "100%"}]}
"""
# Half an hour in, what fills the nodes is gone, and most of them are not needed.
SHRINKS = """
workloads:
- {name: web, cpu: 300m, memory: 256Mi, replicas: 20, startTime: 40s}
- {name: api, cpu: 200m, memory: 256Mi, replicas: 8, startTime: 40s}
- {name: single, cpu: 200m, memory: 128Mi, replicas: 1, startTime: 40s}
- {name: filler, cpu: 1400m, memory: 1Gi, replicas: {steps: [{after: 0s, value: 24}, {after: 30m, value: 1}]}}
"""
UNPACED = DrainPaceLimits(workload_percent=0, pods_percent=0)


@dataclass
class Seen(DecisionObserver):
    """How many pods of each workload ran at the least, since the cluster had settled; and what drains said."""

    cluster: VirtualCluster
    fewest: dict[str, int] = field(default_factory=dict)
    evicted: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    waits: list[WaitOver] = field(default_factory=list)

    def start(self) -> None:
        self.cluster.controller.observers.append(self)
        self.cluster.actuator.observers.append(self._act)
        self.cluster.store.pods.watch(self._look)

    def wait_over(self, wait: WaitOver) -> None:
        self.waits.append(wait)

    def _act(self, action: object) -> None:
        if isinstance(action, EvictPod):
            self.evicted[action.key] += 1
        elif isinstance(action, RecordEvent):
            self.events[action.reason] += 1

    def _look(self, _old: Pod | None, _new: Pod | None) -> None:
        running = Counter(app(pod) for pod in self.cluster.store.pods if runs(pod))
        running["all"] = running["web"] + running["api"] + running["single"]
        for name in ("web", "api", "all"):
            self.fewest[name] = min(self.fewest.get(name, running[name]), running[name])


def app(pod: Pod) -> str:
    return pod.metadata.labels.get("app.kubernetes.io/name", "")


def runs(pod: Pod) -> bool:
    return pod.active and is_true(pod.status.conditions, "Ready")


def shrunk(
    pace: DrainPaceLimits | None = None, disturb: Callable[[VirtualCluster], object] = lambda _: None
) -> tuple[VirtualCluster, Seen]:
    """A cluster that has lost most of its pods, and then most of its nodes."""
    policy = Policy(decisions=Decisions(search=PREFIX), pace=pace or DrainPaceLimits())
    cluster = VirtualCluster(scenario(SHRINKS, pools=OPEN), CATALOG, policy=policy)
    cluster.run(0.49 * HOUR)
    assert all(map(runs, cluster.store.pods))
    seen = Seen(cluster)
    seen.start()
    disturb(cluster)
    cluster.run(2 * HOUR)
    return cluster, seen


def test_no_more_of_a_workload_is_away_than_may_be_though_it_has_no_budget() -> None:
    cluster, seen = shrunk()
    assert sum(seen.evicted.values()) >= 10
    assert (seen.fewest["web"], seen.fewest["api"]) == (15, 6)
    assert all(map(runs, cluster.store.pods))
    assert seen.events["DrainWaiting"] > 0
    assert seen.waits == []


def test_without_bounds_pods_leave_together() -> None:
    cluster, seen = shrunk(UNPACED)
    assert seen.fewest["web"] < 15
    assert seen.events["DrainWaiting"] == 0
    paced, _ = shrunk()
    assert len(cluster.store.nodes) == len(paced.store.nodes)


def test_all_pods_together_are_bounded() -> None:
    _, seen = shrunk(DrainPaceLimits(workload_percent=0))
    assert seen.fewest["all"] >= 29 - 10
    assert seen.events["DrainWaiting"] > 0


def test_a_restarted_controller_knows_who_is_away() -> None:
    restarts: list[float] = []

    def restart(cluster: VirtualCluster) -> None:
        if any(node.terminating for node in cluster.store.nodes):
            cluster.controller.stop()
            cluster.controller.start()
            restarts.append(cluster.queue.time)
        cluster.queue.after(7.0, lambda: restart(cluster))

    cluster, seen = shrunk(disturb=restart)
    assert sum(seen.evicted.values()) >= 10
    assert len(restarts) >= 10
    assert seen.fewest["web"] >= 15
    assert seen.fewest["api"] >= 6
    assert all(map(runs, cluster.store.pods))


def never_ready(cluster: VirtualCluster) -> None:
    """From now on no new pod of web becomes ready."""

    def spoil(old: Pod | None, new: Pod | None) -> None:
        if old is None and new is not None and app(new) == "web":
            cluster.queue.after(0.0, lambda: gate(new))

    def gate(pod: Pod) -> None:
        current = cluster.store.pods.get(pod.key)
        if current is not None and not current.bound:
            stuck = pod.spec.node_selector | {"nowhere": "at-all"}
            cluster.store.pods.put(replace(current, spec=replace(current.spec, node_selector=stuck)))

    cluster.store.pods.watch(spoil)


@pytest.mark.slow
def test_a_drain_ends_though_no_replacement_comes_and_says_so() -> None:
    cluster, seen = shrunk(disturb=never_ready)
    assert not any(node.terminating for node in cluster.store.nodes)
    assert seen.waits
    assert {wait.message for wait in seen.waits} <= {
        f"the replacements of {count} pods were not ready within 5m" for count in range(30)
    }
    pool = cluster.store.pools.get("general")
    assert pool is not None
    assert harm_of(pool) is not None
