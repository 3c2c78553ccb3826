"""Several edits of one object: what each changes stays changed."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
from tests.factories.nodes import node_claim
from tests.kube.scripted_server import QUICK, ScriptedServer, says

from karpool.controller.store import ClusterStore
from karpool.execution.actions import Annotate, ClearClaimCondition, SetClaimCondition
from karpool.kube.cache import CacheFeed, ChangeQueue
from karpool.live.writer import CacheFeeds, Writer
from karpool.wire.objects import encode_value


def test_conditions_that_are_written_first_are_not_brought_back_by_those_that_come_later() -> None:
    """A list is written whole, and between the two is an edit of another part."""
    claim = msgspec.to_builtins(node_claim("c1"), enc_hook=encode_value)
    claim["metadata"]["resourceVersion"] = "1"
    now = "2026-01-01T00:00:00Z"
    claim["status"]["conditions"] = [
        {"type": "Rebooting", "status": "True", "reason": "RebootIssued", "message": "", "lastTransitionTime": now},
        {"type": "DisruptionReason", "status": "True", "reason": "Unhealthy", "message": "", "lastTransitionTime": now},
    ]
    edits = [
        SetClaimCondition("c1", "Rebooting", "False", "RebootSucceeded", "the node is back"),
        Annotate("NodeClaim", "c1", "karpool.sh/note", "done"),
        ClearClaimCondition("c1", "DisruptionReason"),
    ]

    async def written() -> list[Any]:
        async with ScriptedServer(says(claim)) as server, server.client(timeouts=QUICK) as client:
            feeds = CacheFeeds({"NodeClaim": CacheFeed(ClusterStore().claims, ChangeQueue())})
            await Writer(client, feeds, lambda: datetime.now(UTC)).edit(edits)
            return [request.body for request in server.requests if request.method == "PATCH"]

    first, note, last = asyncio.run(written())
    assert [entry["type"] for entry in first["status"]["conditions"]] == ["Rebooting", "DisruptionReason"]
    assert note["metadata"]["annotations"] == {"karpool.sh/note": "done"}
    (left,) = last["status"]["conditions"]
    assert (left["type"], left["status"], left["reason"]) == ("Rebooting", "False", "RebootSucceeded")
