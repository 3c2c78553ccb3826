"""Karpool beside a real Karpenter, whose KWOK provider stands for a cloud: one disrupts, the other provisions."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.live.control_plane import ControlPlane
from tests.live.invariants import RuleMonitor
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
from tests.live.trial import Trial, budget, deployment

from karpool.model.node import Node
from karpool.operator.settings import LeaseSettings

ENSURE = Path(__file__).resolve().parents[2] / "scripts" / "ensure-karpenter"
BEFORE, AFTER, MAY_LACK = 12, 4, 2
ALONE = replace(BESIDE, lease=LeaseSettings(name=None))
Story = Callable[[Trial, Karpenter, RuleMonitor], Awaitable[None]]


@pytest.fixture(scope="session")
def karpenter_program() -> Path:
    """Karpenter with its KWOK provider; `make conformance` builds it, never this."""
    run = subprocess.run([ENSURE, "--no-build", "karpenter"], capture_output=True, text=True, check=False)  # noqa: S603 - our own script
    if run.returncode:
        pytest.skip(f"NOT TESTED: Karpool beside a real Karpenter. {run.stderr.strip()}")
    return Path(run.stdout.splitlines()[-1]) / "karpenter"


def play(plane: ControlPlane, program: Path, story: Story, *, karpenters: Iterable[dict[str, str]] = NOBODY) -> None:
    """Run a story in a cluster of pods that have a budget, in one pool."""

    async def whole() -> None:
        async with beside_karpenter(program, plane) as (trial, karpenter):
            pdb = budget("web", maxUnavailable=MAY_LACK)
            await trial.make(shared_pool(karpenters=karpenters), pdb, deployment("web", BEFORE))
            await trial.until_running(BEFORE)
            await trial.until_initialized()
            monitor = RuleMonitor(trial, healthy={"web": AFTER - MAY_LACK}, leaving={})
            async with monitor:
                await story(trial, karpenter, monitor)

    asyncio.run(whole())


async def cost(trial: Trial) -> float:
    return price(await trial.nodes(), trial.catalog)


def test_after_a_shrink_the_fleet_is_cheaper_though_karpool_was_killed_three_times(
    running_cluster: ControlPlane, karpenter_program: Path
) -> None:
    async def story(trial: Trial, _karpenter: Karpenter, monitor: RuleMonitor) -> None:
        before = await cost(trial)
        await trial.scale("web", AFTER)
        for write, sent in ((2, True), (1, False), (2, False)):
            kill_switch = KillSwitch()
            kill_switch.arm(write, sent=sent)
            task = trial.start(ALONE, make_client=kill_switch.client)
            await asyncio.wait_for(kill_switch.killed.wait(), 30)
            await trial.kill(task)
        trial.start(ALONE)
        await rests_cheaper(trial, monitor, before)
        assert len(await trial.running()) == AFTER

    play(running_cluster, karpenter_program, story)


def test_nodes_that_drifted_from_their_template_are_replaced(
    running_cluster: ControlPlane, karpenter_program: Path
) -> None:
    async def story(trial: Trial, _karpenter: Karpenter, monitor: RuleMonitor) -> None:
        before = await cost(trial)
        await trial.scale("web", AFTER)
        await trial.change("NodePool", "default", {"spec": {"template": {"metadata": {"labels": {"team": "b"}}}}})
        trial.start()

        def relabelled(nodes: tuple[Node, ...]) -> bool:
            return all(node.metadata.labels.get("team") == "b" for node in nodes)

        await rests_cheaper(trial, monitor, before, relabelled)

    play(running_cluster, karpenter_program, story)


def test_what_was_begun_ends_well_when_karpenter_comes_back_from_the_dead(
    running_cluster: ControlPlane, karpenter_program: Path
) -> None:
    async def story(trial: Trial, karpenter: Karpenter, monitor: RuleMonitor) -> None:
        before = await cost(trial)
        await trial.scale("web", AFTER)
        trial.start()
        await asyncio.sleep(1.5)
        karpenter.kill()
        await asyncio.sleep(6)
        await asyncio.to_thread(karpenter.start)
        await rests_cheaper(trial, monitor, before)

    play(running_cluster, karpenter_program, story)


def test_where_both_disrupt_by_mistake_nothing_is_broken_or_left_behind(
    running_cluster: ControlPlane, karpenter_program: Path
) -> None:
    async def story(trial: Trial, _karpenter: Karpenter, monitor: RuleMonitor) -> None:
        before = await cost(trial)
        trial.start()
        await trial.scale("web", AFTER)
        await rests_cheaper(trial, monitor, before)

    play(running_cluster, karpenter_program, story, karpenters=EVERYBODY)
