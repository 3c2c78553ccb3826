"""What a webhook gets of the controller and of the compactor on a real API server, and that neither waits for it."""

import asyncio
from dataclasses import replace

import pytest
from aiohttp import web
from tests.kube.scripted_server import ScriptedServer, says
from tests.live.compactor.trial import ENABLED, CompactorTrial, node
from tests.live.compactor.trial import play as play_compactor
from tests.live.control_plane import ControlPlane
from tests.live.test_brakes import ASKS, BESIDE_KARPENTER, claim_goes, machine, pools, story
from tests.live.trial import Trial

from karpool.model import labels as names
from karpool.observability.webhook_address import WebhookAddress

pytestmark = pytest.mark.kubernetes


def told(server: ScriptedServer) -> list[str]:
    return [request.body["event"] for request in server.requests]


def told_of(server: ScriptedServer) -> WebhookAddress:
    return WebhookAddress.read(f"{server.url}/hook", "--notify", form=None)


def test_a_pause_and_a_command_are_told_in_their_order(control_plane: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        async with ScriptedServer(says({})) as server:
            await trial.make(pools({**ASKS, names.PAUSED: "upgrade"}))
            await machine(trial, "empty")
            trial.start(replace(BESIDE_KARPENTER, webhook=told_of(server)))

            async def paused() -> bool:
                return told(server) == ["Paused"]

            await trial.until("the pause is told", paused, 20)
            await trial.change("NodePool", "default", {"metadata": {"annotations": {names.PAUSED: None}}})
            await claim_goes(trial, "empty")

            async def all_told() -> bool:
                return told(server)[:3] == ["Paused", "Resumed", "CommandStarted"]

            await trial.until("the command is told", all_told, 20)
            first, _, started = server.requests[:3]
            assert first.body["details"]["nodePool"] == "default"
            assert started.body["details"]["nodes"] == ["empty"]
            ((operator, _),) = trial.operators.values()
            assert b'karpool_notifications_total{result="delivered"}' in operator.metrics.page()

    story(control_plane, scenario, BESIDE_KARPENTER)


def test_a_receiver_that_hangs_keeps_no_node(control_plane: ControlPlane) -> None:
    async def hangs(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(300)
        return web.Response()

    async def scenario(trial: Trial) -> None:
        async with ScriptedServer(hangs) as server:
            await trial.make(pools())
            await machine(trial, "empty")
            trial.start(replace(BESIDE_KARPENTER, webhook=told_of(server)))
            await claim_goes(trial, "empty")

            async def asked() -> bool:
                return bool(server.requests)

            await trial.until("the receiver is asked", asked, 20)
            assert told(server)[:1] == ["CommandStarted"]

    story(control_plane, scenario, BESIDE_KARPENTER)


def test_a_drain_of_the_compactor_is_told(control_plane: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        async with ScriptedServer(says({})) as server:
            await trial.make(node("spare", "small"), node("big", "large"))
            await trial.configure(small=ENABLED)
            trial.start(webhook=told_of(server))
            await trial.expect_drained("spare")

            async def all_told() -> bool:
                return told(server)[:2] == ["DrainStarted", "DrainFinished"]

            await trial.until("the drain is told", all_told, 20)
            assert server.requests[0].body["details"]["object"] == "Node spare"

    play_compactor(control_plane, scenario)
