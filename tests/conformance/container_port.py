"""Port 8080 of the controller's pod: what its container would serve there, for the suites that read its metrics.

The suite reads the heap of a Go program and pods that were drained. Of a controller that says neither, the heap is all
memory of its process that is no file's, the interpreter's own and what is free again included: more than lives on it.
"""

import re
import threading
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.error import HTTPError
from urllib.request import urlopen

PORT = 8080
_HEAP = "go_gc_heap_live_bytes"
_DRAINED = "karpenter_pods_drained_total"
_EVICTED = re.compile(r'^karpool_pods_eviction_requests_total\{code="20[01]"\} (\S+)$', re.MULTILINE)
# A CPU profile takes as many seconds as are asked for.
_PATIENCE = 60


class ContainerPort:
    """Relays to whichever controller runs; use it as a context manager."""

    def __init__(self) -> None:
        self._target = 0
        self._pid = 0
        front = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                front._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="container-port")

    @property
    def port(self) -> int:
        """The port of the loopback interface that stands for the pod's."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def lead_to(self, port: int, pid: int) -> None:
        """From now on this process answers."""
        self._target, self._pid = port, pid

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        try:
            with urlopen(f"http://127.0.0.1:{self._target}{request.path}", timeout=_PATIENCE) as response:
                status, body = response.status, response.read()
        except HTTPError as error:
            with error:
                status, body = error.code, error.read()
        except (OSError, HTTPException):
            status, body = HTTPStatus.BAD_GATEWAY, b""
        if request.path == "/metrics" and status == HTTPStatus.OK:
            with suppress(OSError):  # the process has just ended
                body = completed(body.decode(), anonymous_memory(self._pid)).encode()
        with suppress(BrokenPipeError, ConnectionResetError):
            request.send_response(status)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)


def completed(page: str, heap: int) -> str:
    """A page of metrics with those that the suite cannot do without."""
    if f"\n{_HEAP} " in page:
        return page
    evicted = sum(float(value) for value in _EVICTED.findall(page))
    return (
        f'{page}# TYPE {_HEAP} gauge\n{_HEAP} {heap}\n# TYPE {_DRAINED} counter\n{_DRAINED}{{reason=""}} {evicted:g}\n'
    )


def anonymous_memory(pid: int) -> int:
    """Bytes of a process that are resident and are no file's."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) * 1024
