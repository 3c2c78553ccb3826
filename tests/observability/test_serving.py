"""Pages over HTTP: metrics, health, and those of the caller."""

import asyncio

import pytest
from aiohttp import ClientSession, web

from karpool.observability.metrics import Metrics
from karpool.observability.serving import Address, ListenError, Page, Probe, metrics_page, probe_page, serving
from karpool.wire.problems import InputError

ANY_PORT = Address("127.0.0.1", 0)


def healthy(path: str, address: Address | None = ANY_PORT) -> Page:
    return probe_page(path, address, lambda: None)


async def fetch(address: Address, path: str) -> tuple[int, str, str]:
    async with ClientSession() as session, session.get(f"http://{address}{path}") as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


def test_metrics_are_served_as_prometheus_asks() -> None:
    metrics = Metrics()
    metrics.node_created("general")

    async def scrape() -> tuple[int, str, str]:
        async with serving([metrics_page(ANY_PORT, metrics.page)]) as bound:
            return await fetch(bound["/metrics"], "/metrics")

    status, kind, text = asyncio.run(scrape())
    assert status == 200
    assert kind.startswith("text/plain; version=0.0.4")
    assert 'karpool_nodes_created_total{nodepool="general"} 1.0' in text


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        (lambda: None, (200, "ok\n")),
        (lambda: "no decision for 95 s", (503, "no decision for 95 s\n")),
    ],
)
def test_a_probe_says_what_is_wrong(probe: Probe, expected: tuple[int, str]) -> None:
    async def ask() -> tuple[int, str]:
        async with serving([probe_page("/healthz", ANY_PORT, probe)]) as bound:
            status, _, text = await fetch(bound["/healthz"], "/healthz")
            return status, text

    assert asyncio.run(ask()) == expected


def test_a_page_of_the_caller_sees_the_request() -> None:
    async def greet(request: web.Request) -> web.Response:
        return web.Response(text=f"hello {request.query['name']}")

    async def ask() -> tuple[int, str, str]:
        async with serving([healthy("/healthz"), Page("/hello", ANY_PORT, greet)]) as bound:
            return await fetch(bound["/hello"], "/hello?name=you")

    status, _, text = asyncio.run(ask())
    assert (status, text) == (200, "hello you")


def test_paths_of_one_address_share_a_port_and_switched_off_ones_are_nowhere() -> None:
    async def ask() -> tuple[dict[str, Address], int, int]:
        pages = [healthy("/metrics", None), healthy("/healthz"), healthy("/readyz")]
        async with serving(pages) as bound:
            ready, *_ = await fetch(bound["/readyz"], "/readyz")
            missing, *_ = await fetch(bound["/healthz"], "/metrics")
            return bound, ready, missing

    bound, ready, missing = asyncio.run(ask())
    assert set(bound) == {"/healthz", "/readyz"}
    assert bound["/healthz"] == bound["/readyz"]
    assert bound["/healthz"].port > 0
    assert (ready, missing) == (200, 404)


def test_a_port_that_is_taken_is_named() -> None:
    async def twice() -> None:
        async with serving([healthy("/")]) as bound, serving([healthy("/", bound["/"])]):
            pass

    with pytest.raises(ListenError, match=r"cannot listen on 127\.0\.0\.1:\d+"):
        asyncio.run(twice())


def test_the_port_is_free_again_afterwards() -> None:
    async def one_after_another() -> tuple[Address, Address]:
        async with serving([healthy("/")]) as first:
            pass
        async with serving([healthy("/", first["/"])]) as second:
            return first["/"], second["/"]

    first, second = asyncio.run(one_after_another())
    assert first == second


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        (":9101", Address("", 9101)),
        ("[::1]:80", Address("::1", 80)),
        ("localhost:0", Address("localhost", 0)),
        ("0", None),
    ],
)
def test_an_address_is_read_as_users_write_it(text: str, expected: Address | None) -> None:
    assert Address.read(text, "--metrics-address") == expected


@pytest.mark.parametrize("text", ["", "8080", "host:", "host:http", "host:70000", "host:-1"])
def test_what_is_no_address_is_refused_by_the_name_of_its_option(text: str) -> None:
    with pytest.raises(InputError, match="--metrics-address"):
        Address.read(text, "--metrics-address")
