"""Upkeep: a part that fails takes neither the others nor the process with it."""

import asyncio

import pytest
from structlog.testing import capture_logs
from tests.kube.virtual_time import run_virtually

from karpool.kube.errors import ApiError, ServerError
from karpool.operator.upkeep import Upkeep


def times_done(error: Exception, seconds: float) -> tuple[list[float], list[float], list[str]]:
    """When a part that fails and a part that works are done, and which were unexpected failures."""
    broken: list[float] = []
    fine: list[float] = []
    unexpected: list[str] = []

    async def story() -> None:
        clock = asyncio.get_running_loop().time
        start = clock()

        async def fails() -> None:
            broken.append(clock() - start)
            raise error

        async def works() -> None:
            fine.append(clock() - start)

        upkeep = Upkeep({"list": fails, "gauges": works}, on_unexpected=unexpected.append, clock=clock)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(upkeep.run(), seconds)

    with capture_logs():
        run_virtually(story())
    return broken, fine, unexpected


@pytest.mark.parametrize("error", [KeyError("zone"), TimeoutError(), ServerError(500, "InternalError", "no")])
def test_a_part_that_fails_is_done_again_with_back_off_and_the_others_go_on(error: Exception) -> None:
    broken, fine, unexpected = times_done(error, 3600)
    assert len(fine) == 720
    assert 12 < len(broken) < 40
    assert broken[-1] - broken[-2] > 145
    assert unexpected == ([] if isinstance(error, ApiError) else ["list"] * len(broken))
