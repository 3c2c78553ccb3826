"""The console over HTTP: the page with its assets, rows of a cluster, changes as they come, and answers."""

import mimetypes
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final

import msgspec
from aiohttp import web

from karpool.kube.errors import ApiError
from karpool.observability.serving import Address, Handler, Page
from karpool.web.access import HEADERS, checked
from karpool.web.asking import read_question
from karpool.web.console import Console, NotReadyError, ShownCluster
from karpool.web.messages import Foreseen, Progressed
from karpool.web.questions import QuestionError
from karpool.wire.problems import InputError

CONNECTIONS: Final = 512
"""Every open page holds one, and asks on others."""
_PODS_AT_ONCE: Final = 20_000
_SHARED: Final = ("page.css", "words.js", "names.js")
_JSON: Final = {**HEADERS, "Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store"}
_LINES: Final = {**_JSON, "Content-Type": "application/x-ndjson; charset=utf-8"}
_EVENTS: Final = {**_JSON, "Content-Type": "text/event-stream; charset=utf-8"}
_ASSETS: Final = {**HEADERS, "Cache-Control": "no-cache"}
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
ClusterHandler = Callable[[web.Request, ShownCluster], Awaitable[web.StreamResponse]]


def console_pages(console: Console, address: Address | None) -> tuple[Page, ...]:
    """All pages of a console; without an address they are not served."""
    handlers: dict[str, Handler] = {
        "/": _index,
        "/assets/{name}": _asset_page,
        # Not below /api/, which Kubernetes lets every account get (ClusterRole system:discovery).
        "/data/clusters": _clusters(console),
        "/data/fleet": _about_cluster(console, _fleet),
        "/data/pods": _about_cluster(console, _pods),
        "/data/events": _about_cluster(console, _events),
        "/data/ask/{what}": _about_cluster(console, _answer),
    }
    if address is None:
        return ()
    return tuple(
        Page(path, address, checked(handler, address), connections=CONNECTIONS) for path, handler in handlers.items()
    )


# -- the page ----------------------------------------------------------------------------------------------------


async def _index(_: web.Request) -> web.Response:
    return _asset("index.html")


async def _asset_page(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in _assets():
        return web.Response(status=404, text="there is no such file\n", headers=HEADERS)
    return _asset(name)


def _asset(name: str) -> web.Response:
    ending = name[name.rfind(".") :]
    kind = _TYPES.get(ending) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return web.Response(body=_asset_bytes(name), headers={**_ASSETS, "Content-Type": f"{kind}; charset=utf-8"})


@cache
def _assets() -> Mapping[str, Traversable]:
    """The files that are served: our own, and those of the design that all pages share."""
    own = {entry.name: entry for entry in (resources.files("karpool.web") / "assets").iterdir() if entry.is_file()}
    shared = resources.files("karpool.report") / "assets"
    return own | {name: shared / name for name in _SHARED}


@cache
def _asset_bytes(name: str) -> bytes:
    return _assets()[name].read_bytes()


# -- clusters ----------------------------------------------------------------------------------------------------


def _clusters(console: Console) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        return _json({"clusters": console.names})

    return handle


def _about_cluster(console: Console, handler: ClusterHandler) -> Handler:
    """A handler that gets the cluster that the request names, and answers for one that cannot be read."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            cluster = await console.cluster(request.query.get("cluster", ""))
        except KeyError:
            return _json({"problem": "there is no such cluster"}, status=404)
        except NotReadyError as error:
            return _json({"problem": str(error)}, status=503)
        except (InputError, ApiError) as error:
            return _json({"problem": str(error)}, status=502)
        return await handler(request, cluster)

    return handle


async def _fleet(_: web.Request, cluster: ShownCluster) -> web.Response:
    fleet = await cluster.feed.nodes()
    return _json({"about": cluster.about(), **fleet.document()})


async def _pods(request: web.Request, cluster: ShownCluster) -> web.Response:
    after, labels, workloads = (_whole(request.query.get(name, "")) for name in ("after", "labels", "workloads"))
    fleet = await cluster.feed.ready()
    return web.Response(body=fleet.pods_after(after, _PODS_AT_ONCE, (labels, workloads)), headers=_JSON)


async def _events(request: web.Request, cluster: ShownCluster) -> web.StreamResponse:
    response = web.StreamResponse(headers=_EVENTS)
    if request.method == "HEAD":
        return response
    number = _whole(request.headers.get("Last-Event-ID") or request.query.get("after", ""))
    with suppress(ConnectionError):
        await response.prepare(request)
        async with aclosing(cluster.feed.follow(request.query.get("epoch", ""), number)) as events:
            async for event in events:
                await response.write(event)
    return response


async def _answer(request: web.Request, cluster: ShownCluster) -> web.StreamResponse:
    """Lines: progress while the answer is worked out, what is known early, and the answer or the problem at the end."""
    try:
        question = read_question(request.match_info["what"], request.query)
    except QuestionError as error:
        return _json({"problem": str(error)}, status=400)
    response = web.StreamResponse(headers=_LINES)
    if request.method == "HEAD":
        return response
    with suppress(ConnectionError):
        await response.prepare(request)
        try:
            async with aclosing(cluster.answering.ask(question)) as answers:
                async for said in answers:
                    await response.write(_line(said))
        except QuestionError as error:
            await response.write(msgspec.json.encode({"problem": str(error)}) + b"\n")
    return response


def _line(said: Progressed | Foreseen | bytes) -> bytes:
    if isinstance(said, Foreseen):
        return b'{"foreseen":' + said.answer + b"}\n"
    if isinstance(said, bytes):
        return b'{"answer":' + said + b"}\n"
    return msgspec.json.encode({"progress": [said.what, said.done, said.most]}) + b"\n"


def _whole(text: str) -> int:
    """The number in a text; 0 for everything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0  # noqa: PLR2004 - enough digits


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), status=status, headers=_JSON)
