"""Karpool beside a real Karpenter, whose KWOK provider stands for a cloud: one disrupts, the other provisions."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.live.control_plane import ControlPlane
from tests.live.invariants import in_pool
from tests.live.kill_switch import KillSwitch
from tests.live.real_karpenter import (
    BESIDE,
    EVERYBODY,
    NOBODY,
    Karpenter,
    beside_karpenter,
    price,
    rests_cheaper,
    shared_pool,
)
from tests.live.trial import BRAKES, Trial, budget, deployment
from tests.live.witness import Witness

from karpool.live import resources as r
from karpool.model.node import Node
from karpool.operator.settings import LeaseSettings

ENSURE = Path(__file__).resolve().parents[2] / "scripts" / "ensure-karpenter"
BEFORE, AFTER, MAY_LACK = 12, 4, 1
LATE = "late"
ALONE = replace(BESIDE, lease=LeaseSettings(name=None))
ANSWERED = timedelta(seconds=2)
"""How soon somebody has to answer for NodeClaims."""
IMPATIENT = replace(BESIDE, decisions=replace(BESIDE.decisions, brakes=replace(BRAKES, answered_within=ANSWERED)))
Story = Callable[[Trial, Karpenter, Witness], Awaitable[None]]


@pytest.fixture(scope="session")
def karpenter_program() -> Path:
    """Karpenter with its KWOK provider; `make conformance` builds it, never this."""
    run = subprocess.run([ENSURE, "--no-build", "karpenter"], capture_output=True, text=True, check=False)  # noqa: S603 - our own script
    if run.returncode:
        pytest.skip(f"NOT TESTED: Karpool beside a real Karpenter. {run.stderr.strip()}")
    return Path(run.stdout.splitlines()[-1]) / "karpenter"


def play(
    plane: ControlPlane,
    program: Path,
    story: Story,
    *,
    karpenters: Iterable[dict[str, str]] = NOBODY,
    others: int = 0,
) -> None:
    """Run a story in a pool most of whose pods have just gone; those that are left have a budget.

    `others`: pods in another pool, that nothing is wrong with yet.
    """

    async def whole() -> None:
        async with beside_karpenter(program, plane) as (trial, karpenter):
            pdb = budget("web", maxUnavailable=MAY_LACK)
            await trial.make(shared_pool(karpenters=karpenters), pdb, deployment("web", BEFORE, **in_pool("default")))
            if others:
                await trial.make(shared_pool(LATE, karpenters=karpenters), deployment(LATE, others, **in_pool(LATE)))
            await trial.until_running(BEFORE + others)
            await trial.until_initialized()
            await shrunk(trial)
            async with Witness(trial) as witness:
                await story(trial, karpenter, witness)
            assert witness.looks, "nobody has looked at the budget"
            assert not witness.broken, witness.broken

    asyncio.run(whole())


async def shrunk(trial: Trial) -> None:
    """Let most pods go, and wait until their budget knows: from then on, it says how many there have to be."""
    await trial.scale("web", AFTER)

    async def holds() -> bool:
        (pdb,) = (await trial.client.list(r.POD_DISRUPTION_BUDGETS, namespace="default")).items
        return (pdb.status.desired_healthy, pdb.status.current_healthy) == (AFTER - MAY_LACK, AFTER)

    await trial.until("the budget knows of the pods that are left", holds)


async def cost(trial: Trial) -> float:
    return price(await trial.nodes(), trial.catalog)


def test_after_a_shrink_the_fleet_is_cheaper_though_karpool_was_killed_three_times(
    running_cluster: ControlPlane, karpenter_program: Path
) -> None:
    async def story(trial: Trial, _karpenter: Karpenter, _witness: Witness) -> None:
        before = await cost(trial)
        for write, sent in ((2, True), (1, False), (2, False)):
            kill_switch = KillSwitch()
            kill_switch.arm(write, sent=sent)
            task = trial.start(ALONE, make_client=kill_switch.client)
            await asyncio.wait_for(kill_switch.killed.wait(), 30)
            await trial.kill(task)
        trial.start(ALONE)
        await rests_cheaper(trial, before)
        assert len(await trial.running()) == AFTER

    play(running_cluster, karpenter_program, story)


def test_nodes_that_drifted_from_their_template_are_replaced(
    running_cluster: ControlPlane, karpenter_program: Path
) -> None:
    async def story(trial: Trial, _karpenter: Karpenter, _witness: Witness) -> None:
        before = await cost(trial)
        await trial.change("NodePool", "default", {"spec": {"template": {"metadata": {"labels": {"team": "b"}}}}})
        trial.start()

        def relabelled(nodes: tuple[Node, ...]) -> bool:
            return all(node.metadata.labels.get("team") == "b" for node in nodes)

        await rests_cheaper(trial, before, relabelled)
        assert len(await trial.running()) == AFTER

    play(running_cluster, karpenter_program, story)


def test_nothing_begins_while_karpenter_is_dead_and_what_was_begun_ends_well_when_it_is_back(
    running_cluster: ControlPlane, karpenter_program: Path
) -> None:
    async def story(trial: Trial, karpenter: Karpenter, witness: Witness) -> None:
        before = await cost(trial)
        karpenter.kill()
        trial.start(IMPATIENT)

        async def told() -> bool:
            return bool(await trial.events("NobodyAnswers"))

        await trial.until("it is told that nobody answers", told)
        begun = list(witness.begun)
        assert begun, "a command has to begin before anybody can notice that it is not answered"
        await trial.scale(LATE, 1)
        await asyncio.sleep(5)
        assert witness.begun == begun, "commands begin though nobody answers"
        await asyncio.to_thread(karpenter.start)
        await rests_cheaper(trial, before)
        assert len(witness.begun) > len(begun)

    play(running_cluster, karpenter_program, story, others=AFTER)


def test_where_both_disrupt_by_mistake_nothing_is_broken_or_left_behind(
    running_cluster: ControlPlane, karpenter_program: Path
) -> None:
    async def story(trial: Trial, _karpenter: Karpenter, witness: Witness) -> None:
        before = await cost(trial)

        async def disrupts() -> bool:
            return bool(witness.disrupted_by_karpenter)

        await trial.until("Karpenter disrupts", disrupts)
        await trial.scale(LATE, 1)
        trial.start()
        await rests_cheaper(trial, before)
        assert witness.begun, "Karpool has begun nothing"

    play(running_cluster, karpenter_program, story, karpenters=EVERYBODY, others=AFTER)
