"""Answers of an API server: what it never sends is refused before it fills the memory."""

import gzip
import json
from typing import Any

import pytest
from tests.kube.scripted_server import ScriptedServer, failure, raw_object, run_against, says, streams

from karpool.kube import answers
from karpool.kube.client import Client
from karpool.kube.errors import ConflictError, UnreadableError
from karpool.live.resources import NODES

NODE = json.dumps(raw_object("a")).encode()


def packed(body: bytes, **more: Any) -> Any:
    return says(gzip.compress(body), Content_Encoding="gzip", **more)


def expect_unreadable(body: bytes, message: str, encoding: str = "gzip") -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        with pytest.raises(UnreadableError, match=message):
            await client.get(NODES, "a")

    server = run_against([says(body, Content_Encoding=encoding)], scenario)
    assert len(server.requests) == 1, "it is not asked for again"


def test_a_compressed_answer_is_asked_for_and_read() -> None:
    async def scenario(server: ScriptedServer, client: Client) -> None:
        assert (await client.get(NODES, "a")).name == "a"
        assert server.requests[0].headers["Accept-Encoding"] == "gzip"

    run_against([packed(NODE)], scenario)


def test_an_answer_that_grows_as_no_manifest_does_is_refused() -> None:
    expect_unreadable(gzip.compress(b" " * (2**26 + 2**20)), "unpacks to more than 200 times its size")


def test_an_answer_that_is_too_long_is_refused_whether_compressed_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "LARGEST_ANSWER", 2**20)
    expect_unreadable(b" " * 2**21, "larger than", encoding="identity")
    expect_unreadable(gzip.compress(b" " * 2**21), "larger than")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (gzip.compress(NODE)[:-12], "cut short"),
        (gzip.compress(NODE) + b"more", "more after its end"),
        (b"not gzip", "cannot be unpacked"),
    ],
    ids=["cut", "longer", "not gzip"],
)
def test_a_damaged_answer_is_refused(body: bytes, message: str) -> None:
    expect_unreadable(body, message)


def test_an_encoding_that_nobody_asked_for_is_refused() -> None:
    expect_unreadable(NODE, "encoded as 'br'", encoding="br")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (json.dumps(failure(409, "Conflict", "it has changed")).encode(), "it has changed"),
        (b" " * (2**26 + 2**20), "409"),
    ],
    ids=["reason", "bomb"],
)
def test_a_refusal_says_why_when_it_is_compressed_and_keeps_its_kind_when_it_is_a_bomb(
    body: bytes, message: str
) -> None:
    async def scenario(_: ScriptedServer, client: Client) -> None:
        with pytest.raises(ConflictError, match=message):
            await client.merge_patch(NODES, "a", {})

    run_against([packed(body, status=409)], scenario)


def test_a_watch_is_asked_for_plain_and_refused_when_compressed() -> None:
    async def scenario(server: ScriptedServer, client: Client) -> None:
        assert [event async for event in client.watch(NODES, "1")] == []
        assert server.requests[0].headers["Accept-Encoding"] == "identity"
        with pytest.raises(UnreadableError, match="encoded as 'gzip'"):
            await anext(client.watch(NODES, "1"))

    run_against([streams(), packed(b"{}\n")], scenario)
