"""The compactor on a real cluster, from a node that is under-used to one that the autoscaler has removed."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from structlog.testing import capture_logs
from tests.live.compactor.trial import ENABLED, QUICK, CompactorTrial, node, play
from tests.live.control_plane import ControlPlane
from tests.live.trial import budget, deployment

from karpool.compaction.marks import ANNOTATION


async def one_node_to_spare(trial: CompactorTrial, pods: int = 2) -> None:
    """Pods on the node `spare` of the pool `small`, and room for them on `big`."""
    await trial.make(node("spare", "small"), deployment("web", pods, cpu="500m"))
    await trial.until_running(pods)
    assert set(await trial.places()) == {"spare"}
    await trial.make(node("big", "large"))
    await trial.configure(small=ENABLED)


async def killed_after_the_cordon(trial: CompactorTrial) -> None:
    """Let a compactor begin, and kill it before it asks any pod to leave."""
    task = trial.start(compaction=replace(QUICK, drain_interval=timedelta(minutes=1)))
    await trial.expect_begun("spare")
    await trial.kill(task)


async def moved(trial: CompactorTrial, pods: int) -> None:
    """Wait until all pods run on `big`."""

    async def there() -> bool:
        return await trial.places() == ["big"] * pods

    await trial.until("all pods run on big", there)


def test_a_node_is_marked_then_cordoned_and_drained_and_forgotten_once_removed(running_cluster: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        await one_node_to_spare(trial)
        task = trial.start()
        marked = await trial.expect_marked("spare")
        assert not marked.in_progress
        assert not (await trial.node("spare")).spec.unschedulable
        await trial.expect_begun("spare")
        await moved(trial, 2)
        await trial.expect_drained("spare")
        assert "its 2 pods have other places" in await trial.until_told("ScaleDownStarted", "spare")
        assert "the autoscaler can remove it" in await trial.until_told("Drained", "spare")
        mark = json.loads((await trial.node("spare")).metadata.annotations[ANNOTATION])
        assert mark | {"lastUpdated": "", "drainedAt": ""} == {
            "markedForRemoval": False,
            "markedAt": "",
            "scaleDownInProgress": True,
            "lastUpdated": "",
            "drainedAt": "",
        }
        assert 'node="spare"' in trial.compactor(task).metrics.page().decode()
        await trial.delete("Node", "spare")  # as the autoscaler does

        async def forgotten() -> bool:
            page = trial.compactor(task).metrics.page().decode()
            return 'node="spare"' not in page and 'node="big",nodepool="large"' in page

        await trial.until("the removed node has no series", forgotten)
        assert (await trial.mark("big")).marked is False
        await trial.stop(task)

    play(running_cluster, scenario)


def test_a_budget_may_refuse_and_a_restart_changes_nothing(running_cluster: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        await one_node_to_spare(trial)
        await killed_after_the_cordon(trial)
        await trial.make(budget("web", minAvailable=2))
        began = (await trial.mark("spare")).updated

        task = trial.start()
        metrics = trial.compactor(task).metrics

        async def refused() -> bool:
            labels = {"verb": "evict", "resource": "pods", "code": "429"}
            return (metrics.registry.get_sample_value("karpool_api_requests_total", labels) or 0) >= 4

        await trial.until("both evictions were refused twice", refused)
        assert await trial.places() == ["spare", "spare"]
        assert (await trial.mark("spare")).updated == began
        await trial.change("PodDisruptionBudget", "web", {"spec": {"minAvailable": 1}})
        await moved(trial, 2)
        await trial.expect_drained("spare")
        await trial.stop(task)

    play(running_cluster, scenario)


def test_a_drain_that_stalls_is_given_up_and_the_node_left_alone(running_cluster: ControlPlane) -> None:
    impatient = replace(QUICK, drain_timeout=timedelta(seconds=3))

    async def scenario(trial: CompactorTrial) -> None:
        await one_node_to_spare(trial)
        await killed_after_the_cordon(trial)
        await trial.make(budget("web", maxUnavailable=0))
        task = trial.start()
        given_up = await trial.expect_given_up("spare")
        assert "did not leave in time" in await trial.until_told("DrainStalled", "spare")
        assert await trial.places() == ["spare", "spare"]
        assert given_up.retry_after is not None
        assert given_up.retry_after > datetime.now(UTC) + timedelta(minutes=50)
        await trial.delete("PodDisruptionBudget", "web")
        await trial.expect_marked("spare")
        await asyncio.sleep(3)
        assert not (await trial.mark("spare")).in_progress
        await trial.stop(task)

    play(running_cluster, scenario, compaction=impatient)


def test_a_node_that_is_needed_again_takes_pods_again(running_cluster: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        await one_node_to_spare(trial)
        task = trial.start()
        await trial.expect_drained("spare")
        await trial.scale("web", 10)  # eight fit on `big`
        await trial.expect_given_up("spare")
        assert "its pool needs it again: Pod default/web-" in await trial.until_told("PoolFilledUp", "spare")
        await trial.until_running(10)
        await trial.stop(task)

    play(running_cluster, scenario)


def test_pods_are_deleted_past_budgets_where_that_is_wanted(running_cluster: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        await one_node_to_spare(trial)
        await trial.make(budget("web", maxUnavailable=0))
        await trial.configure(small=ENABLED | {"respectPodDisruptionBudgets": False})
        task = trial.start()
        await moved(trial, 2)
        await trial.expect_drained("spare")
        await trial.stop(task)

    play(running_cluster, scenario)


def test_a_pool_that_is_disabled_meanwhile_gets_its_node_back(running_cluster: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        await one_node_to_spare(trial)
        task = trial.start()
        await trial.expect_drained("spare")
        await trial.configure(small=ENABLED | {"enabled": False})
        await trial.expect_given_up("spare")
        await trial.stop(task)

    play(running_cluster, scenario)


def test_a_dry_run_comes_to_the_same_choice_and_writes_nothing(running_cluster: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        await one_node_to_spare(trial)
        with capture_logs() as logs:
            task = trial.start(dry_run=True)

            async def chosen() -> bool:
                return any(line.get("action") == "cordon" for line in logs)

            await trial.until("a node would be cordoned", chosen)
            await asyncio.sleep(2)
            await trial.stop(task)
        done = [line for line in logs if line["event"] == "action skipped in a dry run"]
        assert [(line["action"], line["node"]) for line in done] == [
            ("mark", "spare"),
            ("cordon", "spare"),
            ("tell", "spare"),
        ]
        spare = await trial.node("spare")
        assert ANNOTATION not in spare.metadata.annotations
        assert not spare.spec.unschedulable
        assert await trial.told("ScaleDownStarted", "spare") == []

    play(running_cluster, scenario)
