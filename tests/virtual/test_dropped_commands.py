"""Commands that cannot start because their nodes cannot be read again: they are tried less and less often, and told."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from msgspec.structs import replace
from tests.virtual.worlds import HOUR, checked_cluster

from karpool.controller.observer import DecisionObserver
from karpool.controller.ports import FactsRead
from karpool.disruption.command import Command
from karpool.disruption.decide import Decision
from karpool.execution.fresh_facts import FreshNode
from karpool.model.reasons import Reason
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.facts import VirtualFacts

STORY = "workloads: [{name: big, cpu: 3, replicas: {steps: [{after: 0s, value: 1}, {after: 20m, value: 0}]}}]"
STAYS = "workloads: [{name: big, cpu: 3}]"


class Unanswered(VirtualFacts):
    """An API server that fails every read of a node."""

    def read(self, nodes: Sequence[str], done: FactsRead) -> None:
        done(dict.fromkeys(nodes, FreshNode(problem="500 Internal Server Error")))


class Heard(DecisionObserver):
    """When commands were dropped, what for, how often in a row, and what the brakes said."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        self.dropped: list[tuple[datetime, str, int]] = []
        self.messages: list[str] = []

    def command_dropped(self, _command: Command, reason: Reason, in_a_row: int) -> None:
        self.dropped.append((self.cluster.now, reason.code, in_a_row))

    def pass_finished(self, decision: Decision) -> None:
        self.messages += [stop.message for stop in decision.stops if stop.code == "CommandDropped"]


def nothing(_cluster: VirtualCluster) -> None:
    """The node is empty by itself."""


def drift(cluster: VirtualCluster) -> None:
    """The node is not what its pool asks for any more; drift is not validated before it starts."""
    (pool,) = cluster.store.pools.listed()
    template = pool.spec.template
    labels = replace(template, metadata=replace(template.metadata, labels={"generation": "2"}))
    cluster.store.pools.put(replace(pool, spec=replace(pool.spec, template=labels)))


@pytest.mark.parametrize(("story", "happens"), [(STORY, nothing), (STAYS, drift)], ids=["empty", "drifted"])
def test_a_node_that_cannot_be_read_is_tried_less_and_less_often(
    story: str, happens: Callable[[VirtualCluster], None]
) -> None:
    cluster, invariants = checked_cluster(story)
    heard = Heard(cluster)
    cluster.controller.observers.append(heard)
    cluster.run(1100)
    (before,) = cluster.store.nodes
    cluster.controller.stop()
    cluster.controller.facts = Unanswered(cluster.store)
    cluster.controller.start()
    cluster.run(1260)
    happens(cluster)
    cluster.run(HOUR)
    assert {code for _, code, _ in heard.dropped} == {"FactsUnknown"}
    # After 10, 20, 40, 80 and 160 seconds, then every 3 minutes; not every second.
    assert 10 <= len(heard.dropped) <= 20
    assert [in_a_row for _, _, in_a_row in heard.dropped] == list(range(1, len(heard.dropped) + 1))
    times = [time for time, _, _ in heard.dropped]
    assert min(later - earlier for earlier, later in pairwise(times[5:])) >= timedelta(minutes=3)
    assert any("a command was dropped (FactsUnknown: Node" in message for message in heard.messages)
    assert before.name in cluster.store.nodes
    cluster.controller.stop()
    cluster.controller.facts = VirtualFacts(cluster.store)
    cluster.controller.start()
    cluster.run(1.2 * HOUR)
    assert before.name not in cluster.store.nodes
    invariants.expect_nothing_left_over()
