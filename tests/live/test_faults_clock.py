"""The controller's clock is wrong, or is set while it runs."""

from datetime import UTC, datetime, timedelta

from tests.live.control_plane import ControlPlane
from tests.live.fault_scenarios import command_begins, expect_replaced_and_clean, grown, shrink
from tests.live.trial import Trial, play

HOUR = timedelta(hours=1)


class _Wall:
    """A clock that may be set."""

    def __init__(self, ahead: timedelta) -> None:
        self.ahead = ahead

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def test_a_clock_that_is_wrong_and_jumps_forward_and_back_strands_nothing(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        wall = _Wall(HOUR)
        async with grown(trial, wall=wall) as monitor:
            for name, ahead in (("one", 2 * HOUR), ("two", -HOUR)):
                await shrink(trial, name)
                await command_begins(trial, name)
                wall.ahead = ahead
            await shrink(trial, "three")
            await expect_replaced_and_clean(trial, monitor)

    play(running_cluster, scenario)
