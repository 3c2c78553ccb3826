"""Notices over real HTTP: delivered once, retried with patience, dropped rather than awaited, and silent of secrets."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from aiohttp import web
from structlog.testing import capture_logs
from tests.kube.scripted_server import ScriptedServer, says
from tests.live.programs import free_port
from tests.tables import row, table

from karpool.observability.notices import Notice, NoticeEvent, NoticeFormat, body_of
from karpool.observability.webhook import SILENT_SECONDS, Webhook, WebhookPace
from karpool.observability.webhook_address import WebhookAddress
from karpool.wire.problems import InputError

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
PATH = "T000/B000/s3cret"
QUICK = WebhookPace(timeout=2, first_retry=0.01, longest_retry=0.02, between=0)
STARTED = Notice(NoticeEvent.COMMAND_STARTED, NOW, "Removing node a: Empty", "a: removed", details={"nodes": ["a"]})


def numbered(number: int) -> Notice:
    return Notice(NoticeEvent.COMMAND_STARTED, NOW, f"Removing node {number}", "text")


def address(url: str, form: NoticeFormat | None = None) -> WebhookAddress:
    return WebhookAddress.read(f"{url}/{PATH}", "--notify", form=form)


class Sent:
    """A webhook, what came of its notices, and how long it slept."""

    def __init__(self, url: str, *notices: Notice, pace: WebhookPace = QUICK, **settings: Any) -> None:
        self.results: list[str] = []
        self.slept: list[float] = []
        self.webhook = Webhook(address(url), on_result=self.results.append, pace=pace, sleep=self.sleep, **settings)
        for notice in notices:
            self.webhook.post(notice)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    @property
    def waits(self) -> list[float]:
        """The waits before retries."""
        return [seconds for seconds in self.slept if seconds]

    @staticmethod
    async def settled(so: Callable[[], bool]) -> None:
        """Wait until something is so, for 20 seconds at most."""
        async with asyncio.timeout(20):
            while not so():  # noqa: ASYNC110 - a notice settles in the webhook, which tells nobody
                await asyncio.sleep(0.005)

    async def until(self, count: int) -> list[str]:
        """Run until so many notices are settled."""
        running = asyncio.create_task(self.webhook.run())
        try:
            await self.settled(lambda: len(self.results) >= count)
        finally:
            running.cancel()
        return self.results


def expect_answers(
    *answers: Callable[[web.Request], Awaitable[web.StreamResponse]], notices: int = 1, **settings: Any
) -> tuple[Sent, ScriptedServer]:
    """Send notices to a receiver that answers so."""

    async def scenario() -> tuple[Sent, ScriptedServer]:
        async with ScriptedServer(*answers) as server:
            sent = Sent(server.url, *map(numbered, range(notices)), **settings)
            await sent.until(notices)
            return sent, server

    return asyncio.run(scenario())


def test_a_notice_is_a_document_at_the_receiver() -> None:
    async def scenario() -> ScriptedServer:
        async with ScriptedServer(says({})) as server:
            await Sent(server.url, STARTED, program="karpool run", instance="pod-1").until(1)
            return server

    (request,) = asyncio.run(scenario()).requests
    assert (request.method, request.path) == ("POST", f"/{PATH}")
    assert request.headers["Content-Type"].startswith("application/json")
    assert request.body == {
        "apiVersion": "karpool.sh/v1",
        "kind": "Notification",
        "program": "karpool run",
        "instance": "pod-1",
        "event": "CommandStarted",
        "severity": "info",
        "time": "2026-11-15T12:00:00Z",
        "title": "Removing node a: Empty",
        "text": "a: removed",
        "details": {"nodes": ["a"]},
    }


def test_slack_gets_a_message_in_which_names_are_text() -> None:
    hostile = Notice(NoticeEvent.PAUSED, NOW, "<!channel> *x*", "a & <http://evil|click>", "warning")
    message = json.loads(body_of(hostile, NoticeFormat.SLACK, "karpool run", "pod-1"))
    assert message == {"text": ":warning: *&lt;!channel&gt; \u2217x\u2217*\na &amp; &lt;http://evil|click&gt;"}


@table(
    row("500 and then all right", statuses=[500, 200], result="delivered", tries=2),
    row("500 for ever", statuses=[500], result="failed", tries=5),
    row("429 and then all right", statuses=[429, 200], result="delivered", tries=2),
    row("400", statuses=[400], result="failed", tries=1),
    row("404: the webhook was removed", statuses=[404], result="failed", tries=1),
    row("a redirect", statuses=[302], result="failed", tries=1),
    row("no content", statuses=[204], result="delivered", tries=1),
)
def test_what_may_pass_is_tried_again_and_nothing_else(statuses: list[int], result: str, tries: int) -> None:
    sent, server = expect_answers(*(says({}, status=status, Location="/elsewhere") for status in statuses))
    assert sent.results == [result]
    assert len(server.requests) == tries
    assert {request.path for request in server.requests} == {f"/{PATH}"}
    assert len(sent.waits) == tries - 1


@table(
    row("seconds", value="7", least=7, most=7),
    row("an hour, which is too much to ask", value="3600", least=300, most=300),
    row("a date far away", value="Fri, 01 Jan 2100 00:00:00 GMT", least=300, most=300),
    row("a date that is over", value="Mon, 01 Jan 2024 00:00:00 GMT", least=0, most=0),
    row("nonsense", value="soon", least=0.001, most=0.02),
    row("a negative number", value="-5", least=0.001, most=0.02),
    row("a year beyond all calendars", value=f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT", least=0.001, most=0.02),
    row("a zone beyond all maps", value=f"Mon, 01 Jan 2024 00:00:00 +{'9' * 20}", least=0.001, most=0.02),
)
def test_a_receiver_may_say_when_to_come_again(value: str, least: float, most: float) -> None:
    sent, _ = expect_answers(says({}, status=429, Retry_After=value), says({}))
    assert sent.results == ["delivered"]
    (waited, *_) = sent.slept
    assert least <= waited <= most


def test_waits_between_tries_grow() -> None:
    pace = replace(QUICK, first_retry=1.0, longest_retry=60.0)
    sent, _ = expect_answers(says({}, status=503), pace=pace)
    assert [0.5 * 2**n <= seconds <= 2**n for n, seconds in enumerate(sent.waits)] == [True] * 4


def test_a_receiver_that_hangs_delays_nobody_who_posts() -> None:
    """The queue keeps the newest notices; the one under way is given up after its time."""

    async def hangs(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    async def scenario() -> Sent:
        async with ScriptedServer(hangs) as server:
            sent = Sent(server.url, numbered(0), capacity=3, pace=replace(QUICK, timeout=0.2, tries=2))
            running = asyncio.create_task(sent.webhook.run())
            await sent.settled(lambda: bool(server.requests))
            started = asyncio.get_running_loop().time()
            for number in range(1, 51):
                sent.webhook.post(numbered(number))
            assert asyncio.get_running_loop().time() - started < 5
            assert sent.webhook.waiting == 3
            await sent.settled(lambda: "failed" in sent.results)
            running.cancel()
            return sent

    assert asyncio.run(scenario()).results == ["dropped"] * 47 + ["failed"]


def test_a_body_that_never_ends_is_not_waited_for() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.sleep(60)
        return response

    sent, _ = expect_answers(endless)
    assert sent.results == ["delivered"]


def test_a_receiver_that_is_not_there_is_logged_by_its_host_alone() -> None:
    async def scenario() -> list[str]:
        sent = Sent(f"http://127.0.0.1:{free_port()}", numbered(1), numbered(2))
        return await sent.until(2)

    with capture_logs() as logged:
        assert asyncio.run(scenario()) == ["failed", "failed"]
    (entry,) = logged
    assert (entry["log_level"], entry["host"], entry["why"]) == ("warning", "127.0.0.1", "ClientConnectorError")
    assert "s3cret" not in str(logged)


def test_the_same_notice_is_sent_once_in_a_while() -> None:
    seconds = 0.0
    webhook = Webhook(address("http://localhost:1"), clock=lambda: seconds)
    for wait in (0.0, 1.0, SILENT_SECONDS - 2.0, 1.0):
        seconds += wait
        webhook.post(STARTED)
    assert webhook.waiting == 2


def test_a_pause_that_comes_back_is_told_though_it_was_told_just_now() -> None:
    webhook = Webhook(address("http://localhost:1"))
    held = msgspec.structs.replace(STARTED, event=NoticeEvent.PAUSED)
    let_go = msgspec.structs.replace(STARTED, event=NoticeEvent.RESUMED)
    for notice in (held, held, let_go, held):
        webhook.post(notice)
    assert webhook.waiting == 3


def test_notices_from_other_threads_wake_the_sender() -> None:
    async def scenario() -> list[str]:
        async with ScriptedServer(says({})) as server:
            sent = Sent(server.url)
            running = asyncio.create_task(sent.until(1))
            await asyncio.sleep(0.05)
            await asyncio.get_running_loop().run_in_executor(None, sent.webhook.post, STARTED)
            return await running

    assert asyncio.run(scenario()) == ["delivered"]


@table(
    row("Slack", url=f"https://hooks.slack.com/services/{PATH}", form="slack"),
    row("one that takes Slack's", url="https://discord.example/api/webhooks/1/x/slack", form="slack"),
    row("anybody", url="https://example.com/hook", form="json"),
    row("loopback without encryption", url="http://127.0.0.1:9/x", form="json"),
    row("localhost", url="http://localhost/x", form="json"),
    row("loopback of version 6", url="http://[::1]:9/x", form="json"),
)
def test_the_format_is_told_by_the_address(url: str, form: str) -> None:
    assert WebhookAddress.read(url, "--notify", form=None).form == form


@table(
    row("no encryption", url=f"http://hooks.example.com/{PATH}", said="without encryption; write https"),
    row("another scheme", url=f"ftp://example.com/{PATH}", said="is not a URL of a web server"),
    row("no scheme", url=f"example.com/{PATH}", said="is not a URL of a web server"),
    row("no host", url=f"https:///{PATH}", said="is not a URL"),
    row("no port", url=f"https://example.com:99999/{PATH}", said="is not a URL"),
    row("nothing", url="", said="is not a URL of a web server"),
    row("a name that looks like loopback", url=f"http://127.0.0.1.example.com/{PATH}", said="without encryption"),
)
def test_a_bad_address_is_told_without_its_secret(url: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        WebhookAddress.read(url, "--notify", form=None)
    assert said in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_an_address_shows_its_host_and_nothing_else() -> None:
    found = WebhookAddress.read(f"https://user:pass@example.com/{PATH}?token=s3cret", "--notify", form=None)
    assert str(found) == "example.com"
    assert "s3cret" not in repr(found)
    assert "pass" not in repr(found)
    assert WebhookAddress.read("http://example.com/x", "--notify", form=None, allow_http=True).host == "example.com"
