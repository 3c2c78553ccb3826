"""Watches that are open and silent: what they do not bring is read before anything is removed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.live.control_plane import ControlPlane
from tests.live.proxy import Proxy
from tests.live.trial import Trial, deployment, guarded_pod, journal, play, pool, with_journal

from karpool.kube.watch_probe import ProbeTimes
from karpool.live import caches


def test_a_pod_that_must_not_be_disrupted_saves_its_node_though_no_watch_tells_of_it(
    running_cluster: ControlPlane, tmp_path: Path
) -> None:
    path = tmp_path / "journal"

    async def scenario(trial: Trial) -> None:
        async with Proxy(trial.target) as proxy:
            await trial.make(pool(disruption={"consolidateAfter": "6s"}), deployment("web", 1))
            trial.start(with_journal(path), target=proxy.target)
            await trial.until_running(1)
            await trial.until_initialized()
            (node,) = await trial.nodes()
            await trial.scale("web", 0)
            await trial.until_running(0)
            await asyncio.sleep(0.5)  # for the watch
            proxy.stalled.add("pods")
            await trial.make(guarded_pod(node.name))

            async def dropped() -> bool:
                return bool(journal(path, "Dropped"))

            await trial.until("a command is dropped", dropped)
            (line, *_) = journal(path, "Dropped")
            assert (line["reasons"][0]["code"], line["reasons"][0]["object"]) == (
                "PodDoNotDisrupt",
                "Pod default/guarded",
            )
            await asyncio.sleep(2)
            (there,) = await trial.nodes()
            assert there.metadata.uid == node.metadata.uid
            assert not there.terminating
            assert not there.spec.taints
            assert not [write for write in proxy.writes if write.startswith("DELETE") and "nodeclaims" in write]
            proxy.stalled.clear()
            await trial.delete("Pod", "guarded")
            await trial.until_nodes(0)

    play(running_cluster, scenario)


def test_a_watch_that_is_silent_stops_disruption_until_it_brings_news_again(
    running_cluster: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    monkeypatch.setattr(caches, "PROBES", ProbeTimes(after=1.0, again=0.5, length=1.0, grace=2.0, silent=6.0))

    async def scenario(trial: Trial) -> None:
        async with Proxy(trial.target) as proxy:
            await trial.make(pool(disruption={"consolidateAfter": "0s"}), deployment("web", 1))
            trial.start(with_journal(path), target=proxy.target)
            await trial.until_running(1)
            await trial.until_initialized()
            await asyncio.sleep(3)  # most watches have nothing to say
            assert not brakes()
            proxy.stalled.add("persistentvolumes")
            await trial.until("a brake holds", held)
            (brake,) = brakes()
            assert (brake["brake"], brake["holds"]) == ("WatchInDoubt", True)
            assert "what is known of persistentvolumes is in doubt: its watch" in brake["message"]
            assert await trial.events("WatchInDoubt", "default")
            await trial.scale("web", 0)
            await trial.until_running(0)
            await asyncio.sleep(2)
            assert not journal(path, "Begun")
            assert len(await trial.nodes()) == 1
            proxy.stalled.clear()
            await trial.until_nodes(0)
            assert [line["holds"] for line in brakes()] == [True, False]

    def brakes() -> list[dict[str, Any]]:
        return journal(path, "Brake")

    async def held() -> bool:
        return bool(brakes())

    play(running_cluster, scenario)
