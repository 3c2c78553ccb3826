"""The compactor does not trust its own clock, nor a cache before it drains a node."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.live.compactor.trial import ENABLED, QUICK, CompactorTrial, node, play
from tests.live.control_plane import ControlPlane
from tests.live.proxy import Proxy
from tests.live.trial import deployment, guarded_pod

from karpool.model.labels import DO_NOT_DISRUPT

HOUR = timedelta(hours=1)


async def one_node_to_spare(trial: CompactorTrial) -> None:
    await trial.make(node("spare", "small"), deployment("web", 1, cpu="500m"))
    await trial.until_running(1)
    await trial.make(node("big", "large"))
    await trial.configure(small=ENABLED)


def test_a_node_with_a_pod_that_no_watch_tells_of_is_not_drained(running_cluster: ControlPlane) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        await one_node_to_spare(trial)
        async with Proxy(trial.target) as proxy:
            trial.start(target=proxy.target, compaction=replace(QUICK, needed_marked_time=timedelta(seconds=4)))
            await trial.expect_marked("spare")
            proxy.stalled.add("pods")
            await trial.make(guarded_pod("spare"))
            said = await trial.until_told("PodDoNotDisrupt", "spare")
            assert said == f"its drain waits: Pod default/guarded has {DO_NOT_DISRUPT}"
            await asyncio.sleep(2)
            assert not (await trial.node("spare")).spec.unschedulable
            assert not [write for write in proxy.writes if "eviction" in write]

    play(running_cluster, scenario)


def test_marks_carry_the_time_of_the_server_though_the_local_clock_is_an_hour_ahead(
    running_cluster: ControlPlane,
) -> None:
    async def scenario(trial: CompactorTrial) -> None:
        await one_node_to_spare(trial)
        trial.start(wall=lambda: datetime.now(UTC) + HOUR)
        mark = await trial.expect_marked("spare")
        assert mark.marked_at is not None
        assert abs(datetime.now(UTC) - mark.marked_at) < timedelta(minutes=2)

    play(running_cluster, scenario)
