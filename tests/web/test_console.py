"""The clusters of a console: opened when somebody looks, and closed in good order."""

import asyncio

from karpool.web.console import Console, OpenedCluster


class SlowSource:
    """A cluster that is never read to its end, and takes its time to let go."""

    name = "slow"

    def __init__(self) -> None:
        self.happened: list[str] = []

    async def open(self) -> OpenedCluster:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            self.happened.append("let go")
        raise AssertionError

    async def close(self) -> None:
        self.happened.append("closed")


def test_a_cluster_that_is_still_being_read_lets_go_before_it_is_closed() -> None:
    async def story() -> list[str]:
        source = SlowSource()
        console = Console([source])
        looking = asyncio.create_task(console.cluster())
        await asyncio.sleep(0.01)
        looking.cancel()
        await console.close()
        return source.happened

    assert asyncio.run(story()) == ["let go", "closed"]
