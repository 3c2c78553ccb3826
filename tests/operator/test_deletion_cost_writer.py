"""Deletion costs are written beside everything else: once, on the pod as it was seen, and again after a failure."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.factories import pod
from tests.kube.scripted_server import Answer, ScriptedServer, refuses, says

from karpool.execution.actions import SetDeletionCost
from karpool.kube.cache import CacheFeed, ChangeQueue
from karpool.kube.store import Store
from karpool.model.labels import OWN_DELETION_COST, POD_DELETION_COST
from karpool.model.pod import Pod
from karpool.operator.deletion_cost_writer import DeletionCostWriter
from karpool.wire.objects import encode_value


def seen(name: str = "web-1", **annotations: str) -> Pod:
    made = pod(name, node="n1", annotations=annotations)
    return replace(made, metadata=replace(made.metadata, resource_version="7"))


def as_json(written: Pod) -> Any:
    return msgspec.to_builtins(written, enc_hook=encode_value)


def asked(cost: int | None = -3, name: str = "web-1", uid: str = "") -> SetDeletionCost:
    return SetDeletionCost(f"default/{name}", uid or f"default/{name}", "n1", cost)


class Writing:
    """A writer with pods in its cache, and what it told."""

    def __init__(self, *pods: Pod) -> None:
        self.store: Store[Pod] = Store()
        for entry in pods:
            self.store.put(entry)
        self.changes = ChangeQueue()
        self.results: list[str] = []
        self.more = asyncio.Event()
        self.pending: list[Mapping[str, int]] = []
        self.waits: list[float] = []
        self.bodies: list[Any] = []

    async def run(self, server: ScriptedServer, *actions: SetDeletionCost, count: int, **client: Any) -> None:
        """Write until so many results are there."""

        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)

        async with server, server.client(**client) as connected:
            writer = DeletionCostWriter(
                connected,
                CacheFeed(self.store, self.changes),
                pool_of=lambda node: f"pool-of-{node}",
                on_result=self._told,
                on_pending=lambda nodes: self.pending.append(dict(nodes)),
                sleep=sleep,
            )
            for action in actions:
                writer.ask(action)
            task = asyncio.create_task(writer.run())
            async with asyncio.timeout(5):
                while len(self.results) < count:
                    await self.more.wait()
                    self.more.clear()
            task.cancel()

    def _told(self, result: str) -> None:
        self.results.append(result)
        self.more.set()


def written(*actions: SetDeletionCost, pods: tuple[Pod, ...], answers: tuple[Answer, ...], count: int = 1) -> Writing:
    writing, server = Writing(*pods), ScriptedServer(*answers)

    async def whole() -> None:
        await writing.run(server, *actions, count=count)

    asyncio.run(whole())
    writing.bodies = [request.body for request in server.requests]
    return writing


def test_a_cost_and_its_mark_are_patched_on_the_version_that_was_seen() -> None:
    done = written(asked(), pods=(seen(),), answers=(says(as_json(seen(**{POD_DELETION_COST: "-3"}))),))
    assert done.bodies == [
        {
            "metadata": {
                "annotations": {POD_DELETION_COST: "-3", OWN_DELETION_COST: "-3"},
                "resourceVersion": "7",
            }
        }
    ]
    assert done.results == ["updated"]
    assert done.pending[0] == {"pool-of-n1": 1}
    assert done.changes.apply() == 1


def test_what_was_asked_last_for_a_pod_is_what_is_written() -> None:
    done = written(asked(-5), asked(-2), pods=(seen(),), answers=(says(as_json(seen())),))
    assert [body["metadata"]["annotations"][POD_DELETION_COST] for body in done.bodies] == ["-2"]


@pytest.mark.parametrize(
    ("status", "reason", "result"), [(409, "Conflict", "skipped_conflict"), (404, "NotFound", "skipped_notfound")]
)
def test_a_pod_that_changed_or_went_is_dropped(status: int, reason: str, result: str) -> None:
    done = written(asked(), pods=(seen(),), answers=(refuses(status, reason),))
    assert (done.results, done.waits) == ([result], [])


@pytest.mark.parametrize(
    ("pods", "action", "result"),
    [
        ((), asked(), "skipped_notfound"),
        ((seen(),), asked(uid="of-another"), "skipped_notfound"),
        ((seen(**{POD_DELETION_COST: "5"}),), asked(), "skipped_unchanged"),
        ((seen(**{POD_DELETION_COST: "-3", OWN_DELETION_COST: "-3"}),), asked(), "skipped_unchanged"),
        ((seen(),), asked(None), "skipped_unchanged"),
    ],
    ids=["gone", "another", "theirs", "right", "nothing to remove"],
)
def test_nothing_is_sent_where_nothing_is_to_be_done(
    pods: tuple[Pod, ...], action: SetDeletionCost, result: str
) -> None:
    done = written(action, pods=pods, answers=(refuses(500, "ServerError"),))
    assert (done.results, done.bodies) == ([result], [])


def test_any_other_failure_holds_writes_up_for_longer_each_time() -> None:
    no = refuses(403, "Forbidden")
    done = written(asked(), pods=(seen(),), answers=(*([no] * 3), says(as_json(seen()))), count=4)
    assert done.results == ["error", "error", "error", "updated"]
    assert [0.05, 0.1, 0.2] <= done.waits <= [0.1, 0.2, 0.4]
    assert done.pending[-1] in ({}, {"pool-of-n1": 1})


def test_a_replica_that_does_not_lead_any_more_writes_nothing_and_counts_nothing() -> None:
    writing, server = Writing(seen(), seen("web-2")), ScriptedServer(says({}))

    async def whole() -> None:
        gone = asked(name="web-9")
        await writing.run(server, asked(), gone, count=1, write_gate=lambda: False)

    asyncio.run(whole())
    assert (writing.results, server.requests) == (["skipped_notfound"], [])
