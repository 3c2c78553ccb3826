import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from threading import Thread
from typing import Any, ClassVar

import msgspec
import pytest
from tests.factories.nodes import node_claim
from tests.kube.scripted_server import Answer, ScriptedServer, raw_object, refuses, says

from karpool.catalog.sources import open_catalog
from karpool.controller.store import ClusterStore
from karpool.kube.client import Client
from karpool.kube.credentials import FixedCredentials
from karpool.kube.store import Store, Versions
from karpool.kube.target import Target
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.operator.providers import kwok as kwok_module
from karpool.operator.providers.kwok import SHORTAGES, Kwok, KwokNodeClass
from karpool.operator.providers.protocol import InsufficientCapacityError
from karpool.wire.objects import Metadata, encode_value


def made_of(*answers: Answer) -> list[str]:
    """What is asked of the server to bring the node of a claim, answered like this."""
    claim = node_claim("c1")

    async def story() -> list[str]:
        async with ScriptedServer(*answers) as server, server.client() as client:
            kwok = _kwok(client, claim)
            await kwok.launch(claim)
            await asyncio.wait_for(server.exhausted.wait(), 10)
            await asyncio.sleep(0.3)  # whoever would ask once more has asked by now
            return [f"{request.method} {request.path.rsplit('/', 1)[-1]}" for request in server.requests]

    return asyncio.run(story())


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
