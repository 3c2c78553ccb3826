"""Rates and the harm check on a real cluster, with the reasons that a person sees."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from tests.live.control_plane import ControlPlane
from tests.live.trial import SETTINGS, Trial, budget, deployment, journal, machines, play, pool, with_journal

from karpool.cli.main import cli
from karpool.disruption.brakes.ledger import ledger_of
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.live import resources as r
from karpool.model.labels import DISRUPTIONS, HARM, MAX_EVICTIONS
from karpool.model.nodepool import NodePool
from karpool.operator.settings import RunSettings

LATE = {"disruption": {"consolidateAfter": "Never"}, "template": {"spec": {"requirements": machines("c-2x")}}}
LATER = {"spec": {"disruption": {"consolidateAfter": "0s"}}}
SECOND = timedelta(seconds=1)


def braked(path: Path, **brakes: Any) -> RunSettings:
    settings = replace(SETTINGS.decisions, search="prefix", brakes=BrakeSettings(**brakes))
    return with_journal(path, replace(SETTINGS, decisions=settings))


async def the_pool(trial: Trial) -> NodePool:
    return await trial.client.get(r.NODE_POOLS, "default")


async def told(trial: Trial, reason: str, about: str, words: str) -> None:
    """Wait for an Event on an object that has some words."""

    async def seen() -> bool:
        return any(words in event.message for event in await trial.events(reason, about))

    await trial.until(f"{about} says {reason}: {words}", seen)


def explained(trial: Trial, node: str, *flags: str) -> str:
    """What `karpool explain` says about a node."""
    arguments = ["explain", node, "--kubeconfig", str(trial.plane.kubeconfig()), "--search", "prefix"]
    result = CliRunner().invoke(cli, [*arguments, *flags, "--output", "json"])
    assert result.exit_code == 0, result.output
    return result.output


def test_one_node_an_hour_goes_and_a_new_controller_keeps_to_it(running_cluster: ControlPlane, tmp_path: Path) -> None:
    path = tmp_path / "journal"

    async def scenario(trial: Trial) -> None:
        await trial.make(pool(**LATE), deployment("web", 2))
        task = trial.start()
        await trial.until_running(2)
        await trial.until_nodes(2)
        await trial.until_initialized()
        await trial.scale("web", 0)
        await trial.change("NodePool", "default", LATER)
        (node,) = await trial.until_nodes(1)
        sentence = "1 nodes were disrupted in the last hour, and the limit is 1 (--max-nodes-per-hour): there is room"
        await told(trial, "RateReached", "default", sentence)
        await trial.stop(task)
        trial.start()

        async def holds_again() -> bool:
            return len([line for line in journal(path, "Brake") if line["brake"] == "RateReached"]) == 2

        await trial.until("the new controller holds the brake", holds_again)
        await told(trial, "Unconsolidatable", node.name, f"RateReached: Cluster {sentence}")
        assert sentence in await asyncio.to_thread(explained, trial, node.name, "--max-nodes-per-hour", "1")
        await trial.until_nodes(1)
        assert len(journal(path, "Begun")) == 1
        assert [line["savingsPerHour"] > 0 for line in journal(path, "Completed")] == [True]
        (entry,) = ledger_of(await the_pool(trial))
        assert (entry.nodes, entry.evictions, entry.committed) == (1, 0, True)

    play(running_cluster, scenario, braked(path, most_nodes_per_hour=1))


def test_a_namespace_keeps_its_pods_until_its_annotation_can_be_read(
    running_cluster: ControlPlane, tmp_path: Path
) -> None:
    async def annotate(trial: Trial, value: str | None) -> None:
        await trial.change("Namespace", "default", {"metadata": {"annotations": {MAX_EVICTIONS: value}}})

    async def scenario(trial: Trial) -> None:
        await annotate(trial, "ten")
        try:
            await trial.make(pool(disruption={"consolidateAfter": "0s"}), deployment("web", 7))
            trial.start()
            await trial.until_running(7)
            (large,) = await trial.until_nodes(1)
            await trial.scale("web", 1)
            flaw = "Namespace default metadata.annotations[karpool.sh/max-evictions-per-hour]: 'ten' is not allowed"
            await told(trial, "Unconsolidatable", large.name, f"RateInvalid: {flaw}; write a whole number such as 10")
            await annotate(trial, "1")

            async def replaced() -> bool:
                return large.name not in {node.name for node in await trial.nodes()}

            await trial.until("a smaller node takes its place", replaced)
            (entry,) = ledger_of(await the_pool(trial))
            assert entry.pods == {"default": 1}
        finally:
            await annotate(trial, None)

    play(running_cluster, scenario, braked(tmp_path / "journal"))


def test_a_pool_whose_moved_pods_are_not_ready_stops_and_goes_on_when_they_are(
    running_cluster: ControlPlane, tmp_path: Path
) -> None:
    path = tmp_path / "journal"

    async def ready(trial: Trial, status: str) -> None:
        for pod in await trial.running():
            conditions = [{"type": kind, "status": status} for kind in ("ContainersReady", "Ready")]
            await trial.change("Pod", pod.name, {"status": {"conditions": conditions}}, subresource="status")

    async def scenario(trial: Trial) -> None:
        await trial.make(pool(disruption={"consolidateAfter": "0s"}), deployment("web", 7))
        trial.start()
        await trial.until_running(7)
        (large,) = await trial.until_nodes(1)
        await trial.scale("web", 1)

        async def moved() -> bool:
            gone = large.name not in {node.name for node in await trial.nodes()}
            return gone and len(await trial.running()) == 1

        await trial.until("the pod has moved", moved)
        await ready(trial, "False")
        (begun,) = journal(path, "Begun")
        (pod,) = await trial.running()
        sentence = (
            f"is stopped: command {begun['id']} (SingleNodeConsolidation of {large.name}) has done harm: {pod.key}"
        )
        await told(trial, "HarmDone", "default", sentence)
        (node,) = await trial.until_nodes(1)
        assert sentence in await asyncio.to_thread(explained, trial, node.name)
        assert json.loads((await the_pool(trial)).metadata.annotations[HARM])["command"] == begun["id"]
        await ready(trial, "True")
        await told(trial, "HarmDoneEnded", "default", f"no longer: is stopped: command {begun['id']}")
        annotations = (await the_pool(trial)).metadata.annotations
        assert HARM not in annotations
        assert DISRUPTIONS in annotations

    settings = braked(path, harmed_pods=1, harm_after=SECOND, harm_cool_down=2 * SECOND)
    play(running_cluster, scenario, settings)


def test_a_pool_stops_when_a_budget_refuses_evictions_for_long_and_goes_on_when_they_are_allowed(
    running_cluster: ControlPlane, tmp_path: Path
) -> None:
    """A drifted node with a termination grace period goes whatever PodDisruptionBudgets say, and hangs in its drain."""
    path = tmp_path / "journal"
    spec = {"requirements": machines("c-2x"), "terminationGracePeriod": "1h"}
    one_at_a_time = {"consolidateAfter": "1s", "budgets": [{"nodes": "1"}]}

    async def scenario(trial: Trial) -> None:
        await trial.make(pool(template={"spec": spec}, disruption=one_at_a_time))
        await trial.make(deployment("web", 2), budget("web", maxUnavailable=0))
        trial.start()
        pods = {pod.spec.node_name: pod for pod in await trial.until_running(2)}
        await trial.until_nodes(2)
        await trial.until_initialized()
        await trial.change("NodePool", "default", {"spec": {"template": {"metadata": {"labels": {"team": "new"}}}}})

        async def drains() -> bool:
            return any(node.metadata.deletion_timestamp for node in await trial.nodes())

        await trial.until("a drifted node drains", drains)
        (begun,) = journal(path, "Begun")
        (old,) = begun["nodes"]
        (other,) = pods.keys() - {old}
        sentence = (
            f"is stopped: command {begun['id']} (Drift of {old}) has done harm: {pods[old].key} is not let go from "
            f"node {old}, which drains since "
        )
        await told(trial, "HarmDone", "default", sentence)
        assert sentence in await asyncio.to_thread(explained, trial, other)
        assert {pod.key for pod in await trial.running()} == {pod.key for pod in pods.values()}
        await trial.delete("PodDisruptionBudget", "web")
        await told(trial, "HarmDoneEnded", "default", f"no longer: is stopped: command {begun['id']}")
        assert HARM not in (await the_pool(trial)).metadata.annotations

    settings = braked(path, harmed_pods=1, harm_after=3 * SECOND, harm_cool_down=2 * SECOND)
    play(running_cluster, scenario, settings)
