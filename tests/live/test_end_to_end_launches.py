"""Launches that fail on a real cluster: shortages, errors, and nodes that never register."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.live.control_plane import ControlPlane
from tests.live.invariants import in_pool, wait_until_settled
from tests.live.trial import NODE_CLASS, SETTINGS, Trial, deployment, machines, play, pool

from karpool.model.labels import INSTANCE_TYPE, NODEPOOL
from karpool.operator.kwok_node_class import FAILURES, LAUNCH_DELAY, SHORTAGES
from karpool.wire.objects import condition

IMPATIENT = replace(SETTINGS, execution=replace(SETTINGS.execution, launch_timeout=timedelta(seconds=6)))


def test_a_machine_that_cannot_be_had_gives_way_to_the_next_cheapest(running_cluster: ControlPlane) -> None:
    """A shortage of one type is worked around; where nothing else is allowed, the claim goes and says why."""

    async def scenario(trial: Trial) -> None:
        await _conduct(trial, {SHORTAGES: "c-2x-*/*/*"})
        only = {"template": {"spec": {"requirements": machines("c-2x")}}}
        await trial.make(pool("free"), pool("narrow", **only))
        trial.start()
        await trial.make(deployment("web", 1, **in_pool("free")), deployment("picky", 1, **in_pool("narrow")))
        await trial.until_running(1)
        (node,) = await trial.nodes()
        assert node.metadata.labels[INSTANCE_TYPE] == "s-2x-amd64-linux"

        async def claim_says_why() -> bool:
            events = await trial.events("InsufficientCapacityError")
            return any(event.involved_object.name.startswith("narrow-") for event in events)

        async def only_one() -> bool:
            return len(await trial.claims()) == 1

        await trial.until("the claim says that nothing can be had", claim_says_why)
        await trial.until("the claim without a machine is gone", only_one)
        # Nobody asks in vain while the shortage lasts.
        await asyncio.sleep(1.5)
        assert await only_one()

    play(running_cluster, scenario)


def test_a_launch_that_fails_is_tried_again(running_cluster: ControlPlane) -> None:
    """While launches fail the claim says so; when they work again it gets its machine."""

    async def scenario(trial: Trial) -> None:
        await _conduct(trial, {FAILURES: "1"})
        await trial.make(pool())
        trial.start()
        await trial.make(deployment("web", 1))

        async def failing() -> bool:
            launched = [condition(claim.status.conditions, "Launched") for claim in await trial.claims()]
            return any(entry is not None and entry.reason == "LaunchFailed" for entry in launched)

        await trial.until("the claim says that its launch failed", failing)
        (claim,) = await trial.claims()
        await _conduct(trial, {FAILURES: "0"})
        await trial.until_running(1)
        assert [node.name for node in await trial.nodes()] == [claim.name]

    play(running_cluster, scenario)


def test_a_launch_that_hangs_stalls_only_itself_and_leaves_nothing_behind(running_cluster: ControlPlane) -> None:
    """Others get their nodes meanwhile; the claim is given up when its time is over, and so is the next."""

    async def scenario(trial: Trial) -> None:
        slow = NODE_CLASS | {"metadata": {"name": "slow", "annotations": {LAUNCH_DELAY: "10m"}}}
        ref = {"template": {"spec": {"nodeClassRef": {"name": "slow"}}}}
        await trial.make(slow, pool("slow", **ref), pool("quick"))
        trial.start()
        await trial.make(deployment("waits", 1, **in_pool("slow")))
        await trial.until("the slow claim is there", lambda: _has_claims(trial, "slow"))
        (stuck,) = await trial.claims()
        await trial.make(deployment("web", 2, **in_pool("quick")))
        await trial.until_running(2, seconds=10)
        assert stuck.name in {claim.name for claim in await trial.claims()}

        async def given_up() -> bool:
            return stuck.name not in {claim.name for claim in await trial.claims()}

        await trial.until("the stuck claim is given up", given_up)
        await trial.until("its pod asks again", lambda: _has_claims(trial, "slow"))
        await trial.scale("waits", 0)
        await wait_until_settled(trial, {"slow": 0, "quick": 1})

    play(running_cluster, scenario, IMPATIENT)


async def _conduct(trial: Trial, annotations: dict[str, Any]) -> None:
    """Have the machines of the default class behave in some way from now on."""
    await trial.change("KWOKNodeClass", "default", {"metadata": {"annotations": annotations}})


async def _has_claims(trial: Trial, pool_name: str) -> bool:
    return any(claim.metadata.labels.get(NODEPOOL) == pool_name for claim in await trial.claims())
