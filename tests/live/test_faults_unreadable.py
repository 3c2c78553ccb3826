"""A Node that cannot be read any more, on a real API server: its claim waits, and goes when the Node can be read."""

import asyncio
import time

from tests.live.control_plane import ControlPlane
from tests.live.invariants import in_pool
from tests.live.proxy import Proxy
from tests.live.trial import Trial, deployment, play, pool

from karpool.model.labels import TERMINATION_FINALIZER

_WATCHED = 3.0
"""How long nothing may happen: a drain of these pods takes a third of it."""


def without_size(name: str, line: bytes) -> bytes:
    """A line of an answer in which the size of a node is no map."""
    if b'"kind":"Node"' not in line or f'"name":"{name}"'.encode() not in line:
        return line
    return line.replace(b'"capacity":{', b'"capacity":7,"lost":{', 1)


async def touch(trial: Trial, name: str) -> None:
    """Write something on a node that nobody reads, and let everybody hear of it."""
    await trial.change("Node", name, {"metadata": {"labels": {"touched": str(time.monotonic_ns())}}})
    await asyncio.sleep(1.0)


def test_a_claim_whose_node_cannot_be_read_is_not_given_up(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pool("one"), deployment("one", 2, **in_pool("one")))
        async with Proxy(trial.target) as proxy:
            trial.start(target=proxy.target)
            before = {pod.metadata.uid for pod in await trial.until_running(2)}
            await trial.until_initialized()
            (node,) = await trial.nodes()
            (claim,) = await trial.claims()
            proxy.rewrite = lambda line: without_size(node.name, line)
            await touch(trial, node.name)
            await trial.delete("NodeClaim", claim.name)

            async def told() -> bool:
                return bool(await trial.events("Unreadable", claim.name))

            await trial.until("people are told that the claim waits", told)
            (event,) = await trial.events("Unreadable", claim.name)
            assert f"Node {node.name} cannot be read: status.capacity: expected a mapping" in event.message
            await asyncio.sleep(_WATCHED)
            (held,) = [entry for entry in await trial.claims() if entry.name == claim.name]
            assert TERMINATION_FINALIZER in held.metadata.finalizers
            assert node.name in [entry.name for entry in await trial.nodes() if not entry.terminating]
            assert {pod.metadata.uid for pod in await trial.running()} == before
            proxy.rewrite = lambda line: line
            await touch(trial, node.name)

            async def gone() -> bool:
                return claim.name not in [entry.name for entry in await trial.claims()]

            await trial.until("the claim is gone", gone)
            after = {pod.metadata.uid for pod in await trial.until_running(2)}
            assert not before & after
            assert node.name not in [entry.name for entry in await trial.nodes()]

    play(running_cluster, scenario)
