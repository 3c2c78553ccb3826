import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from threading import Thread
from typing import Any, ClassVar

import msgspec
import pytest
from msgspec.structs import replace
from tests.factories.nodes import claim_for, node, node_claim
from tests.factories.values import amounts
from tests.kube.scripted_server import Answer, ReceivedRequest, ScriptedServer, raw_object, refuses, says

from karpool.catalog.sources import open_catalog
from karpool.controller.store import ClusterStore
from karpool.kube.client import Client
from karpool.kube.credentials import FixedCredentials
from karpool.kube.store import Store, Versions
from karpool.kube.target import Target
from karpool.model.labels import INSTANCE_TYPE, NODEPOOL
from karpool.model.node import Node
from karpool.model.nodepool import ClaimResources, NodeClaim
from karpool.operator.kwok_node_class import SHORTAGES, KwokNodeClass, KwokNodeClassStatus
from karpool.operator.providers import kwok as kwok_module
from karpool.operator.providers.kwok import Kwok
from karpool.operator.providers.protocol import InsufficientCapacityError, NodeClassNotReadyError
from karpool.provisioning.inflight import as_launched
from karpool.wire.objects import Condition, Metadata, encode_value


def asked_for(*answers: Answer) -> list[ReceivedRequest]:
    """What is asked of the server to bring the node of a claim, answered like this."""
    claim = node_claim("c1")

    async def story() -> list[ReceivedRequest]:
        async with ScriptedServer(*answers) as server, server.client() as client:
            kwok = _kwok(client, claim)
            launched = await kwok.launch(claim)
            assert server.requests == [], "nobody is asked before the claim says what it became"
            launched.written()
            await asyncio.wait_for(server.exhausted.wait(), 10)
            await asyncio.sleep(0.3)  # whoever would ask once more has asked by now
            return server.requests

    return asyncio.run(story())


def made_of(*answers: Answer) -> list[str]:
    """The same, in short."""
    return [f"{request.method} {request.path.rsplit('/', 1)[-1]}" for request in asked_for(*answers)]


