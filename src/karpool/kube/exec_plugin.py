"""Credentials from a program that a kubeconfig names, as the clouds' own login tools are."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from karpool.kube.credentials import Certificate, bearer, is_header
from karpool.kube.errors import UNDECODABLE, CredentialsError
from karpool.wire.objects import Timestamp
from karpool.wire.problems import one_line

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EARLY: Final = timedelta(seconds=10)
_SECONDS: Final = 60.0
_SECONDS_WITH_A_PERSON: Final = 600.0
_LONGEST_STDERR: Final = 300
_SHORTEST_SECRET: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A program to run for credentials; arguments and environment may hold secrets and do not show."""

    api_version: str
    command: str
    arguments: tuple[str, ...] = field(default=(), repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: Path = Path()
    interactive: str = "IfAvailable"
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    """What the program is told of the cluster, if it asked for that."""


class _Status(msgspec.Struct, rename="camel"):
    expiration_timestamp: Timestamp | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class PluginCredentials:
    """What the program said, until that expires or is refused."""

    def __init__(self, plugin: Plugin, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._plugin = plugin
        self._now = now
        self._lock = asyncio.Lock()
        self._held: _Status | None = None

    @property
    def certificate(self) -> Certificate | None:
        """The certificate that the program gave."""
        held = self._held
        if held is None or not held.client_certificate_data:
            return None
        return Certificate(held.client_certificate_data.encode(), held.client_key_data.encode())

    async def headers(self) -> Mapping[str, str]:
        """The token that the program gave; the program runs if there is none, or it is about to expire."""
        async with self._lock:
            if self._held is None or self._expired(self._held):
                self._held = await _run(self._plugin)
            return bearer(self._held.token)

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """Run the program again, unless somebody did so since; whether it says anything new."""
        async with self._lock:
            before = self._held
            if before is not None and bearer(before.token) != dict(refused):
                return True
            self._held = None
            self._held = await _run(self._plugin)
            return self._held != before

    def _expired(self, held: _Status) -> bool:
        return held.expiration_timestamp is not None and self._now() >= held.expiration_timestamp - _EARLY


async def _run(plugin: Plugin) -> _Status:
    program = _program(plugin)
    with_person = _with_person(plugin)
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *plugin.arguments,
            stdin=None if with_person else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            # A person must see what the program asks of them.
            stderr=None if with_person else asyncio.subprocess.PIPE,
            env={**os.environ, **plugin.environment, "KUBERNETES_EXEC_INFO": _told(plugin, with_person)},
        )
    except OSError as error:
        raise CredentialsError(f"{_name(plugin)} cannot be started: {error.strerror}") from error
    try:
        async with asyncio.timeout(_SECONDS_WITH_A_PERSON if with_person else _SECONDS):
            stdout, stderr = await process.communicate()
    except TimeoutError as error:
        raise CredentialsError(f"{_name(plugin)} did not end in time") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        said = _without_secrets(plugin, (stderr or b"").decode(errors="replace"))
        raise CredentialsError(f"{_name(plugin)} ended with code {process.returncode}: {said or 'it gave no reason'}")
    return _read(plugin, stdout)


def _name(plugin: Plugin) -> str:
    return f"the credential plugin {plugin.command}"


def _program(plugin: Plugin) -> str:
    path = os.environ.get("PATH", "")
    relative = os.sep in plugin.command
    found = shutil.which(str(plugin.folder / plugin.command) if relative else plugin.command, path=path)
    if found is None:
        hint = f": {one_line(plugin.install_hint.strip())}" if plugin.install_hint else "; install it or correct PATH"
        raise CredentialsError(f"{_name(plugin)} is not there or cannot be run{hint}")
    return found


def _with_person(plugin: Plugin) -> bool:
    available = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive == "Always" and not available:
        raise CredentialsError(f"{_name(plugin)} needs a person at a terminal")
    return available and plugin.interactive != "Never"


def _told(plugin: Plugin, with_person: bool) -> str:  # noqa: FBT001 - one caller
    spec: dict[str, Any] = {"interactive": with_person}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    told = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return msgspec.json.encode(told).decode()


def _read(plugin: Plugin, stdout: bytes) -> _Status:
    """The credentials in what the program wrote; errors never show any of it."""
    try:
        answer = msgspec.json.decode(stdout, type=_Answer)
    except UNDECODABLE:
        raise CredentialsError(f"{_name(plugin)} did not write an ExecCredential") from None
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        raise CredentialsError(f"{_name(plugin)} did not write an ExecCredential of {plugin.api_version}")
    status = answer.status
    if status is None or not (status.token or status.client_certificate_data):
        raise CredentialsError(f"{_name(plugin)} gave neither a token nor a certificate")
    if status.token and not is_header(status.token):
        raise CredentialsError(f"{_name(plugin)} gave a token that is not one line of text")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise CredentialsError(f"{_name(plugin)} gave a certificate without its key, or a key alone")
    return status


def _without_secrets(plugin: Plugin, text: str) -> str:
    """What a program complained of, without the values it was given in confidence."""
    for secret in (*plugin.environment.values(), *plugin.arguments):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return one_line(text.strip())[:_LONGEST_STDERR]
