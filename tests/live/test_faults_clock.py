"""The controller's clock is wrong or is set while it runs, and servers do not agree on the time."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta

from aiohttp import web
from structlog.testing import capture_logs
from tests.live.control_plane import ControlPlane
from tests.live.fault_scenarios import command_begins, expect_replaced_and_clean, grown, shrink
from tests.live.proxy import Proxy
from tests.live.trial import Trial, deployment, play, pool

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


def test_servers_whose_clocks_are_seconds_apart_restart_nothing_and_delay_nothing(
    running_cluster: ControlPlane,
) -> None:
    async def scenario(trial: Trial) -> None:
        numbers = itertools.count()

        def skew(_request: web.Request) -> timedelta:
            return timedelta(seconds=8 * (next(numbers) % 2))

        with capture_logs() as logs:
            async with Proxy(trial.target, skew=skew) as proxy, grown(trial, target=proxy.target) as monitor:
                await shrink(trial)
                await expect_replaced_and_clean(trial, monitor)
        assert [line["event"] for line in logs].count("controller started") == 1
        assert not [line for line in logs if line["event"] == "the time is in doubt"]

    play(running_cluster, scenario)


def test_an_answer_forty_days_ahead_expires_no_node_claim(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        left = [0]

        def skew(request: web.Request) -> timedelta:
            odd = left[0] > 0 and "watch" not in request.query
            left[0] -= odd
            return timedelta(days=40 * odd)

        async def given() -> bool:
            return left[0] == 0

        template = {"spec": {"expireAfter": "720h"}}
        await trial.make(pool(template=template, disruption={"budgets": [{"nodes": "0"}]}), deployment("web", 3))
        async with Proxy(trial.target, skew=skew) as proxy:
            trial.start(target=proxy.target)
            await trial.until_running(3)
            await trial.until_initialized()
            before = {claim.metadata.uid for claim in await trial.claims()}
            for answers in (1, 6):
                left[0] = answers
                await trial.until("the wrong answers were given", given)
                await asyncio.sleep(2)
            claims = await trial.claims()
            assert {claim.metadata.uid for claim in claims} == before
            assert not any(claim.terminating for claim in claims)
            assert not [path for path in proxy.writes if path.startswith("DELETE")]

    play(running_cluster, scenario)
