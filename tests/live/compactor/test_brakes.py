"""Brakes of the compactor on a real API server, and what a person sees of them."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.live.compactor.trial import ENABLED, QUICK, CompactorTrial, node, play
from tests.live.control_plane import ControlPlane
from tests.live.test_brakes import running_pod

from karpool.compaction.config import Config, PoolConfig
from karpool.compaction.explain import explain
from karpool.compaction.rates import LEDGER, LEDGER_KEY
from karpool.compactor.ledger_map import read_drain_ledger
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.kube.clock import utc_now
from karpool.kube.errors import NotFoundError
from karpool.live import resources as r
from karpool.live.reading import COMPACTED, read_cluster
from karpool.live.resources import PLAIN_CONFIG_MAPS
from karpool.model.labels import PAUSE_MAP

pytestmark = pytest.mark.kubernetes
PAUSE = {"metadata": {"name": PAUSE_MAP}, "data": {"reason": "incident 42"}}


async def _braked(trial: CompactorTrial, code: str) -> None:
    """Wait until the metrics show a brake, or with an empty code none."""

    async def shown() -> bool:
        ((compactor, _),) = trial.operators.values()
        metrics = [metric for metric in compactor.metrics.registry.collect() if metric.name.endswith("_brakes")]
        held = {sample.labels["brake"] for metric in metrics for sample in metric.samples}
        return held == ({code} if code else set())

    await trial.until(f"the metrics show {code or 'no brake'}", shown, 20)


def test_a_pause_keeps_a_drain_from_starting_and_takes_one_back(control_plane: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        await trial.make(node("spare", "small"), node("big", "large"))
        # The API server taints new nodes, and no controller takes that away here; nor does a kubelet let the pod go.
        await trial.change("Node", "big", {"spec": {"taints": None}})
        await running_pod(trial, "web-0", "spare")
        await trial.configure(small=ENABLED)
        await trial.client.create(PLAIN_CONFIG_MAPS, PAUSE, namespace="default")
        try:
            with capture_logs() as logs:
                trial.start()
                await _braked(trial, "Paused")
                await trial.expect_marked("spare")
                assert not (await trial.node("spare")).spec.unschedulable
                await trial.client.delete(PLAIN_CONFIG_MAPS, PAUSE_MAP, namespace="default")
                await trial.expect_begun("spare")
                await _braked(trial, "")
                await trial.client.create(PLAIN_CONFIG_MAPS, PAUSE, namespace="default")
                said = "its scale-down was given up: ConfigMap default/karpool-pause: pauses everything: incident 42"
                assert await trial.until_told("Paused", "spare") == said
                assert not (await trial.node("spare")).spec.unschedulable
            told = [(entry["event"], entry["code"]) for entry in logs if entry["event"].startswith("brake")]
            assert told == [("brake holds", "Paused"), ("brake released", "Paused"), ("brake holds", "Paused")]
        finally:
            with suppress(NotFoundError):
                await trial.client.delete(PLAIN_CONFIG_MAPS, PAUSE_MAP, namespace="default")

    play(control_plane, scenario)


def test_an_unhealthy_cluster_keeps_its_nodes(control_plane: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        lost = [node(f"lost-{number}", "large") for number in range(4)]
        for each in lost:
            each["metadata"]["labels"]["karpenter.sh/initialized"] = "true"  # else they could be starting
            each["status"]["conditions"][0]["status"] = "False"
        await trial.make(node("spare", "small"), node("big", "large"), *lost)
        await trial.configure(small=ENABLED)
        trial.start()
        await _braked(trial, "ClusterUnhealthy")
        await trial.expect_marked("spare")
        assert not (await trial.node("spare")).spec.unschedulable
        for each in lost:
            status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
            await trial.change("Node", each["metadata"]["name"], status, subresource="status")
        await trial.expect_begun("spare")

    play(control_plane, scenario)


def test_a_rate_holds_over_a_restart_and_nothing_starts_when_the_ledger_cannot_be_read(
    control_plane: ControlPlane,
) -> None:
    rated = replace(QUICK, brakes=BrakeSettings(most_nodes_per_hour=1))

    async def told(trial: CompactorTrial, name: str) -> list[str]:
        objects = (await read_cluster(trial.client, resources=COMPACTED)).objects
        pools = Config(node_pools={"small": PoolConfig(enabled=True, cpu_limit=0.75, required_count=1)})
        ledger, _ = await read_drain_ledger(trial.client, "default")
        return [str(reason.code) for reason in explain(objects, pools, utc_now(), name, rated, ledger=ledger).reasons]

    async def scenario(trial: CompactorTrial) -> None:
        await trial.make(node("first", "small"), node("second", "small"), node("big", "large"))
        await trial.configure(small=ENABLED)
        try:
            task = trial.start()
            await trial.expect_drained("first")
            await trial.stop(task)
            await trial.client.delete(r.NODES, "first")  # as the autoscaler does
            with capture_logs() as logs:
                task = trial.start()
                await trial.until("it says why", lambda: _said(logs, "RateReached"), 20)
                assert await told(trial, "second") == ["RateReached"]
                await trial.client.merge_patch(
                    PLAIN_CONFIG_MAPS, LEDGER, {"data": {LEDGER_KEY: "{"}}, namespace="default"
                )
                await trial.until("it says what cannot be read", lambda: _said(logs, "RateInvalid"), 20)
            assert await told(trial, "second") == ["RateInvalid"]
            assert not (await trial.node("second")).spec.unschedulable
            await trial.client.delete(PLAIN_CONFIG_MAPS, LEDGER, namespace="default")
            await trial.expect_begun("second")
        finally:
            with suppress(NotFoundError):
                await trial.client.delete(PLAIN_CONFIG_MAPS, LEDGER, namespace="default")

    play(control_plane, scenario, compaction=rated)


async def _said(logs: list[Any], code: str) -> bool:
    """Whether a pass found a node that stays for this reason."""
    return any(code in entry.get("reasons", {}) for entry in logs)
