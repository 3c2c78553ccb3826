"""Cool-downs on a virtual cluster: after a pool grew, and after a launch failed, over restarts."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.virtual.test_pauses import Started
from tests.virtual.worlds import HOUR, checked_cluster

from karpool.disruption.command import Command
from karpool.disruption.decide import Decision
from karpool.virtual.cluster import VirtualCluster

# An empty node is left over just when another workload makes the pool grow.
GROWS = (
    "workloads: [{name: big, cpu: 3, replicas: {steps: [{after: 0s, value: 1}, {after: 20m, value: 0}]}},"
    " {name: late, cpu: 7, replicas: {steps: [{after: 0s, value: 0}, {after: 20m, value: 1}]}}]"
)
# The favourite pool can launch nothing from 20 to 80 minutes; at 30 it is asked for more, and another pool stands in.
POOLS = """
pools:
- metadata: {name: first}
  spec:
    weight: 50
    template:
      spec: {requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux]}]}
    disruption: {consolidateAfter: 30s, budgets: [{nodes: "2"}]}
- metadata: {name: second}
  spec:
    template:
      spec: {requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [c-8x-amd64-linux]}]}
    disruption: {consolidateAfter: 30s, budgets: [{nodes: "2"}]}
"""
FAILS = (
    "workloads: [{name: web, cpu: 3},"
    " {name: late, cpu: 3, replicas: {steps: [{after: 0s, value: 0}, {after: 30m, value: 1}]}}]\n"
    "faults: [{kind: shortage, start: 20m, length: 1h, instanceTypes: [c-4x-amd64-linux]}]"
)

# From 30 minutes on a pod waits that only the large type could take, which cannot be had. Smaller nodes empty, or could
# be merged.
UNSATISFIABLE = (
    "workloads: [{name: huge, cpu: 7, replicas: {steps: [{after: 0s, value: 0}, {after: 30m, value: 1}]}},"
    " {name: stays, cpu: 1700m, replicas: {steps: [{after: 0s, value: 2}]}},"
    " {name: goes, cpu: 2, replicas: {steps: [{after: 0s, value: 2}, {after: 40m, value: 0}]}},"
    " {name: whole, cpu: 3500m, replicas: {steps: [{after: 0s, value: 1}, {after: 35m, value: 0}]}}]\n"
    "faults: [{kind: shortage, start: 0s, length: 10h, instanceTypes: [c-8x-amd64-linux]}]"
)
TWO_SIZES = """
pools:
- metadata: {name: general}
  spec:
    template:
      spec:
        requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux, c-8x-amd64-linux]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
    disruption: {consolidateAfter: 30s, budgets: [{nodes: "2"}]}
"""


class Timed(Started):
    """Notes when commands start, and what cools pools down."""

    def __init__(self, cluster: VirtualCluster) -> None:
        super().__init__()
        self._cluster = cluster
        self.times: list[datetime] = []
        self.messages: list[str] = []

    def command_started(self, _command: Command, _identity: str) -> None:
        self.times.append(self._cluster.now)

    def pass_finished(self, decision: Decision) -> None:
        self.messages += [stop.message for stop in decision.stops if stop.code == "CoolingDown"]


def brake(cluster: VirtualCluster, **settings: timedelta) -> None:
    brakes = replace(cluster.controller.settings.brakes, **settings)  # type: ignore[arg-type]
    cluster.controller.settings = replace(cluster.controller.settings, brakes=brakes)


def test_a_pool_that_just_grew_loses_no_node_for_as_long_as_is_asked_for() -> None:
    cluster, _ = checked_cluster(GROWS)
    brake(cluster, after_scale_up=timedelta(minutes=4))
    heard = Timed(cluster)
    cluster.controller.observers.append(heard)
    cluster.run(HOUR)
    created = [claim.metadata.creation_timestamp for claim in cluster.store.claims]
    grown = max(time for time in created if time is not None)
    assert [time for time in heard.times if timedelta(0) <= time - grown < timedelta(minutes=4)] == []
    assert [time for time in heard.times if time > grown]
    assert any("it grew by NodeClaim" in message for message in heard.messages)


def test_a_failed_launch_is_remembered_over_a_restart() -> None:
    cluster, _ = checked_cluster(FAILS, pools=POOLS)
    heard = Timed(cluster)
    cluster.controller.observers.append(heard)
    while not cluster.cloud.failed_launches:
        cluster.run(cluster.queue.time + 1)
    failed = cluster.now
    cluster.run(cluster.queue.time + 1)
    cluster.controller.stop()
    cluster.controller.start()
    cluster.run(cluster.queue.time + 120)
    assert any("failed (no instance that it accepts is available)" in message for message in heard.messages)
    assert [time for time in heard.times if failed <= time < failed + timedelta(minutes=2)] == []


@pytest.mark.slow
def test_a_pod_that_nobody_can_launch_a_node_for_stops_its_pool_for_a_while_and_never_its_empty_nodes() -> None:
    cluster, _ = checked_cluster(UNSATISFIABLE, pools=TWO_SIZES)
    # Longer than it is from one failure to the next.
    brake(cluster, after_failed_launch=timedelta(minutes=4))
    heard = Timed(cluster)
    cluster.controller.observers.append(heard)
    cluster.run(0.55 * HOUR)
    assert len(cluster.store.nodes) == 3
    begun = len(heard.times)
    cluster.run(0.65 * HOUR)
    assert len(cluster.store.nodes) == 2, "the empty node stays though nothing is launched for it"
    assert any("no instance that it accepts" in message for message in heard.messages)
    cluster.run(0.82 * HOUR)
    assert len(heard.times) == begun + 1, "the cool-down of 20 minutes is not kept"
    cluster.run(HOUR)
    assert len(cluster.store.nodes) == 1, "the pool cools down for good"
    failures, messages = cluster.cloud.failed_launches, len(heard.messages)
    cluster.run(3 * HOUR)
    assert cluster.cloud.failed_launches > failures + 10
    assert heard.messages[messages:] == []


def test_a_claim_that_a_person_deletes_before_it_has_a_node_is_no_failed_launch() -> None:
    cluster, _ = checked_cluster(GROWS)
    heard = Timed(cluster)
    cluster.controller.observers.append(heard)
    cluster.run(0.3 * HOUR)
    while not (launching := [claim for claim in cluster.store.claims if not claim.is_true("Registered")]):
        cluster.run(cluster.queue.time + 1)
    (claim,) = launching
    cluster.api.delete(cluster.store.claims, claim.name, claim.metadata.uid)
    cluster.run(cluster.queue.time + 600)
    assert claim.name not in cluster.store.claims
    assert heard.messages == []
