"""The way from the API server to pods and kubelets, which exist only as objects: a proxy that knows where they are.

The API server asks for every connection into the cluster with CONNECT, and gets one to a port of the loopback
interface: by the port that it asks for, whatever the address.
"""

import json
import re
import socket
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Self

_CONNECT = re.compile(rb"CONNECT \S+:(\d+) HTTP/1\.1\r\n")
_HEAD = 8192
_CHUNK = 65_536


class Egress:
    """Use it as a context manager; the API server needs `flag`."""

    def __init__(self, folder: Path, ports: Mapping[int, int]) -> None:
        """Ports of pods and nodes, with the local ports that stand for them."""
        self._ports = ports
        # A socket of the file system: the API server's way over plain TCP does not come up.
        self._socket = folder / "egress.sock"
        self._listener = socket.socket(socket.AF_UNIX)
        self._thread = threading.Thread(target=self._accept, name="egress", daemon=True)
        transport = {"uds": {"udsName": str(self._socket)}}
        selection = {"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": transport}}
        self._config = folder / "egress.json"
        head = {"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration"}
        self._config.write_text(json.dumps({**head, "egressSelections": [selection]}), encoding="utf-8")

    @property
    def flag(self) -> str:
        return f"--egress-selector-config-file={self._config}"

    def __enter__(self) -> Self:
        self._listener.bind(str(self._socket))
        self._listener.listen()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                asked, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(asked,), name="egress-connection", daemon=True).start()

    def _serve(self, asked: socket.socket) -> None:
        with closing(asked), suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head and len(head) < _HEAD:
                read = asked.recv(_HEAD)
                if not read:
                    return
                head += read
            wanted = _CONNECT.match(head)
            port = self._ports.get(int(wanted[1])) if wanted else None
            if port is None:
                asked.sendall(b"HTTP/1.1 502 Nobody stands for this address\r\n\r\n")
                return
            with socket.create_connection(("127.0.0.1", port)) as target:
                asked.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                target.sendall(head.partition(b"\r\n\r\n")[2])
                back = threading.Thread(target=_copy, args=(target, asked), name="egress-back", daemon=True)
                back.start()
                _copy(asked, target)
                back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Until the source has nothing more; then the sink knows it."""
    with suppress(OSError):
        while chunk := source.recv(_CHUNK):
            sink.sendall(chunk)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
