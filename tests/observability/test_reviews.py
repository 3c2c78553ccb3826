"""Who may read a page beyond the loopback interface: the API server says it, and is not asked more than need be."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from structlog.testing import capture_logs
from tests.kube.scripted_server import Answer, ScriptedServer, refuses, says

from karpool.observability import reviews
from karpool.observability.reviews import KEPT_SECONDS, OUTAGE_SECONDS, REFUSED_SECONDS, TokenReviews

TOKEN = "prometheus-token"  # noqa: S105
USER = {"username": "prometheus", "uid": "1", "groups": ["scrapers"], "extra": {"pod": ["p-0"]}}
KNOWN = says({"status": {"authenticated": True, "user": USER}}, status=201)
UNKNOWN = says({"status": {"authenticated": False, "error": "expired"}}, status=201)
MAY = says({"status": {"allowed": True}}, status=201)
MAY_NOT = says({"status": {"allowed": False}}, status=201)
DENIED = says({"status": {"allowed": True, "denied": True}}, status=201)
AWAY = refuses(500, "InternalError")


class Gate:
    """A guard in front of a page, and its clock."""

    def __init__(self, guard: TokenReviews, server: ScriptedServer) -> None:
        self.server = server
        self.now = 0.0
        self._guard = guard
        guard._clock = lambda: self.now

    async def ask(self, authorization: str | None = f"Bearer {TOKEN}", path: str = "/metrics") -> tuple[int, str]:
        headers = {} if authorization is None else {"Authorization": authorization}
        refusal = await self._guard(make_mocked_request("GET", path, headers))
        if refusal is None:
            return 200, ""
        assert isinstance(refusal, web.Response)
        return refusal.status, (refusal.text or "").strip()


def ask(answers: list[Answer], story: Callable[[Gate], Coroutine[Any, Any, None]], **options: Any) -> ScriptedServer:
    async def run() -> ScriptedServer:
        async with ScriptedServer(*answers) as server, server.client(**options) as client:
            await story(Gate(TokenReviews(client), server))
        return server

    with capture_logs():
        return asyncio.run(run())


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer  ", "Basic YTpi", TOKEN])
def test_without_a_token_the_api_server_is_not_even_asked(authorization: str | None) -> None:
    async def story(gate: Gate) -> None:
        assert (await gate.ask(authorization))[0] == 401

    assert ask([KNOWN], story).requests == []


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([KNOWN, MAY], (200, "")),
        ([KNOWN, MAY_NOT], (403, "prometheus may not get /metrics")),
        ([KNOWN, DENIED], (403, "prometheus may not get /metrics")),
        ([UNKNOWN], (401, "the token is not valid")),
        ([AWAY], (503, "the API server cannot be asked about the token")),
        ([KNOWN, refuses(403, "Forbidden")], (503, "the API server cannot be asked about the token")),
    ],
)
def test_the_api_server_decides(answers: list[Answer], expected: tuple[int, str]) -> None:
    async def story(gate: Gate) -> None:
        assert await gate.ask() == expected

    ask(answers, story)


def test_the_reviews_name_the_token_the_user_and_the_path_and_are_asked_for_without_the_lead() -> None:
    async def story(gate: Gate) -> None:
        assert (await gate.ask())[0] == 200

    tokens, access = ask([KNOWN, MAY], story, write_gate=lambda: False).requests
    assert (tokens.path, tokens.body["spec"]) == ("/apis/authentication.k8s.io/v1/tokenreviews", {"token": TOKEN})
    assert access.path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert access.body["spec"] == {
        "user": "prometheus",
        "uid": "1",
        "groups": ["scrapers"],
        "extra": {"pod": ["p-0"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


def test_an_answer_counts_for_a_minute_and_for_its_token_and_path_only() -> None:
    async def story(gate: Gate) -> None:
        for now in (0, 1, KEPT_SECONDS - 1):
            gate.now = now
            assert (await gate.ask())[0] == 200
        assert len(gate.server.requests) == 2
        assert (await gate.ask(path="/other"))[0] == 200
        assert (await gate.ask("Bearer another"))[0] == 200
        assert len(gate.server.requests) == 6
        gate.now = KEPT_SECONDS
        assert (await gate.ask())[0] == 403
        gate.now += REFUSED_SECONDS + 1
        assert (await gate.ask())[0] == 200

    ask([KNOWN, MAY] * 3 + [KNOWN, MAY_NOT, KNOWN, MAY], story)


def test_who_was_allowed_still_is_in_an_outage_but_not_for_ever_and_nobody_else_is() -> None:
    async def story(gate: Gate) -> None:
        assert (await gate.ask())[0] == 200
        gate.now = OUTAGE_SECONDS - 1
        assert (await gate.ask())[0] == 200
        assert (await gate.ask("Bearer another"))[0] == 503
        gate.now = OUTAGE_SECONDS + 1
        assert (await gate.ask())[0] == 503

    ask([KNOWN, MAY, AWAY], story)


def test_a_flood_of_tokens_asks_a_few_questions_at_a_time_and_is_not_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reviews, "_MOST_KEPT", 16)

    async def story(gate: Gate) -> None:
        answers = await asyncio.gather(*(gate.ask(f"Bearer guess-{number}") for number in range(400)))
        statuses = [status for status, _ in answers]
        assert set(statuses) == {401, 503}
        assert statuses.count(503) >= 400 - reviews._MOST_WAITING
        assert len(gate.server.requests) <= reviews._MOST_WAITING
        assert len(gate._guard._kept) == reviews._MOST_KEPT

    ask([UNKNOWN], story)


def test_no_token_is_kept_or_logged() -> None:
    async def story(gate: Gate) -> None:
        await gate.ask()
        assert TOKEN not in repr(gate._guard._kept)

    with capture_logs() as logs:
        ask([AWAY], story)
    assert TOKEN not in str(logs)
