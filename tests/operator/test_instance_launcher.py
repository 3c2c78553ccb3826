"""Launches and terminations: whatever a provider raises is seen, counted and tried again."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs
from tests.factories.nodes import claim_for, node, node_claim
from tests.factories.pods import pod
from tests.factories.unreadable import unreadable
from tests.kube.scripted_server import QUICK, ScriptedServer, refuses, says

from karpool.controller.store import ClusterStore
from karpool.execution.actions import RecordEvent, TerminateInstance
from karpool.kube.cache import CacheFeed, ChangeQueue
from karpool.live.writer import CacheFeeds, Writer
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.operator.instances.instance_launcher import InstanceLauncher
from karpool.operator.providers.protocol import InsufficientCapacityError, LaunchedInstance, LaunchError
from karpool.wire.objects import encode_value

CLAIM = node_claim("c1", launched=False)
MISTAKES = [KeyError("zone"), TimeoutError(), OSError("no route"), RuntimeError("a bug")]


@dataclass
class MistakenProvider:
    """A provider that raises what it is given before it works."""

    errors: list[Exception]
    calls: list[str] = field(default_factory=list)
    labels: Mapping[str, str] = field(default_factory=dict)

    async def _do(self, call: str) -> None:
        self.calls.append(call)
        if self.errors:
            raise self.errors.pop(0)

    async def launch(self, claim: NodeClaim) -> LaunchedInstance:
        await self._do("launch")
        return LaunchedInstance(f"test://{claim.name}", self.labels, {}, {}, lambda: self.calls.append("written"))

    async def terminate(self, claim: NodeClaim) -> bool:
        await self._do(f"terminate {claim.name}")
        return True

    async def list(self) -> Mapping[str, str]:
        return {"test://lost-1": "lost-1", "test://lost-2": "lost-2"}

    async def terminate_orphan(self, provider_id: str) -> None:
        await self._do(f"terminate {provider_id}")


@dataclass
class Stage:
    """A launcher on a server that has one claim, and what became of it."""

    launcher: InstanceLauncher
    server: ScriptedServer
    provider: MistakenProvider
    unexpected: list[str]
    waits: list[float]
    events: list[RecordEvent]

    @property
    def written(self) -> list[dict[str, Any]]:
        return [request.body["status"] for request in self.server.requests if request.method == "PATCH"]


def played(
    provider: MistakenProvider,
    act: Callable[[Stage], Awaitable[None]],
    *listed: NodeClaim | Node,
    planned: Sequence[Pod] = (),
) -> tuple[Stage, list[Any]]:
    """What a launcher does with a provider, and its log; `planned`: pods that claims were made for."""

    async def story() -> Stage:
        store = ClusterStore()
        for entry in listed or (CLAIM,):
            (store.nodes if isinstance(entry, Node) else store.claims).put(entry)  # type: ignore[attr-defined]
        for waiting in planned:
            store.pods.put(waiting)
        claim = msgspec.to_builtins(CLAIM, enc_hook=encode_value)
        claim["metadata"]["resourceVersion"] = "1"
        answer = says(claim)
        unexpected: list[str] = []
        waits: list[float] = []
        events: list[RecordEvent] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            await asyncio.sleep(0)

        async with ScriptedServer(answer) as server, server.client(timeouts=QUICK) as client:
            feeds = CacheFeeds({"NodeClaim": CacheFeed(store.claims, ChangeQueue())})
            launcher = InstanceLauncher(
                provider,
                store,
                Writer(client, feeds, lambda: datetime.now(UTC)),
                clock=lambda: datetime.now(UTC),
                alive=lambda: True,
                record=events.append,
                planned_for=lambda _claim: [pod.key for pod in planned],
                on_unexpected=unexpected.append,
                sleep=sleep,
            )
            stage = Stage(launcher, server, provider, unexpected, waits, events)
            async with asyncio.timeout(10):
                await act(stage)
        return stage

    with capture_logs() as logs:
        stage = asyncio.run(story())
    return stage, [line for line in logs if line["event"] == "provider failed; retrying"]


async def settled(stage: Stage) -> None:
    """Wait until nothing is being launched or terminated any more."""
    while stage.launcher._tasks or stage.launcher._terminating:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def test_a_launch_goes_on_after_any_error_with_back_off_and_says_on_the_claim_what_it_was() -> None:
    async def act(stage: Stage) -> None:
        stage.launcher.launch_pending()
        await settled(stage)

    stage, logged = played(MistakenProvider(list(MISTAKES)), act)
    assert stage.provider.calls == [*["launch"] * (len(MISTAKES) + 1), "written"]
    assert stage.unexpected == ["launch"] * len(MISTAKES)
    assert [line["claim"] for line in logged] == ["c1"] * len(MISTAKES)
    assert all(line["exc_info"] for line in logged), "with its trace"
    assert "the provider failed: KeyError: 'zone'" in str(stage.written[0])
    assert stage.written[-1]["providerID"] == "test://c1"
    assert len(stage.waits) == len(MISTAKES)
    assert min(stage.waits[2:]) > 1.9, "each wait is longer than the last"


def test_a_termination_goes_on_after_any_error_with_back_off_however_often_it_is_asked_for() -> None:
    async def act(stage: Stage) -> None:
        for _ in range(3):
            stage.launcher.terminate(TerminateInstance("c1", CLAIM.metadata.uid))
        await settled(stage)

    stage, logged = played(MistakenProvider(list(MISTAKES)), act)
    assert stage.provider.calls == ["terminate c1"] * (len(MISTAKES) + 1)
    assert stage.unexpected == ["terminate"] * len(MISTAKES)
    assert len(logged) == len(stage.waits) == len(MISTAKES)


def test_a_claim_is_read_once_and_gets_its_labels_before_its_status() -> None:
    async def act(stage: Stage) -> None:
        stage.launcher.launch_pending()
        await settled(stage)
        assert stage.provider.calls == ["launch", "written"]

    stage, _ = played(MistakenProvider([], labels={"zone": "z1"}), act)
    made = [f"{request.method} {request.path.rpartition('/')[2]}" for request in stage.server.requests]
    assert made == ["GET c1", "PATCH c1", "PATCH status"]
    _, labels, status = (request.body for request in stage.server.requests)
    assert labels["metadata"]["labels"] == {"zone": "z1"}
    assert status["status"]["providerID"] == "test://c1"


def test_errors_that_a_provider_declares_are_no_surprise() -> None:
    async def act(stage: Stage) -> None:
        stage.launcher.launch_pending()
        await settled(stage)

    stage, logged = played(MistakenProvider([LaunchError("quota")]), act)
    assert (stage.unexpected, logged) == ([], [])
    assert "quota" in str(stage.written[0])


def test_pods_that_wait_for_a_node_that_cannot_be_had_are_told_so() -> None:
    async def act(stage: Stage) -> None:
        stage.launcher.launch_pending()
        await settled(stage)

    pods = [pod("waits"), pod("placed", node="n1"), pod("done", phase="Succeeded")]
    stage, _ = played(MistakenProvider([InsufficientCapacityError("sold out")]), act, planned=pods)
    told = [(event.kind, event.name, event.message) for event in stage.events]
    assert told == [
        ("Pod", "default/waits", "NodeClaim c1: sold out"),
        ("NodeClaim", "c1", "sold out"),
    ]
    assert {event.reason for event in stage.events} == {"InsufficientCapacityError"}


def test_of_many_pods_that_wait_for_one_node_some_are_told() -> None:
    async def act(stage: Stage) -> None:
        stage.launcher.launch_pending()
        await settled(stage)

    pods = [pod(f"p{number:02}") for number in range(40)]
    stage, _ = played(MistakenProvider([InsufficientCapacityError("sold out")]), act, planned=pods)
    assert [event.name for event in stage.events if event.kind == "Pod"] == [f"default/p{n:02}" for n in range(10)]


@pytest.mark.parametrize("error", [*MISTAKES, LaunchError("busy")], ids=lambda error: type(error).__name__)
def test_an_instance_that_cannot_be_terminated_keeps_no_other(error: Exception) -> None:
    async def act(stage: Stage) -> None:
        stage.server.answers[:] = [refuses(404, "NotFound")]
        await stage.launcher.collect_garbage()

    stage, _ = played(MistakenProvider([error]), act)
    assert stage.provider.calls == ["terminate test://lost-1", "terminate test://lost-2"]
    assert stage.unexpected == ([] if isinstance(error, LaunchError) else ["terminate_orphan"])


# -- what cannot be read -----------------------------------------------------------------------------------------------


def test_nothing_is_launched_for_a_claim_that_cannot_be_read() -> None:
    async def act(stage: Stage) -> None:
        stage.launcher.launch_pending()
        await settled(stage)

    assert played(MistakenProvider([]), act, unreadable(CLAIM))[0].provider.calls == []


def test_no_instance_is_an_orphan_while_the_name_of_a_claim_cannot_be_read() -> None:
    async def act(stage: Stage) -> None:
        stage.server.answers[:] = [refuses(404, "NotFound")]
        await stage.launcher.collect_garbage()

    nameless = unreadable(CLAIM, metadata__name=7)
    assert played(MistakenProvider([]), act, nameless)[0].provider.calls == []
    assert len(played(MistakenProvider([]), act, unreadable(CLAIM))[0].provider.calls) == 2


@pytest.mark.parametrize("lost", ["the claim", "the machine of a node"])
def test_no_instance_counts_as_gone_while_this_cannot_be_read(lost: str) -> None:
    async def act(stage: Stage) -> None:
        await stage.launcher.collect_garbage()

    registered = claim_for(node("c1"))
    stage, _ = played(MistakenProvider([]), act, registered)
    assert "InstanceTerminating" in str(stage.written)
    listed = (unreadable(registered),) if lost == "the claim" else (registered, unreadable(node("n1"), spec=7))
    assert played(MistakenProvider([]), act, *listed)[0].written == []


def test_launches_of_claims_that_are_gone_are_forgotten() -> None:
    async def act(stage: Stage) -> None:
        for number in range(20):
            stage.launcher._store.claims.put(node_claim(f"c{number}", launched=False))
            stage.launcher.launch_pending()
            await settled(stage)
            stage.launcher._store.claims.remove(f"c{number}")
        stage.launcher.launch_pending()

    stage, _ = played(MistakenProvider([]), act)
    assert len(stage.provider.calls) >= 20
    assert len(stage.launcher._done) <= 1
