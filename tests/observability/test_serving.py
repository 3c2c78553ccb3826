"""Pages over HTTP: metrics, health, and those of the caller."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiohttp import ClientSession, web
from tests.kube.replicas import Replica, time_until_leading
from tests.kube.test_election import MemoryLeaseLock

from karpool.kube.election import LeaderElector, LeaseTimes
from karpool.observability import connections
from karpool.observability.connections import MOST_CONNECTIONS
from karpool.observability.metrics import Metrics
from karpool.observability.serving import Address, ListenError, Page, Probe, metrics_page, probe_page, serving
from karpool.wire.problems import InputError

ANY_PORT = Address("127.0.0.1", 0)
EVERYWHERE = Address("0.0.0.0", 0)  # noqa: S104


def healthy(path: str, address: Address | None = ANY_PORT) -> Page:
    return probe_page(path, address, lambda: None)


async def fetch(address: Address, path: str) -> tuple[int, str, str]:
    async with ClientSession() as session, session.get(f"http://{address}{path}") as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


def test_metrics_are_served_as_prometheus_asks() -> None:
    metrics = Metrics()
    metrics.node_created("general", "z1")

    async def scrape() -> tuple[int, str, str]:
        async with serving([metrics_page(ANY_PORT, metrics.page)]) as bound:
            return await fetch(bound["/metrics"], "/metrics")

    status, kind, text = asyncio.run(scrape())
    assert status == 200
    assert kind.startswith("text/plain; version=0.0.4")
    assert 'karpool_nodes_created_total{nodepool="general",zone="z1"} 1.0' in text


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


class CountedRendering:
    """Metrics that are rendered when the test says so, and how often and where that was."""

    def __init__(self) -> None:
        self.threads: list[str] = []
        self.go_on = threading.Event()

    def __call__(self) -> bytes:
        self.threads.append(threading.current_thread().name)
        assert self.go_on.wait(10), "the loop is blocked"
        return b"up 1\n"


def test_probes_are_answered_while_metrics_are_rendered() -> None:
    rendering = CountedRendering()

    async def ask() -> tuple[int, int]:
        async with serving([metrics_page(ANY_PORT, rendering), healthy("/healthz")]) as bound:
            scrape = asyncio.create_task(fetch(bound["/metrics"], "/metrics"))
            while not rendering.threads:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            healthy_status, *_ = await asyncio.wait_for(fetch(bound["/healthz"], "/healthz"), 5)
            rendering.go_on.set()
            return healthy_status, (await scrape)[0]

    assert asyncio.run(ask()) == (200, 200)
    assert rendering.threads != [threading.main_thread().name]


def test_three_hundred_clients_get_one_rendering_or_are_told_to_come_back() -> None:
    rendering = CountedRendering()

    async def scrape_all() -> list[int]:
        async with serving([metrics_page(ANY_PORT, rendering)]) as bound:
            scrapes = [asyncio.create_task(fetch(bound["/metrics"], "/metrics")) for _ in range(300)]
            await asyncio.wait(scrapes, timeout=0.5)
            rendering.go_on.set()
            return [status for status, *_ in await asyncio.gather(*scrapes)]

    statuses = asyncio.run(scrape_all())
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) >= MOST_CONNECTIONS
    assert len(rendering.threads) <= 2


def test_a_leader_whose_metrics_many_clients_scrape_goes_on_leading() -> None:
    def render() -> bytes:
        time.sleep(0.05)
        return b"up 1\n"

    async def scrape_all() -> list[str]:
        replica = Replica(LeaderElector(MemoryLeaseLock(), "a", LeaseTimes(6.0, 4.0, 0.2)))
        async with serving([metrics_page(ANY_PORT, render)]) as bound:
            replica.start()
            await time_until_leading(replica)
            await asyncio.gather(*(fetch(bound["/metrics"], "/metrics") for _ in range(300)))
            await asyncio.sleep(0.3)
            calls = list(replica.calls)
            await replica.stop()
        return calls

    # Three hundred renderings take 15 s; a lead that is not renewed lasts 4.
    assert asyncio.run(scrape_all()) == ["started"]


def test_a_rendering_that_fails_is_done_again_for_the_next_client() -> None:
    outcomes = [ValueError("a bug"), b"up 1\n"]

    def render() -> bytes:
        outcome = outcomes.pop(0)
        if isinstance(outcome, bytes):
            return outcome
        raise outcome

    async def ask() -> list[int]:
        async with serving([metrics_page(ANY_PORT, render)]) as bound:
            return [(await fetch(bound["/metrics"], "/metrics"))[0] for _ in range(3)]

    assert asyncio.run(ask()) == [500, 200, 200]


@asynccontextmanager
async def idle_connections(address: Address, number: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Connections that send nothing."""
    async with AsyncExitStack() as stack:
        readers = []
        for _ in range(number):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            stack.callback(writer.close)
            readers.append(reader)
        yield readers


def test_more_connections_than_there_are_places_are_told_to_come_back_until_one_is_free() -> None:
    async def ask() -> list[tuple[int, str]]:
        answers = []
        async with serving([healthy("/healthz")]) as bound:
            async with idle_connections(bound["/healthz"], MOST_CONNECTIONS):
                status, _, text = await fetch(bound["/healthz"], "/healthz")
                answers.append((status, text))
            await asyncio.sleep(0.1)
            status, _, text = await fetch(bound["/healthz"], "/healthz")
            return [*answers, (status, text)]

    assert asyncio.run(ask()) == [(503, "too many connections\n"), (200, "ok\n")]


def test_connections_that_are_stuck_make_room_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STUCK_SECONDS", 0.0)

    async def ask() -> tuple[int, bytes]:
        async with (
            serving([healthy("/healthz")]) as bound,
            idle_connections(bound["/healthz"], MOST_CONNECTIONS) as readers,
        ):
            status, *_ = await fetch(bound["/healthz"], "/healthz")
            return status, await asyncio.wait_for(readers[0].read(), 5)

    assert asyncio.run(ask()) == (200, b"")


def test_beyond_the_loopback_interface_pages_are_for_those_whom_the_guard_lets_pass_and_probes_for_all() -> None:
    async def guard(request: web.Request) -> web.Response | None:
        return None if request.query.get("friend") else web.Response(status=401, text="who are you?")

    async def ask(address: Address, guarded: bool) -> list[int]:  # noqa: FBT001
        pages = [metrics_page(address, lambda: b"up 1\n"), healthy("/healthz", address)]
        async with serving(pages, guard if guarded else None) as bound:
            near = Address("127.0.0.1", bound["/metrics"].port)
            return [(await fetch(near, path))[0] for path in ("/metrics", "/metrics?friend=yes", "/healthz")]

    assert asyncio.run(ask(EVERYWHERE, guarded=True)) == [401, 200, 200]
    assert asyncio.run(ask(EVERYWHERE, guarded=False)) == [403, 403, 200]
    assert asyncio.run(ask(ANY_PORT, guarded=True)) == [200, 200, 200]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *(("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("localhost", True)),
        *(("", False), ("::", False), (EVERYWHERE.host, False), ("10.0.0.1", False), ("example.com", False)),
    ],
)
def test_only_the_loopback_interface_is_for_this_machine_alone(host: str, expected: object) -> None:
    assert Address(host, 80).loopback is expected