def _kwok(client: Client, claim: NodeClaim, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Kwok:
    classes: Store[KwokNodeClass] = Store(Versions())
    classes.put(_node_class(claim, ""))
    return Kwok(client, ClusterStore(), classes, open_catalog("kwok"), clock)


def _node_class(claim: NodeClaim, shortages: str) -> KwokNodeClass:
    annotations = {SHORTAGES: shortages} if shortages else {}
    return KwokNodeClass(metadata=Metadata(name=claim.spec.node_class_ref.name, annotations=annotations))


def _claim(**status: str) -> Answer:
    body: dict[str, Any] = msgspec.to_builtins(node_claim("c1"), enc_hook=encode_value)
    return says({**body, "status": {**body.get("status", {}), "providerID": "", **status}})


LAUNCHED = _claim(providerID="kwok://c1")
MADE = says(raw_object("c1"), status=201)


@pytest.mark.parametrize(
    ("answers", "requests"),
    [
        ((LAUNCHED, MADE), ["GET c1", "POST nodes"]),
        ((_claim(), LAUNCHED, MADE), ["GET c1", "GET c1", "POST nodes"]),
        ((LAUNCHED, refuses(500, "InternalError"), LAUNCHED, MADE), ["GET c1", "POST nodes"] * 2),
        ((LAUNCHED, refuses(409, "AlreadyExists")), ["GET c1", "POST nodes"]),
        ((refuses(404, "NotFound"),), ["GET c1"]),
    ],
    ids=["at once", "not before its claim says whose it is", "after a failure", "made already", "claim gone"],
)
def test_a_node_comes_whatever_the_server_answers_first(answers: tuple[Answer, ...], requests: list[str]) -> None:
    assert made_of(*answers) == requests


def test_kwok_keeps_a_new_node_ready_without_being_told_to() -> None:
    made = asked_for(LAUNCHED, MADE)[-1].body["metadata"]
    assert made["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert made["labels"]["kwok.x-k8s.io/node"] == "fake"


def test_a_node_comes_after_an_error_that_nobody_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    mistakes = [ValueError("a bug"), KeyError("another")]
    make = kwok_module.starting_node

    def mistaken(*arguments: Any, **named: Any) -> Node:
        if mistakes:
            raise mistakes.pop()
        return make(*arguments, **named)

    monkeypatch.setattr(kwok_module, "starting_node", mistaken)
    assert made_of(LAUNCHED, LAUNCHED, LAUNCHED, MADE) == ["GET c1", "GET c1", "GET c1", "POST nodes"]


class Interrupted(datetime):
    """A moment at which another thread is at work: something happens whenever it is compared."""

    meanwhile: ClassVar[Callable[[], object]] = lambda: None

    def __gt__(self, other: Any) -> bool:
        Interrupted.meanwhile()
        return super().__gt__(other)

    def __add__(self, other: Any) -> "Interrupted":
        return Interrupted.fromtimestamp((datetime.fromtimestamp(self.timestamp(), UTC) + other).timestamp(), UTC)


def test_the_catalogue_can_be_read_while_another_thread_notes_shortages(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = node_claim("c1")

    def fail_to_launch(shortages: str) -> None:
        """Launch in another thread, where these offerings are short; none is left that the claim takes."""
        kwok._classes.put(_node_class(claim, shortages))
        thread = Thread(target=lambda: asyncio.run(refused()))
        thread.start()
        thread.join()

    async def refused() -> None:
        with suppress(InsufficientCapacityError, AttributeError):
            await kwok.launch(claim)

    def interrupt() -> None:
        monkeypatch.setattr(Interrupted, "meanwhile", lambda: None)
        fail_to_launch("*")

    kwok = _kwok(Client(Target(server="", credentials=FixedCredentials())), claim, lambda: Interrupted.now(UTC))
    fail_to_launch("*/*/spot")
    before = len(kwok._short)
    monkeypatch.setattr(Interrupted, "meanwhile", interrupt)
    assert kwok.catalog is not None
    assert len(kwok._short) > before > 0


# -- node classes ------------------------------------------------------------------------------------------------------


def _not_ready(reason: str) -> KwokNodeClass:
    conditions = (Condition("Ready", "False", reason, "no image"),)
    return KwokNodeClass(metadata=Metadata(name="default"), status=KwokNodeClassStatus(conditions=conditions))


@pytest.mark.parametrize(
    ("cached", "answers", "message"),
    [
        (None, [refuses(404, "NotFound")], "there is no KWOKNodeClass default"),
        (_not_ready("NoImage"), [], "no image"),
        (None, [says(raw_object("default"))], ""),
    ],
    ids=["there is none", "not ready", "newer than the cache"],
)
def test_a_launch_needs_a_node_class_that_can_be_used(
    cached: KwokNodeClass | None, answers: list[Answer], message: str
) -> None:
    claim = node_claim("c1", launched=False)

    async def story() -> str:
        async with ScriptedServer(*answers) as server, server.client() as client:
            classes: Store[KwokNodeClass] = Store(Versions())
            if cached is not None:
                classes.put(cached)
            kwok = Kwok(client, ClusterStore(), classes, open_catalog("kwok"), lambda: datetime.now(UTC))
            try:
                await kwok.launch(claim)
            except NodeClassNotReadyError as error:
                return str(error)
            await kwok.terminate(claim)
            return ""

    assert asyncio.run(story()) == message


def test_a_machine_has_room_for_what_its_claim_requests() -> None:
    requests = ClaimResources(requests=amounts({"cpu": "3", "memory": "11Gi"}))
    types = ("c-2x-amd64-linux", "c-16x-amd64-linux")
    claim = node_claim("c1", launched=False, requirements=[(INSTANCE_TYPE, "In", *types)])
    claim = replace(claim, spec=replace(claim.spec, resources=requests))
    assert as_launched(claim, open_catalog("kwok")).status.provider_id

    async def story() -> str:
        kwok = _kwok(Client(Target(server="", credentials=FixedCredentials())), claim)
        launched = await kwok.launch(claim)
        await kwok.terminate(claim)
        return launched.labels[INSTANCE_TYPE]

    assert asyncio.run(story()) == "c-16x-amd64-linux"


def test_machines_of_claims_without_a_pool_exist_and_those_of_others_are_nobodys() -> None:
    """A running NodeClaim that belongs to no pool was taken for one whose instance is gone."""

    def listed(name: str, provider_id: str, **metadata: Any) -> dict[str, Any]:
        raw = raw_object(name)
        return {**raw, "metadata": {**raw["metadata"], **metadata}, "spec": {"providerID": provider_id}}

    owner = {"kind": "NodeClaim", "name": "gone", "uid": "u", "apiVersion": "karpenter.sh/v1"}
    nodes = [
        listed("alone", "kwok://alone"),
        listed("of-a-pool", "kwok://of-a-pool", labels={NODEPOOL: "p"}),
        listed("left", "kwok://left", ownerReferences=[owner]),
        listed("somebody-elses", "kwok://somebody-elses"),
        listed("real", "aws:///real", labels={NODEPOOL: "p"}),
    ]
    alone = claim_for(node("alone"))
    alone = replace(alone, status=replace(alone.status, provider_id="kwok://alone"))

    async def story() -> dict[str, str]:
        answer = says({"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": nodes})
        async with ScriptedServer(answer) as server, server.client() as client:
            kwok = _kwok(client, alone)
            kwok._store.claims.put(alone)
            return dict(await kwok.list())

    assert asyncio.run(story()) == {f"kwok://{name}": name for name in ("alone", "left", "of-a-pool")}
