"""Plain requests to an API server, for tests that must not depend on Karpool's own client."""

import contextlib
import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any


class Client:
    """Acts as the user of a kubeconfig that names certificate files, over one connection per request."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._host = cluster["server"].removeprefix("https://")
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._tls.load_cert_chain(user["client-certificate"], user["client-key"])

    def get(self, path: str) -> Answer:
        return self.request("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> Answer:
        return self.request("POST", path, body)

    def delete(self, path: str) -> Answer:
        return self.request("DELETE", path)

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        """What the server said, also when it refused."""
        with self._response(method, path, body) as response:
            return Answer(response.status, json.load(response))

    def read(self, path: str) -> bytes:
        """What is there, as it is; an error if that is refused."""
        with self._response("GET", path) as response:
            body = response.read()
            if response.status != http.HTTPStatus.OK:
                raise OSError(f"{path}: {response.status} {body[:200]!r}")
            return body

    def first_event(self, path: str) -> Any:
        """The first event of a watch, as it was sent."""
        with self._response("GET", path) as response:
            return json.loads(response.readline())

    @contextlib.contextmanager
    def _response(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(self._host, timeout=30, context=self._tls)
        with contextlib.closing(connection):
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, {"Content-Type": "application/json"})
            with connection.getresponse() as response:
                yield response


def eventually(ask: Callable[[], T | None], patience: float = 30) -> T:
    """Asks until the answer is neither None nor empty."""
    deadline = time.monotonic() + patience
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"still {answer!r} after {patience:.0f} s"
        time.sleep(0.1)
    return answer
