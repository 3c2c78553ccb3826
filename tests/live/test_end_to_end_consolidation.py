"""Consolidation on a real cluster: fewer and cheaper nodes, and no rule broken."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.live.control_plane import ControlPlane
from tests.live.invariants import RuleMonitor, wait_until_settled
from tests.live.trial import (
    SETTINGS,
    Trial,
    budget,
    deployment,
    fill_three_nodes,
    journal,
    machines,
    play,
    pool,
    with_journal,
)

from karpool.disruption.settings import GLOBAL
from karpool.model.labels import INSTANCE_TYPE

SMALL = {"spec": {"requirements": machines("c-2x")}}
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


def test_half_empty_nodes_become_fewer_while_the_budget_of_their_pods_holds(
    running_cluster: ControlPlane, tmp_path: Path
) -> None:
    """Three nodes with one pod left on each become one; the pods leave one at a time, and none is lost."""

    async def scenario(trial: Trial) -> None:
        await fill_three_nodes(trial, 3, cpu="1200m", others=[budget("web", minAvailable=2)])
        async with RuleMonitor(trial, healthy={"web": 2}, leaving={}) as monitor:
            await trial.change("NodePool", "default", {"spec": {"disruption": {"consolidateAfter": "0s"}}})
            await wait_until_settled(trial, {"default": 1})
            await trial.until_running(3)
        assert not monitor.broken
        (begun,) = journal(tmp_path / "journal", "Begun")
        assert begun["method"] == "MultiNodeConsolidation"
        assert begun["savingsPerHour"] > 0

    play(running_cluster, scenario, with_journal(tmp_path / "journal"))


def test_a_node_that_is_too_large_is_replaced_by_a_cheaper_one(running_cluster: ControlPlane, tmp_path: Path) -> None:
    """The new node is there before the old one goes, and the budget of the pods holds."""

    async def scenario(trial: Trial) -> None:
        await trial.make(pool(), budget("web", minAvailable=1))
        trial.start()
        await trial.make(deployment("web", 7))
        await trial.until_running(7)
        (large,) = await trial.until_nodes(1)
        async with RuleMonitor(trial, healthy={"web": 1}, leaving={"default": 1}) as monitor:
            await trial.scale("web", 2)
            await trial.until_running(2)
            await trial.until("the large node is gone", lambda: _gone(trial, large.name))
            await wait_until_settled(trial, {"default": 1})
        assert not monitor.broken
        (small,) = await trial.nodes()
        assert (large.metadata.labels[INSTANCE_TYPE], small.metadata.labels[INSTANCE_TYPE]) == (
            "c-8x-amd64-linux",
            "c-4x-amd64-linux",
        )
        (decision,) = [line for line in journal(tmp_path / "journal", "Decision") if line["nodes"] == [large.name]]
        assert (decision["method"], decision["decision"]) == ("SingleNodeConsolidation", "replace")
        assert decision["savingsPerHour"] > 0
        assert await trial.events("DisruptionBegan", large.name)

    play(running_cluster, scenario, with_journal(tmp_path / "journal"))


def test_a_node_is_replaced_by_two_that_are_cheaper_together(running_cluster: ControlPlane, tmp_path: Path) -> None:
    """Two pods that came together got one expensive node; both new nodes are there before it goes."""

    async def scenario(trial: Trial) -> None:
        template = {"spec": {"requirements": machines("c-4x", "m-8x")}}
        await trial.make(pool(template=template), budget("web", minAvailable=1))
        trial.start()
        await trial.make(deployment("web", 2, cpu="2500m"))
        await trial.until_running(2)
        (large,) = await trial.until_nodes(1)
        async with RuleMonitor(trial, healthy={"web": 1}, leaving={"default": 1}) as monitor:
            await trial.until("the large node is gone", lambda: _gone(trial, large.name))
            await wait_until_settled(trial, {"default": 2})
            await trial.until_running(2)
        assert not monitor.broken
        assert large.metadata.labels[INSTANCE_TYPE] == "m-8x-amd64-linux"
        assert [node.metadata.labels[INSTANCE_TYPE] for node in await trial.nodes()] == ["c-4x-amd64-linux"] * 2
        (begun,) = journal(tmp_path / "journal", "Begun")
        assert begun["savingsPerHour"] > 0

    searched = replace(SETTINGS, decisions=replace(SETTINGS.decisions, search=GLOBAL, eviction_price=0.0))
    play(running_cluster, scenario, with_journal(tmp_path / "journal", searched))


def test_a_budget_keeps_nodes_while_its_window_is_open_and_lets_them_go_one_by_one(
    running_cluster: ControlPlane,
) -> None:
    """Nothing may go for an hour from now; once that window is moved, one node at a time."""

    async def scenario(trial: Trial) -> None:
        one_node = {"nodes": "1"}
        now = datetime.now(UTC)
        budgets = [one_node, _no_disruption(now)]
        await trial.make(pool(template=SMALL, disruption={"budgets": budgets}))
        trial.start()
        await trial.make(deployment("web", 3))
        await trial.until_running(3)
        async with RuleMonitor(trial, healthy={}, leaving={"default": 0}) as shut:
            await trial.scale("web", 0)
            await trial.until_running(0)
            await asyncio.sleep(3)
            assert len(await trial.nodes()) == 3
            assert not shut.broken
        async with RuleMonitor(trial, healthy={}, leaving={"default": 1}) as opened:
            budgets = [one_node, _no_disruption(now + timedelta(hours=12))]
            await trial.change("NodePool", "default", {"spec": {"disruption": {"budgets": budgets}}})
            await trial.until_nodes(0)
        assert not opened.broken

    play(running_cluster, scenario)


def test_a_node_in_its_grace_period_is_left_alone(running_cluster: ControlPlane) -> None:
    """An empty node goes when its grace period after the last pod event is over, not before."""

    async def scenario(trial: Trial) -> None:
        grace = timedelta(seconds=6)
        await trial.make(pool(disruption={"consolidateAfter": "0s", "consolidationGracePeriod": "6s"}))
        trial.start()
        await trial.make(deployment("web", 1))
        await trial.until_running(1)
        await trial.scale("web", 0)
        await trial.until_running(0)
        marked: list[datetime] = []

        async def leaves() -> bool:
            (claim,) = await trial.claims()
            marked[:] = [time] if (time := claim.status.last_pod_event_time) is not None else []
            return claim.metadata.deletion_timestamp is not None

        await trial.until("the node goes", leaves)
        assert marked
        assert datetime.now(UTC) >= marked[0] + grace
        await trial.until_nodes(0)

    play(running_cluster, scenario)


def test_a_pod_that_must_not_be_disturbed_keeps_its_node(running_cluster: ControlPlane) -> None:
    """The node says why it stays; once the pod allows it, the node is replaced."""

    async def scenario(trial: Trial) -> None:
        await trial.make(pool())
        trial.start()
        await trial.make(_undisturbed(deployment("precious", 1)), deployment("web", 6))
        await trial.until_running(7)
        (node,) = await trial.until_nodes(1)
        await trial.scale("web", 0)
        (precious,) = await trial.until_running(1)

        async def node_says_why() -> bool:
            events = await trial.events("Unconsolidatable", node.name)
            return any("do-not-disrupt" in event.message and precious.key in event.message for event in events)

        await trial.until("the node says why it stays", node_says_why)
        assert [remaining.name for remaining in await trial.nodes()] == [node.name]
        await trial.change("Pod", precious.name, {"metadata": {"annotations": {DO_NOT_DISRUPT: None}}})
        await trial.until("the node is gone", lambda: _gone(trial, node.name))
        await trial.until_running(1)

    play(running_cluster, scenario)


def _no_disruption(start: datetime) -> dict[str, str]:
    """A budget that lets nobody go for two hours around a time of day."""
    opening = start - timedelta(hours=1)
    return {"nodes": "0", "schedule": f"{opening.minute} {opening.hour} * * *", "duration": "2h"}


def _undisturbed(manifest: dict[str, Any]) -> dict[str, Any]:
    manifest["spec"]["template"]["metadata"]["annotations"] = {DO_NOT_DISRUPT: "true"}
    return manifest


async def _gone(trial: Trial, name: str) -> bool:
    return not any(thing.name == name for thing in (*await trial.nodes(), *await trial.claims()))
