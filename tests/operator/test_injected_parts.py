"""What a caller adds to the operator: pages are served at once, also while no API server answers."""

import asyncio

import aiohttp
from aiohttp import web
from structlog.testing import capture_logs
from tests.factories import default_catalog
from tests.kube.scripted_server import ScriptedServer, refuses

from karpool.observability.serving import Address, Page
from karpool.operator.operator import Operator
from karpool.operator.settings import RunSettings

ANY_PORT = Address("127.0.0.1", 0)


async def hello(request: web.Request) -> web.Response:
    return web.Response(text=f"hello {request.query['name']}")


async def answer(path: str, *, together: bool) -> str:
    """What an operator with one more page answers, on an address of its own or on that of the metrics."""
    page = Page("/hello", ANY_PORT if together else Address("localhost", 0), hello)
    settings = RunSettings(metrics_address=ANY_PORT, health_address=None)
    async with ScriptedServer(refuses(500, "InternalError")) as server:
        operator = Operator(settings, server.target(), lambda _nodes, _claims, _pools: default_catalog(), pages=[page])
        stop = asyncio.Event()
        with capture_logs() as logs:
            task = asyncio.create_task(operator.run(stop))
            async with asyncio.timeout(10):
                while not logs:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        started = next(line for line in logs if line["event"] == "controller starting")
        assert (started["hello"] == started["metrics"]) is together
        async with aiohttp.ClientSession() as session, session.get(f"http://{started['hello']}{path}") as response:
            text = await response.text()
        stop.set()
        await asyncio.wait_for(task, 10)
    return text


def test_a_page_is_served_beside_the_metrics() -> None:
    assert asyncio.run(answer("/hello?name=you", together=True)) == "hello you"


def test_a_page_may_have_an_address_of_its_own() -> None:
    assert asyncio.run(answer("/hello?name=me", together=False)) == "hello me"
