"""Credentials from a program that a kubeconfig names (`exec`), such as the login tools of clouds."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from karpool.kube.clock import utc_now
from karpool.kube.credentials import Certificate, bearer, is_header
from karpool.kube.errors import UNDECODABLE, CredentialsError
from karpool.kube.kubeconfig_files import ExecConfig
from karpool.wire.objects import Timestamp
from karpool.wire.problems import one_line

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EARLY: Final = timedelta(seconds=10)
_SECONDS: Final = 60.0
_INTERACTIVE_SECONDS: Final = 600.0
_LONGEST_STDERR: Final = 300
_SHORTEST_SECRET: Final = 4


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program to run for credentials; its configuration may hold secrets and is not shown."""

    config: ExecConfig
    folder: Path = Path()
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    """The cluster as the program is given it, if it asks for that."""


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
    """The credentials that the program gave, until they expire or are refused."""

    def __init__(self, plugin: ExecPlugin, *, now: Callable[[], datetime] = utc_now) -> None:
        self._plugin = plugin
        self._now = now
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        """One for each event loop, so that clients of several threads can share the credentials."""
        self._current: _Status | None = None

    @property
    def certificate(self) -> Certificate | None:
        current = self._current
        if current is None or not current.client_certificate_data:
            return None
        return Certificate(current.client_certificate_data.encode(), current.client_key_data.encode())

    async def headers(self) -> Mapping[str, str]:
        """The token that the program gave; runs the program if there is none, or if it is about to expire."""
        async with self._lock():
            current = self._current
            if current is None or self._expired(current):
                current = self._current = await _run(self._plugin)
            return bearer(current.token)

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """Run the program again, unless that was done since; returns whether the credentials differ."""
        async with self._lock():
            before = self._current
            if before is not None and bearer(before.token) != dict(refused):
                return True
            self._current = None
            current = self._current = await _run(self._plugin)
            return current != before

    def _lock(self) -> asyncio.Lock:
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def _expired(self, credentials: _Status) -> bool:
        expires = credentials.expiration_timestamp
        return expires is not None and self._now() >= expires - _EARLY


async def _run(plugin: ExecPlugin) -> _Status:
    program = _program(plugin)
    interactive = _is_interactive(plugin)
    variables = {variable.name: variable.value for variable in plugin.config.env}
    exec_info = {"KUBERNETES_EXEC_INFO": _exec_info(plugin, interactive=interactive)}
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *plugin.config.args,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            # A person must see what the program asks.
            stderr=None if interactive else asyncio.subprocess.PIPE,
            env={**os.environ, **variables, **exec_info},
        )
    except OSError as error:
        raise CredentialsError(f"{_name(plugin)} cannot be started: {error.strerror}") from error
    try:
        async with asyncio.timeout(_INTERACTIVE_SECONDS if interactive else _SECONDS):
            stdout, stderr = await process.communicate()
    except TimeoutError as error:
        raise CredentialsError(f"{_name(plugin)} did not end in time") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        reason = _without_secrets(plugin, (stderr or b"").decode(errors="replace"))
        raise CredentialsError(f"{_name(plugin)} ended with code {process.returncode}: {reason or 'it gave no reason'}")
    return _read(plugin, stdout)


def _name(plugin: ExecPlugin) -> str:
    return f"the credential plugin {plugin.config.command}"


def _program(plugin: ExecPlugin) -> str:
    command, install_hint = plugin.config.command, one_line(plugin.config.install_hint.strip())
    program = shutil.which(plugin.folder / command if os.sep in command else command)
    if program is None:
        hint = f": {install_hint}" if install_hint else "; install it or correct PATH"
        raise CredentialsError(f"{_name(plugin)} is not there or cannot be run{hint}")
    return str(program)


def _is_interactive(plugin: ExecPlugin) -> bool:
    available = sys.stdin is not None and sys.stdin.isatty()
    if plugin.config.interactive_mode == "Always" and not available:
        raise CredentialsError(f"{_name(plugin)} needs a person at a terminal")
    return available and plugin.config.interactive_mode != "Never"


def _exec_info(plugin: ExecPlugin, *, interactive: bool) -> str:
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    info = {"apiVersion": plugin.config.api_version, "kind": "ExecCredential", "spec": spec}
    return msgspec.json.encode(info).decode()


def _read(plugin: ExecPlugin, stdout: bytes) -> _Status:
    """The credentials in the program's output; errors never show any of it."""
    try:
        answer = msgspec.json.decode(stdout, type=_Answer)
    except UNDECODABLE:
        raise CredentialsError(f"{_name(plugin)} did not write an ExecCredential") from None
    if answer.kind != "ExecCredential" or answer.api_version != plugin.config.api_version:
        raise CredentialsError(f"{_name(plugin)} did not write an ExecCredential of {plugin.config.api_version}")
    status = answer.status
    if status is None or not (status.token or status.client_certificate_data):
        raise CredentialsError(f"{_name(plugin)} gave neither a token nor a certificate")
    if status.token and not is_header(status.token):
        raise CredentialsError(f"{_name(plugin)} gave a token that is not one line of text")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise CredentialsError(f"{_name(plugin)} gave a certificate without its key, or a key alone")
    return status


def _without_secrets(plugin: ExecPlugin, text: str) -> str:
    """The program's error output without arguments and environment values."""
    for secret in (*(variable.value for variable in plugin.config.env), *plugin.config.args):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return one_line(text.strip())[:_LONGEST_STDERR]
