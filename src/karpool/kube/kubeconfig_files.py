"""Decodes kubeconfig files: clusters, users and contexts by name, several files merged as kubectl merges them."""

import base64
import binascii
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from karpool.wire.documents import DocumentError, documents
from karpool.wire.fields import explain, without_nulls
from karpool.wire.objects import FrozenMeta
from karpool.wire.problems import InputError, Problem
from karpool.wire.sources import ManifestSource, read_source


class _Part(msgspec.Struct, metaclass=FrozenMeta, rename="kebab", frozen=True):
    """Part of a kubeconfig; its values are not shown, because they may be secrets."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class KubeconfigCluster(_Part):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: tuple[dict[str, Any], ...] = ()


class ExecVariable(_Part):
    name: str
    value: str = ""


class ExecConfig(_Part, rename="camel"):
    command: str = ""
    api_version: str = ""
    args: tuple[str, ...] = ()
    env: tuple[ExecVariable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class KubeconfigUser(_Part):
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
    """A part of a kubeconfig with its file, for messages and for relative paths."""

    value: T
    file: Path
    label: str

    def wrong(self, field: str, message: str) -> InputError:
        return InputError(Problem(file=str(self.file), object=self.label, field=field, message=message))

    def path(self, relative: str) -> Path:
        """A path, relative to the folder of the file."""
        return self.file.parent / relative

    def data(self, field: str, encoded: str) -> bytes:
        """The bytes of a field in Base64."""
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise self.wrong(field, "is not Base64; paste the whole value") from None


@dataclass(slots=True)
class Kubeconfig:
    """One or several kubeconfig files, merged: the first file that defines a name has precedence."""

    files: list[Path] = field(default_factory=list)
    clusters: dict[str, KubeconfigEntry[KubeconfigCluster]] = field(default_factory=dict)
    users: dict[str, KubeconfigEntry[KubeconfigUser]] = field(default_factory=dict)
    contexts: dict[str, KubeconfigEntry[KubeconfigContext]] = field(default_factory=dict)
    current: str = ""

    def __str__(self) -> str:
        return ", ".join(str(file) for file in self.files)


def read_kubeconfig(files: Iterable[Path]) -> Kubeconfig:
    """The files, merged; raises InputError for one that cannot be used."""
    merged = Kubeconfig()
    for file in files:
        _add(merged, _read(file), file)
    return merged


def _add(merged: Kubeconfig, content: _File, file: Path) -> None:
    merged.files.append(file)
    for cluster in content.clusters:
        merged.clusters.setdefault(cluster.name, KubeconfigEntry(cluster.cluster, file, f"cluster {cluster.name}"))
    for user in content.users:
        merged.users.setdefault(user.name, KubeconfigEntry(user.user, file, f"user {user.name}"))
    for context in content.contexts:
        merged.contexts.setdefault(context.name, KubeconfigEntry(context.context, file, f"context {context.name}"))
    merged.current = merged.current or content.current_context


def certificate_authority(cluster: KubeconfigEntry[KubeconfigCluster]) -> bytes:
    """The certificates to trust, as PEM; empty: those of the system."""
    data, path = cluster.value.certificate_authority_data, cluster.value.certificate_authority
    if data or not path:
        return cluster.data("certificate-authority-data", data)
    try:
        return cluster.path(path).read_bytes()
    except OSError as error:
        raise cluster.wrong("certificate-authority", f"{path} cannot be read: {error.strerror}") from error


def _read(file: Path) -> _File:
    source = read_source(ManifestSource(str(file)), io.BytesIO())
    try:
        values = [without_nulls(msgspec.json.decode(document)) for document in documents(source)]
    except DocumentError as error:
        raise InputError.at(str(file), f"is not YAML: {error}") from None
    if not values:
        return _File()
    try:
        return msgspec.convert(values[0], _File)
    except msgspec.ValidationError as error:
        flaw = explain(error, _File, values[0])
        raise InputError(Problem.of(flaw, file=str(file), about="")) from None
