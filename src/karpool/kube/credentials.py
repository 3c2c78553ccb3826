"""Who a client is to an API server: tokens, passwords and certificates, read again when they change."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from multidict import CIMultiDict

from karpool.kube.errors import CredentialsError


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate and its key, as PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


class Credentials(Protocol):
    """What proves who sends a request."""

    async def headers(self) -> Mapping[str, str]:
        """The headers of a request; `certificate` is up to date after this."""

    @property
    def certificate(self) -> Certificate | None:
        """The client certificate to show."""

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """Get new credentials after these headers were refused; returns whether they differ."""


@dataclass(slots=True)
class CertificateFiles:
    """A certificate and its key, each as bytes or as a file that may be replaced at any time."""

    certificate: "Path | bytes" = field(repr=False)
    key: "Path | bytes" = field(repr=False)
    _stamp: object = field(default=None, init=False, repr=False)
    _last: Certificate | None = field(default=None, init=False, repr=False)

    def read(self) -> Certificate:
        stamp = (_stamp(self.certificate), _stamp(self.key))
        if self._last is None or stamp != self._stamp:
            self._last = Certificate(_content(self.certificate), _content(self.key))
            self._stamp = stamp
        return self._last


class FixedCredentials:
    """A token, a password, a certificate, or nothing at all."""

    def __init__(self, authorization: str = "", certificates: CertificateFiles | None = None) -> None:
        self._headers = {"Authorization": authorization} if authorization else {}
        self._certificates = certificates
        self.certificate: Certificate | None = None

    async def headers(self) -> Mapping[str, str]:
        self.certificate = _current(self._certificates)
        return self._headers

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """Only the certificate may have been replaced."""
        before = self.certificate
        await self.headers()
        return self.certificate != before or refused != self._headers


class TokenFile:
    """A token in a file that is renewed from outside, such as that of a service account."""

    def __init__(self, path: Path, certificates: CertificateFiles | None = None) -> None:
        self._path = path
        self._certificates = certificates
        self._stamp: object = None
        self._headers: dict[str, str] = {}
        self.certificate: Certificate | None = None

    async def headers(self) -> Mapping[str, str]:
        self.certificate = _current(self._certificates)
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            token = _content(self._path).decode(errors="replace").strip()
            if not is_header(token):
                raise CredentialsError(f"{self._path} holds no token: expected one line of text")
            self._headers = bearer(token)
            self._stamp = stamp
        return self._headers

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """Read the file again, whatever its time."""
        self._stamp = None
        return dict(await self.headers()) != dict(refused)


class Impersonating:
    """Credentials of one user, with headers that impersonate another."""

    def __init__(self, credentials: Credentials, extra: Mapping[str, str]) -> None:
        self._credentials = credentials
        self._extra = CIMultiDict(extra)

    @property
    def certificate(self) -> Certificate | None:
        return self._credentials.certificate

    async def headers(self) -> Mapping[str, str]:
        merged = CIMultiDict(await self._credentials.headers())
        merged.extend(self._extra)
        return merged

    async def renew(self, refused: Mapping[str, str]) -> bool:
        own = {name: value for name, value in refused.items() if name not in self._extra}
        return await self._credentials.renew(own)


def _current(files: CertificateFiles | None) -> Certificate | None:
    return None if files is None else files.read()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def is_header(value: str) -> bool:
    return bool(value) and value.isprintable()


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode("ascii")


def _stamp(source: Path | bytes) -> object:
    """Changes when a file does; a mounted secret changes by pointing a link to another file."""
    if isinstance(source, bytes):
        return None
    try:
        stat = source.stat()
    except OSError as error:
        raise CredentialsError(f"{source} cannot be read: {error.strerror}") from error
    return stat.st_mtime_ns, stat.st_ino, stat.st_size


def _content(source: Path | bytes) -> bytes:
    if isinstance(source, bytes):
        return source
    try:
        return source.read_bytes()
    except OSError as error:
        raise CredentialsError(f"{source} cannot be read: {error.strerror}") from error
