"""A pause in the middle of a command: it is taken back or finished, nothing is left over, and later all goes on."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.disruption.brakes.test_pause_of_everything import config_map
from tests.virtual.test_refused_replacements import STORY, Heard
from tests.virtual.worlds import HOUR, checked_cluster

from karpool.disruption.brakes.ledger import ledger_of
from karpool.disruption.command import Command
from karpool.execution import actions as a
from karpool.execution.tickets import commands_in_progress
from karpool.model.labels import PAUSED
from karpool.virtual.cluster import VirtualCluster


def everything(cluster: VirtualCluster, *, paused: bool) -> None:
    pause = config_map()
    if paused:
        cluster.store.pauses.put(pause)
    else:
        cluster.store.pauses.remove(pause.key)


def one_pool(cluster: VirtualCluster, *, paused: bool) -> None:
    (pool,) = cluster.store.pools.listed()
    annotations = {**pool.metadata.annotations, PAUSED: "upgrade"}
    if not paused:
        del annotations[PAUSED]
    cluster.store.pools.put(replace(pool, metadata=replace(pool.metadata, annotations=annotations)))


class Started(Heard):
    """Counts the commands that start, too."""

    def __init__(self) -> None:
        super().__init__()
        self.started = 0

    def command_started(self, _command: Command, _identity: str) -> None:
        self.started += 1


@pytest.mark.parametrize("set_pause", [everything, one_pool])
def test_a_command_that_waits_for_its_replacement_is_taken_back(set_pause: Callable[..., None]) -> None:
    cluster, invariants = checked_cluster(STORY)
    heard = Started()
    cluster.controller.observers.append(heard)
    while not heard.started:
        cluster.run(cluster.queue.time + 5)
    nodes = {node.name for node in cluster.store.nodes}
    set_pause(cluster, paused=True)
    cluster.run(cluster.queue.time + 300)
    assert [entry.failure.cause for entry in heard.failed] == ["Stopped"]
    assert "paused" in heard.failed[0].failure.message or "pauses" in heard.failed[0].failure.message
    assert {node.name for node in cluster.store.nodes} == nodes
    assert commands_in_progress(cluster.store.claims) == []
    invariants.expect_nothing_left_over()
    cluster.run(cluster.queue.time + HOUR)
    assert heard.started == 1
    set_pause(cluster, paused=False)
    cluster.run(cluster.queue.time + 600)
    assert heard.started > 1
    assert {node.name for node in cluster.store.nodes} != nodes
    invariants.expect_nothing_left_over()


@pytest.mark.parametrize("set_pause", [everything, one_pool])
def test_a_command_that_has_committed_and_deleted_nothing_is_taken_back(set_pause: Callable[..., None]) -> None:
    cluster, invariants = checked_cluster(STORY)
    heard = Started()
    cluster.controller.observers.append(heard)
    cluster.run(1000)
    nodes, commits = {node.name for node in cluster.store.nodes}, list[a.Action]()

    def pause_at_commit(action: a.Action) -> None:
        if isinstance(action, a.Annotate) and '"committed":true' in (action.value or "") and not commits:
            commits.append(action)
            set_pause(cluster, paused=True)

    cluster.actuator.observers.append(pause_at_commit)
    while not commits:
        cluster.run(cluster.queue.time + 5)
    cluster.run(cluster.queue.time + 300)
    assert [entry.failure.cause for entry in heard.failed] == ["Stopped"]
    assert {node.name for node in cluster.store.nodes} == nodes
    assert commands_in_progress(cluster.store.claims) == []
    assert all(ledger_of(pool) == () for pool in cluster.store.pools)
    invariants.expect_nothing_left_over()
    set_pause(cluster, paused=False)
    cluster.run(cluster.queue.time + 600)
    assert {node.name for node in cluster.store.nodes} != nodes
    invariants.expect_nothing_left_over()


def test_a_command_that_deletes_already_is_finished() -> None:
    cluster, invariants = checked_cluster(STORY)
    heard = Started()
    cluster.controller.observers.append(heard)
    while not any(claim.terminating for claim in cluster.store.claims):
        cluster.run(cluster.queue.time + 1)
    leaving = {claim.name for claim in cluster.store.claims if claim.terminating}
    everything(cluster, paused=True)
    cluster.run(cluster.queue.time + 600)
    assert leaving.isdisjoint(claim.name for claim in cluster.store.claims)
    assert heard.failed == []
    invariants.expect_nothing_left_over()
