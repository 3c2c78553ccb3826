"""The compactor's configuration: looked for, read again when it changes, and never replaced by one that is broken."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs
from tests.live.compactor.trial import ENABLED, QUICK, CompactorTrial, mounted, node, play
from tests.live.control_plane import ControlPlane

from karpool.compaction.config import KEY, Config, PoolConfig
from karpool.compactor.compactor import Compactor

BROKEN = '{"nodePools": {"small": {"enabled": "yes"}}}'
PATIENT = {"compaction": replace(QUICK, needed_marked_time=timedelta(hours=1))}
"""Nodes are marked, but not cordoned within a test."""


def written(**pools: Any) -> str:
    return json.dumps({"nodePools": pools})


def valid(compactor: Compactor) -> float | None:
    return compactor.metrics.registry.get_sample_value("karpool_compactor_config_valid")


def test_without_a_configuration_nothing_is_done_and_a_broken_one_never_replaces_a_good_one(
    control_plane: ControlPlane,
) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        await trial.make(node("spare", "small"))
        compactor = trial.compactor(task := trial.start())

        async def waits(for_what: str) -> None:
            async def says() -> bool:
                return for_what in (compactor.unready() or "")

            await trial.until(f"it says {for_what}", says)

        await waits(f"ConfigMap default/{trial.config_map}: does not exist")
        assert valid(compactor) == 0
        await trial.configure(BROKEN)
        await waits("nodePools.small.enabled: expected true or false")
        assert (await trial.node("spare")).metadata.annotations == {}
        await trial.configure(small=ENABLED)
        await trial.expect_marked("spare")
        assert (compactor.unready(), valid(compactor)) == (None, 1)

        await trial.configure(BROKEN)

        async def broken() -> bool:
            return valid(compactor) == 0

        await trial.until("the broken configuration was seen", broken)
        assert compactor.unready() is None
        assert compactor.config.current == Config({"small": PoolConfig(True, 0.75, 1)})  # noqa: FBT003
        events = await trial.events("InvalidConfiguration", trial.config_map)
        assert [(event.type, KEY in event.message) for event in events] == [("Warning", True)]
        await trial.configure(small=ENABLED | {"enabled": False})
        await trial.expect_unmarked("spare")
        assert valid(compactor) == 1
        await trial.stop(task)

    play(control_plane, scenario, **PATIENT)


def test_a_mounted_config_map_is_read_again_when_its_link_is_swapped(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    file = mounted(tmp_path, written(small=ENABLED))

    async def scenario(trial: CompactorTrial) -> None:
        await trial.make(node("spare", "small"))
        task = trial.start()
        await trial.expect_marked("spare")
        mounted(tmp_path, written(small=ENABLED | {"enabled": False}))
        await trial.expect_unmarked("spare")
        await trial.stop(task)

    play(control_plane, scenario, config_file=file, **PATIENT)


def test_a_problem_is_told_once_and_a_pool_without_nodes_once_for_each_configuration(
    control_plane: ControlPlane,
) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        await trial.make(node("spare", "small"))
        with capture_logs() as logs:
            task = trial.start()

            def logged(event: str) -> list[Any]:
                return [line for line in logs if line["event"] == event and line["log_level"] != "debug"]

            async def until(event: str, times: int = 1) -> None:
                async def was_logged() -> bool:
                    return len(logged(event)) >= times

                await trial.until(f"{event} was logged {times} times", was_logged)

            await until("waiting for a configuration")
            assert len(logged("waiting for the API server")) == 1
            assert "nodes" in logged("waiting for the API server")[0]["kinds"]
            assert [line for line in logs if "does not exist" in str(line)] == logged("configuration rejected")
            await trial.configure(smal=ENABLED, large={"enabled": False})
            await until("cluster evaluated")
            await asyncio.sleep(2.5)  # looks again
            await trial.configure(smaal=ENABLED)
            await until("configured pool has no nodes", 2)
            await trial.configure(small=ENABLED)
            await until("cluster evaluated", 2)
            await trial.stop(task)
        warned = logged("configured pool has no nodes")
        assert [(line["pool"], line["there_are"]) for line in warned] == [("smal", ["small"]), ("smaal", ["small"])]
        looked = [line["reasons"] for line in logged("cluster evaluated")]
        assert looked == [{"PoolNotEnabled": 1}, {"MarkedTooShort": 1}]

    play(control_plane, scenario, **PATIENT)
