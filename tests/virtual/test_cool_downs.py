"""Cool-downs on a virtual cluster: after a pool grew, and after a launch failed, over restarts."""

from dataclasses import replace
from datetime import datetime, timedelta

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


def test_a_pool_that_just_grew_loses_no_node_for_as_long_as_is_asked_for() -> None:
    cluster, _ = checked_cluster(GROWS)
    brakes = replace(cluster.controller.settings.brakes, after_scale_up=timedelta(minutes=4))
    cluster.controller.settings = replace(cluster.controller.settings, brakes=brakes)
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
    assert any("failed (it was deleted before it was launched)" in message for message in heard.messages)
    assert [time for time in heard.times if failed <= time < failed + timedelta(minutes=2)] == []
