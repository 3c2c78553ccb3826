"""The status of NodePools as it is written, on a server that fails in several ways."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.factories import node_pool
from tests.kube.scripted_server import ScriptedServer, refuses, says

from karpool.controller.store import ClusterStore
from karpool.kube.transport import Timeouts
from karpool.operator.pool_nodes import PoolNodes
from karpool.operator.pool_status_controller import PoolStatusController

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)

QUICK = Timeouts(response=2, connect=1, retries=0.05, first_retry=0.001, longest_retry=0.01)


def raw_pool(version: str = "5", uid: str = "pool-default") -> dict[str, Any]:
    return {"metadata": {"name": "default", "uid": uid, "resourceVersion": version, "generation": 1}}


def one_pool() -> ClusterStore:
    store = ClusterStore()
    store.pools.put(node_pool())
    return store


def methods_asked(*answers: Any, calls: int = 1) -> list[str]:
    """The methods of the requests that keeping one pool took."""

    async def story() -> list[str]:
        async with ScriptedServer(*answers) as server, server.client(timeouts=QUICK) as client:
            store = one_pool()
            controller = PoolStatusController(
                client, store, PoolNodes(store), node_classes=lambda _: True, clock=lambda: NOW
            )
            for _ in range(calls):
                await controller.reconcile()
            return [request.method for request in server.requests]

    return asyncio.run(story())


GET, CONFLICT = says(raw_pool()), refuses(409, "Conflict")


@pytest.mark.parametrize(
    ("answers", "calls", "methods"),
    [
        ([GET, says(raw_pool("6"))], 3, ["GET", "PATCH"]),
        ([GET, CONFLICT, GET, says(raw_pool("6"))], 2, ["GET", "PATCH", "GET", "PATCH"]),
        ([GET, refuses(403, "Forbidden"), GET, says(raw_pool("6"))], 3, ["GET", "PATCH", "GET", "PATCH"]),
        ([refuses(404, "NotFound"), GET, says(raw_pool("6"))], 2, ["GET", "GET", "PATCH"]),
        ([says(raw_pool(uid="another"))], 1, ["GET"]),
        ([GET, CONFLICT] * 5, 1, ["GET", "PATCH"] * 5),
    ],
    ids=["once", "conflict", "refused", "gone", "another pool", "conflicts for ever"],
)
def test_a_status_is_written_once_and_failures_are_tried_again(
    answers: list[Any], calls: int, methods: list[str]
) -> None:
    assert methods_asked(*answers, calls=calls) == methods
