"""A server with scripted responses, for what a real API server does not do on demand."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web

from karpool.kube.client import Client
from karpool.kube.credentials import Credentials, FixedCredentials
from karpool.kube.target import Target
from karpool.kube.transport import Timeouts

QUICK = Timeouts(response=2, connect=1, retries=5, first_retry=0.001, longest_retry=0.01)
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


class ScriptedServer:
    """Gives its answers in their order, the last one for ever, and records the requests."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[ReceivedRequest] = []
        self.url = ""
        self.exhausted = asyncio.Event()
        """Set when the last answer was given."""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def target(self, credentials: Credentials | None = None) -> Target:
        return Target(server=self.url, credentials=credentials or FixedCredentials())

    def client(self, **options: Any) -> Client:
        return Client(self.target(options.pop("credentials", None)), **options)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        content = json.loads(body) if body.startswith(b"{") else body
        self.requests.append(
            ReceivedRequest(request.method, request.path, dict(request.query), request.headers.copy(), content)
        )
        if len(self.answers) > 1:
            return await self.answers.pop(0)(request)
        self.exhausted.set()
        return await self.answers[0](request)


def says(body: Any, *, status: int = 200, **headers: str) -> Answer:
    """An answer with this JSON; text and bytes are sent as they are."""

    async def answer(_: web.Request) -> web.Response:
        sent = (
            body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        )
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, body=sent, headers=named, content_type="application/json")

    return answer


def refuses(status: int, reason: str, message: str = "no", **more: Any) -> Answer:
    """An answer that says no as an API server does."""
    headers = more.pop("headers", {})
    return says(failure(status, reason, message, **more), status=status, **headers)


def failure(status: int, reason: str, message: str = "no", **more: Any) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "code": status, "reason": reason, "message": message, **more}


def hangs_up() -> Answer:
    """Ends the connection instead of answering."""

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return answer


def streams(*lines: Any, then: str = "end", every: int = 0) -> Answer:
    """A watch with these lines; then it ends, is cut, or goes silent."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        sent = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
        for start in range(0, len(sent), every or len(sent) or 1):
            await response.write(sent[start : start + (every or len(sent))])
        if then == "cut":
            await asyncio.sleep(0.02)  # what was written must arrive first
            assert request.transport is not None
            request.transport.abort()
        elif then == "silence":
            await asyncio.sleep(60)
        return response

    return answer


def listed(*items: Mapping[str, Any], version: str = "10", token: str = "") -> Answer:
    """A page of a list."""
    metadata = {"resourceVersion": version, **({"continue": token} if token else {})}
    return says({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": list(items)})


def raw_object(name: str, version: str = "1", **more: Any) -> dict[str, Any]:
    """A node, a pod, or anything else with a name."""
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": version}, **more}


def event(kind: str, name: str, version: str, **more: Any) -> dict[str, Any]:
    """A line of a watch."""
    return {"type": kind, "object": raw_object(name, version, **more)}


def bookmark(version: str, *, ends_initial: bool = False) -> dict[str, Any]:
    annotations = {"k8s.io/initial-events-end": "true"} if ends_initial else {}
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version, "annotations": annotations}}}


Scenario = Callable[[ScriptedServer, Client], Coroutine[Any, Any, Any]]


def run_against(answers: list[Answer], scenario: Scenario, **options: Any) -> ScriptedServer:
    """Run a scenario with a client on a server that gives these answers."""

    async def run() -> ScriptedServer:
        async with ScriptedServer(*answers) as server, server.client(timeouts=QUICK, **options) as client:
            await scenario(server, client)
        return server

    return asyncio.run(run())
