"""What kubeconfig files hold: clusters, users and contexts by name, several files merged as kubectl merges them."""

import base64
import binascii
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from karpool.wire.documents import DocumentError, documents
from karpool.wire.fields import explain, without_nulls
from karpool.wire.objects import FrozenMeta
from karpool.wire.problems import InputError, Problem
from karpool.wire.sources import ManifestSource, read_source


class _Part(msgspec.Struct, metaclass=FrozenMeta, rename="kebab", frozen=True):
    """Part of a kubeconfig; never shown, because it may hold secrets."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class KubeconfigCluster(_Part):
    """An API server."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: tuple[dict[str, Any], ...] = ()


class ExecVariable(_Part):
    """A variable for a credential plugin."""

    name: str
    value: str = ""


class ExecConfig(_Part, rename="camel"):
    """A credential plugin."""

    command: str = ""
    api_version: str = ""
    args: tuple[str, ...] = ()
    env: tuple[ExecVariable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class KubeconfigUser(_Part):
    """Somebody, and how they prove it."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    exec: ExecConfig | None = None
    auth_provider: dict[str, Any] | None = None
    as_: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = {}


class KubeconfigContext(_Part):
    """A user on a cluster."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Part):
    name: str
    cluster: KubeconfigCluster = KubeconfigCluster()


class _NamedUser(_Part):
    name: str
    user: KubeconfigUser = KubeconfigUser()


class _NamedContext(_Part):
    name: str
    context: KubeconfigContext = KubeconfigContext()


class _File(_Part):
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()
    current_context: str = ""


T = TypeVar("T", bound=_Part)


@dataclass(frozen=True, slots=True)
class KubeconfigEntry(Generic[T]):
    """A part of a kubeconfig and its place, for messages and for paths that are relative to the file."""

    value: T
    file: Path
    label: str

    def wrong(self, field: str, message: str) -> InputError:
        """The error to raise about a field of this part."""
        return InputError(Problem(file=str(self.file), object=self.label, field=field, message=message))

    def path(self, written: str) -> Path:
        """A path in this part, which is relative to the folder of the file."""
        return self.file.parent / written

    def data(self, field: str, written: str) -> bytes:
        """The bytes behind a field in Base64."""
        try:
            return base64.b64decode(written, validate=True)
        except (binascii.Error, ValueError):
            raise self.wrong(field, "is not Base64; paste the whole value") from None

    def content(self, field: str, data: str, path: str) -> bytes:
        """What a field holds, as data or as the path of a file; the data count if both are there."""
        if data or not path:
            return self.data(f"{field}-data", data)
        try:
            return self.path(path).read_bytes()
        except OSError as error:
            raise self.wrong(field, f"{path} cannot be read: {error.strerror}") from error


@dataclass(slots=True)
class Kubeconfig:
    """Everything in one or several kubeconfig files; the first to name something decides."""

    files: list[Path] = field(default_factory=list)
    clusters: dict[str, KubeconfigEntry[KubeconfigCluster]] = field(default_factory=dict)
    users: dict[str, KubeconfigEntry[KubeconfigUser]] = field(default_factory=dict)
    contexts: dict[str, KubeconfigEntry[KubeconfigContext]] = field(default_factory=dict)
    current: str = ""

    def __str__(self) -> str:
        return ", ".join(str(file) for file in self.files)


def read_kubeconfig(files: Iterable[Path]) -> Kubeconfig:
    """The files as one; raises InputError for what cannot be used."""
    merged = Kubeconfig()
    for file in files:
        _add(merged, _read(file), file)
    return merged


def _add(merged: Kubeconfig, found: _File, file: Path) -> None:
    merged.files.append(file)
    for cluster in found.clusters:
        merged.clusters.setdefault(cluster.name, KubeconfigEntry(cluster.cluster, file, f"cluster {cluster.name}"))
    for user in found.users:
        merged.users.setdefault(user.name, KubeconfigEntry(user.user, file, f"user {user.name}"))
    for context in found.contexts:
        merged.contexts.setdefault(context.name, KubeconfigEntry(context.context, file, f"context {context.name}"))
    merged.current = merged.current or found.current_context


_NO_STDIN: Final = io.BytesIO()


def _read(file: Path) -> _File:
    try:
        written = [
            without_nulls(msgspec.json.decode(one))
            for one in documents(read_source(ManifestSource(str(file)), _NO_STDIN))
        ]
    except DocumentError as error:
        raise InputError.at(str(file), f"is not YAML: {error}") from None
    if not written:
        return _File()
    try:
        return msgspec.convert(written[0], _File)
    except msgspec.ValidationError as error:
        flaw = explain(error, _File, written[0])
        raise InputError(Problem.of(flaw, file=str(file), about="")) from None
