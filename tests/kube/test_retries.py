"""Which requests are retried, and after how long."""

import asyncio

import pytest
from tests.kube.scripted_server import (
    QUICK,
    Answer,
    ScriptedServer,
    hangs_up,
    raw_object,
    refuses,
    run_against,
    says,
)

from karpool.kube.client import Client
from karpool.kube.errors import (
    ApiError,
    TooManyRequestsError,
)
from karpool.live.resources import NODES


@pytest.mark.parametrize("answer", [refuses(429, "TooManyRequests"), refuses(500, "InternalError"), hangs_up()])
def test_reads_are_asked_again(answer: Answer) -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        assert (await client.get(NODES, "a")).name == "a"

    run_against([answer, answer, says(raw_object("a"))], scenario)


def test_reads_wait_as_long_as_the_server_asks_for() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def scenario(_: ScriptedServer, client: Client) -> None:
        await client.get(NODES, "a")

    by_header = refuses(429, "TooManyRequests", headers={"Retry_After": "3"})
    by_status = refuses(503, "ServiceUnavailable", details={"retryAfterSeconds": 4})
    run_against([by_header, by_status, says(raw_object("a"))], scenario, sleep=sleep)
    assert waits == [3, 4]


def test_reads_are_given_up_when_patience_ends() -> None:
    async def scenario(server: ScriptedServer, client: Client) -> None:
        with pytest.raises(TooManyRequestsError) as caught:
            await client.get(NODES, "a")
        assert caught.value.retry_after == 60
        assert len(server.requests) == 1

    run_against([refuses(429, "TooManyRequests", headers={"Retry_After": "60"})], scenario)


def test_a_throttled_write_is_sent_again_after_the_time_asked_for() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def scenario(_: ScriptedServer, client: Client) -> None:
        await client.merge_patch(NODES, "a", {"spec": {}})

    throttled = says("Too many requests, please try again later.", status=429, Retry_After="1")
    assert len(run_against([throttled, says(raw_object("a"))], scenario, sleep=sleep).requests) == 2
    assert waits == [1]


@pytest.mark.parametrize("answer", [refuses(429, "TooManyRequests"), refuses(500, "InternalError"), hangs_up()])
def test_a_write_that_may_have_worked_is_not_sent_again(answer: Answer) -> None:
    async def scenario(server: ScriptedServer, client: Client) -> None:
        with pytest.raises(ApiError):
            await client.merge_patch(NODES, "a", {"spec": {}})
        assert len(server.requests) == 1

    run_against([answer, says(raw_object("a"))], scenario)


def test_a_write_is_sent_again_when_nobody_was_there() -> None:
    async def scenario() -> None:
        async with ScriptedServer(says(raw_object("a"))) as gone:
            target = gone.target()
        waits = 0

        async def sleep(_: float) -> None:
            nonlocal waits
            waits += 1
            if waits == 3:
                raise KeyboardInterrupt

        async with Client(target, timeouts=QUICK, sleep=sleep) as client:
            with pytest.raises(KeyboardInterrupt):
                await client.create(NODES, raw_object("a"))

    asyncio.run(scenario())
