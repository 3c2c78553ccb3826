"""Programs that run beside the tests, each in its own process group and with a log; they end with the tests."""

import contextlib
import http.client
import os
import random
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

LOG_TAIL = 2_000
PORTS = range(20_000, 32_000)  # below those that the kernel gives to outgoing connections, which could take ours


class ProgramError(Exception):
    """A program that did not come up; says what it logged last."""

    def __init__(self, name: str, what: str, log: Path) -> None:
        tail = log.read_text(errors="replace")[-LOG_TAIL:] if log.exists() else ""
        super().__init__(f"{name} {what}; the end of {log}:\n{tail}")


class Program:
    """One program, which may be started and stopped many times; its log grows."""

    def __init__(
        self, command: Sequence[str | Path], log: Path, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self.environment = environment
        self.command = [str(part) for part in command]
        self.name = Path(self.command[0]).name
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._pdb_source: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of the process that runs."""
        if self._process is None:
            raise ProgramError(self.name, "is not running", self.log)
        return self._process.pid

    def start(self) -> None:
        self.stop()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - a program of our own choice
                self.command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._pdb_source = _pdb_source(self._process.pid)

    def stop(self, how: signal.Signals = signal.SIGTERM, patience: float = 10) -> int | None:
        """Ends the whole process group, by force when it takes its time; its exit status, if it ran."""
        if self._process is None:
            return None
        _dismiss(self._pdb_source)
        if self.running:
            os.killpg(self._process.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
        if self.running:
            os.killpg(self._process.pid, signal.SIGKILL)
        status = self._process.wait()
        self._process = self._pdb_source = None
        return status

    def wait_until_healthy(self, url: str, context: ssl.SSLContext | None = None, patience: float = 60) -> None:
        """Returns as soon as the URL answers 200; a program that ends or takes too long is an error."""
        deadline = time.monotonic() + patience
        while not _answers(url, context):
            if not self.running:
                raise ProgramError(self.name, "ended before it was ready", self.log)
            if time.monotonic() > deadline:
                raise ProgramError(self.name, f"was not ready after {patience:.0f} s", self.log)
            time.sleep(0.05)


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    for port in random.sample(PORTS, 100):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError(f"no free port in {PORTS.start} to {PORTS.stop}")


def _pdb_source(group: int) -> subprocess.Popen[bytes]:
    """A shell that kills the group once we are gone, however we went: that closes the pipe it reads from."""
    script = 'read -r line || kill -s KILL -- "-$0"'
    return subprocess.Popen(  # noqa: S603 - as written here
        ["/bin/sh", "-c", script, str(group)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _dismiss(pdb_source: subprocess.Popen[bytes] | None) -> None:
    if pdb_source is not None:
        pdb_source.kill()
        pdb_source.communicate()


def _answers(url: str, context: ssl.SSLContext | None) -> bool:
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    connection = (
        http.client.HTTPSConnection(host, timeout=5, context=context)
        if scheme == "https"
        else http.client.HTTPConnection(host, timeout=5)
    )
    with contextlib.closing(connection):
        try:
            connection.request("GET", f"/{path}")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
