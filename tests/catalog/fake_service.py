"""A service on this machine that answers over HTTP as a test tells it."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Answer(NamedTuple):
    body: Any = None
    """An object, or text that is sent as it is."""
    status: int = 200
    headers: Mapping[str, str] = {}


class Asked(NamedTuple):
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: str = ""


Respond = Callable[[Asked], Any]


@dataclass
class Service:
    """Where it is, and what it was asked."""

    address: str = ""
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def serving(respond: Respond) -> Iterator[Service]:
    """A service that answers with what the function returns: an object, or an Answer."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            asked = Asked(parts.path, dict(parse_qsl(parts.query)), dict(self.headers), body)
            service.asked.append(asked)
            found = respond(asked)
            answer = found if isinstance(found, Answer) else Answer(found)
            data = (answer.body if isinstance(answer.body, str) else json.dumps(answer.body)).encode()
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET  # noqa: N815 - as the standard library calls it

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    service.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def turns(*answers: Any) -> Respond:
    """Answers one after the other; the last one again and again."""
    left = list(answers)
    return lambda _asked: left.pop(0) if len(left) > 1 else left[0]
