"""Karpool beside a real Karpenter, whose KWOK provider stands for a cloud: one disrupts, the other provisions."""

import asyncio
import json
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
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
from tests.live.trial import BRAKES, Trial, budget, deployment, machines
from tests.live.witness import Witness

from karpool.cli.main import cli
from karpool.controller.ports import Intervals
from karpool.live import resources as r
from karpool.model.node import Node
from karpool.operator.settings import LeaseSettings, RunSettings

ENSURE = Path(__file__).resolve().parents[2] / "scripts" / "ensure-karpenter"
BEFORE, AFTER, MAY_LACK = 12, 4, 1
LATE = "late"
ALONE = replace(BESIDE, lease=LeaseSettings(name=None))
ANSWERED = timedelta(seconds=2)
"""How soon somebody has to answer for NodeClaims."""
IMPATIENT = replace(BESIDE, decisions=replace(BESIDE.decisions, brakes=replace(BRAKES, answered_within=ANSWERED)))
LOOKS = Intervals(poll=2.0, patience=2.0, refresh=4.0, validation=4.0, search=6.0)
"""It looks and searches several times as often as it would, so that a second plan would come within the test."""
SHIPPED = RunSettings(
    provider="karpenter",
    dry_run=False,
    intervals=LOOKS,
    lease=LeaseSettings(name=None),
    metrics_address=None,
    health_address=None,
)
"""Decisions, brakes and drains as `karpool run --act` has them."""
POOLS = {
    "red": (("900m", "1500Mi"), ("350m", "3Gi")),
    "green": (("1200m", "2Gi"), ("600m", "1Gi")),
    "blue": (("1", "4Gi"), ("450m", "700Mi")),
}
"""By pool: CPU and memory of the pods of its two Deployments, of which all but a few go."""
MANY, FEW = 6, 3
TYPES = tuple(f"{family}-{size}x" for family in "cms" for size in (1, 2, 4))
QUIET = LOOKS.search + LOOKS.refresh + LOOKS.validation + 4
"""Seconds without a change after which the fleet rests: another search, the second look of what it finds, and more."""
LONGEST = 45.0
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


async def shrunk(trial: Trial, *names: str, after: int = AFTER) -> None:
    """Let most pods go, and wait until their budgets know: from then on, they say how many there have to be."""
    for name in names or ("web",):
        await trial.scale(name, after)

    async def holds() -> bool:
        budgets = (await trial.client.list(r.POD_DISRUPTION_BUDGETS, namespace="default")).items
        known = {(pdb.status.desired_healthy, pdb.status.current_healthy) for pdb in budgets}
        return known == {(after - MAY_LACK, after)}

    await trial.until("budgets know of the pods that are left", holds)


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


def test_with_the_decisions_that_are_shipped_a_shrink_launches_at_most_one_node_more_than_its_plan(
    running_cluster: ControlPlane, karpenter_program: Path
) -> None:
    async def whole() -> None:
        async with beside_karpenter(karpenter_program, running_cluster, SHIPPED) as (trial, _):
            for name in POOLS:
                await trial.make(shared_pool(name, template={"spec": {"requirements": machines(*TYPES)}}))
            apps = {f"{name}-{number}": (name, size) for name in POOLS for number, size in enumerate(POOLS[name])}
            for app, (name, (cpu, memory)) in apps.items():
                pods = deployment(app, MANY, cpu=cpu, memory=memory, **in_pool(name))
                await trial.make(budget(app, maxUnavailable=MAY_LACK), pods)
            await trial.until_running(MANY * len(apps))
            await trial.until_initialized()
            await shrunk(trial, *apps, after=FEW)
            await asyncio.sleep(1.5)  # longer than `consolidateAfter`, so that the plan sees what Karpool will
            before, planned = await cost(trial), await launches_of_the_plan(trial)
            async with Witness(trial) as witness:
                trial.start()
                launched, gone = await launches_until_it_rests(trial)
            assert len(launched) <= planned + 1, f"launched {launched}, and the plan has {planned}"
            assert not gone, f"launched, and taken away again: {gone}"
            assert witness.begun, "Karpool has begun nothing"
            assert witness.looks, "nobody has looked at the budgets"
            assert not witness.broken, witness.broken
            await rests_cheaper(trial, before)

    asyncio.run(whole())


async def launches_of_the_plan(trial: Trial) -> int:
    """How many nodes `karpool plan` would launch for the cluster as it is."""
    options = ["--kubeconfig", str(trial.plane.kubeconfig()), "--catalog", "kwok", "--annotated-budgets"]
    shown = await asyncio.to_thread(CliRunner().invoke, cli, ["plan", "--output", "json", *options])
    assert shown.exit_code == 0, shown.stderr
    commands = json.loads(shown.stdout)["commands"]
    assert commands, "there is nothing to gain"
    return sum(len(command["replacements"]) for command in commands)


async def launches_until_it_rests(trial: Trial) -> tuple[set[str], set[str]]:
    """The NodeClaims that came until nothing had changed for a while, and those of them that went."""
    began = last = time.monotonic()
    first = {claim.name for claim in await trial.claims()}
    launched: set[str] = set()
    gone: set[str] = set()
    state: object = None
    while (now := time.monotonic()) - last < QUIET:
        assert now - began < LONGEST + QUIET, f"it does not rest\n{await trial.picture()}"
        claims = await trial.claims()
        names = {claim.name for claim in claims}
        staying = {claim.name for claim in claims if claim.metadata.deletion_timestamp is None}
        launched |= names - first
        gone |= launched - staying
        places = {pod.key: pod.spec.node_name for pod in await trial.pods()}
        if (current := (names, staying, places)) != state:
            state, last = current, now
        await asyncio.sleep(0.5)
    return launched, gone
