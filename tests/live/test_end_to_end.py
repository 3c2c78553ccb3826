"""The controller on a real cluster, from pods that wait to nodes that are gone."""

import asyncio

from tests.live.control_plane import ControlPlane
from tests.live.trial import Trial, deployment, pool


def test_pods_that_wait_get_nodes_and_nodes_that_are_not_needed_go(running_cluster: ControlPlane) -> None:
    async def story() -> None:
        async with Trial(running_cluster) as trial:
            await trial.make(pool())
            trial.start()
            await trial.make(deployment("web", 6))

            async def all_run(count: int) -> bool:
                return len(await trial.running()) == count

            await trial.until("six pods run", lambda: all_run(6))
            await trial.scale("web", 0)

            async def empty() -> bool:
                return not await trial.nodes() and not await trial.claims()

            await trial.until("all nodes are gone", empty, seconds=60)

    asyncio.run(story())
