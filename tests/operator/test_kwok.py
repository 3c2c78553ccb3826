import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from tests.factories.nodes import node_claim
from tests.kube.scripted_server import Answer, ScriptedServer, raw_object, refuses, says

from karpool.catalog.sources import open_catalog
from karpool.controller.store import ClusterStore
from karpool.kube.client import Client
from karpool.kube.store import Store, Versions
from karpool.model.nodepool import NodeClaim
from karpool.operator.providers.kwok import Kwok, KwokNodeClass
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


def _kwok(client: Client, claim: NodeClaim) -> Kwok:
    classes: Store[KwokNodeClass] = Store(Versions())
    classes.put(KwokNodeClass(metadata=Metadata(name=claim.spec.node_class_ref.name)))
    return Kwok(client, ClusterStore(), classes, open_catalog("kwok"), lambda: datetime.now(UTC))


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
