"""The port of the controller's pod, and the API server's way to it; a small server stands in for the controller."""

import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.conformance.container_port import ContainerPort, completed
from tests.conformance.egress import Egress

PAGE = """# TYPE karpool_pods_eviction_requests_total counter
karpool_pods_eviction_requests_total{code="201"} 7.0
karpool_pods_eviction_requests_total{code="429"} 30.0
process_cpu_seconds_total 1.5
"""


class Metrics(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.path == "/metrics"
        self.send_response(200 if known else 404)
        self.end_headers()
        self.wfile.write(PAGE.encode() if known else b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def controller() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield int(server.server_address[1])
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def port() -> Iterator[ContainerPort]:
    with ContainerPort() as port:
        yield port


def read(port: ContainerPort, path: str) -> str:
    with urlopen(f"http://127.0.0.1:{port.port}{path}", timeout=10) as response:
        return str(response.read().decode())


def refusal(port: ContainerPort, path: str) -> int:
    with pytest.raises(HTTPError) as refused:
        read(port, path)
    with refused.value:
        return int(refused.value.code)


def test_metrics_are_relayed_with_what_the_suite_cannot_do_without(port: ContainerPort, controller: int) -> None:
    port.lead_to(controller, os.getpid())
    lines = read(port, "/metrics").splitlines()
    assert lines[: len(PAGE.splitlines())] == PAGE.splitlines()
    heap = next(line for line in lines if line.startswith("go_gc_heap_live_bytes "))
    assert int(heap.split()[1]) > 2**20
    assert 'karpenter_pods_drained_total{reason=""} 7' in lines


def test_metrics_of_a_go_program_stay_as_they_are() -> None:
    page = "go_goroutines 8\ngo_gc_heap_live_bytes 1e+07\n"
    assert completed(page, 5) == page


def test_what_the_controller_does_not_serve_is_not_found(port: ContainerPort, controller: int) -> None:
    port.lead_to(controller, os.getpid())
    assert refusal(port, "/debug/pprof/heap") == 404


def test_without_a_controller_the_gateway_is_bad(port: ContainerPort) -> None:
    assert refusal(port, "/metrics") == 502


def asked(folder: Path, text: str) -> bytes:
    """What the proxy says to a request on a connection of its own, until it closes it."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(folder / "egress.sock"))
        connection.sendall(text.encode())
        connection.shutdown(socket.SHUT_WR)
        said = b""
        while read := connection.recv(4096):
            said += read
        return said


def test_a_connection_leads_to_who_stands_for_its_port(tmp_path: Path, controller: int) -> None:
    with Egress(tmp_path, {8080: controller}):
        said = asked(tmp_path, "CONNECT 10.1.2.3:8080 HTTP/1.1\r\nHost: 10.1.2.3\r\n\r\nGET /metrics HTTP/1.0\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.0 200")
    assert said.endswith(PAGE.encode())


@pytest.mark.parametrize("text", ["CONNECT 10.1.2.3:9090 HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"])
def test_what_leads_nowhere_is_refused(tmp_path: Path, controller: int, text: str) -> None:
    with Egress(tmp_path, {8080: controller}):
        assert asked(tmp_path, text).startswith(b"HTTP/1.1 502 ")
