"""Resources of the Kubernetes API: where each is served, and how its objects are decoded."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Generic, TypeVar, cast
from urllib.parse import quote

import msgspec

from karpool.kube.api_objects import (
    CustomResourceDefinition,
    Event,
    Lease,
    SubjectAccessReview,
    TokenReview,
)
from karpool.kube.errors import UNDECODABLE
from karpool.wire.fields import without_nulls
from karpool.wire.objects import Metadata, Object, decode_value
from karpool.wire.problems import one_line

T = TypeVar("T", bound=Object)
Raw = bytes | memoryview | msgspec.Raw
Reader = Callable[[Raw, str], "Object | str"]
"""Decodes the JSON of an object of an API version, or returns a sentence that says why it cannot be used."""


@dataclass(frozen=True)
class Resource(Generic[T]):
    """One kind of object as the API serves it; without a `reader`, any JSON that decodes into `type` will do."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    type: type[T]
    reader: Reader | None = None
    fallback: Callable[["Unreadable"], Object] | None = None
    """The object to use instead of one that cannot be decoded, if any."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        within = f"/namespaces/{_quoted(namespace)}" if namespace and self.namespaced else ""
        return f"{root}{within}/{self.plural}{_part(name)}{_part(subresource)}"

    def read(self, raw: Raw) -> "T | Unreadable":
        """An object from its JSON, or why it cannot be used."""
        try:
            decoded = self._decoded(raw) if self.reader is None else self.reader(raw, self.api_version)
        except UNDECODABLE as error:
            decoded = f"is not an object: {error}"
        if isinstance(decoded, str):
            return Unreadable(self, _identity(raw), one_line(decoded), bytes(raw))
        return cast("T", decoded)

    def metadata_only(self, metadata: Metadata) -> T:
        return self.type(metadata=metadata)

    def _decoded(self, raw: Raw) -> T:
        try:
            return self._decoder.decode(raw)
        except msgspec.ValidationError:
            # To Kubernetes null means absent; that is rare, so objects are first decoded as they are.
            return self._decoder.decode(msgspec.json.encode(without_nulls(msgspec.json.decode(raw))))

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[T]:
        return msgspec.json.Decoder(self.type, dec_hook=decode_value)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that cannot be decoded, or that its reader refuses."""

    resource: Resource[Any]
    metadata: Metadata
    problem: str
    raw: bytes

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone."""
        return Object(metadata=self.metadata).key

    @property
    def fallback(self) -> Object | None:
        """The object to use instead, so that nothing is decided as if there were none."""
        return None if self.resource.fallback is None else self.resource.fallback(self)

    def __repr__(self) -> str:
        return f"Unreadable({self})"

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.key}: {self.problem}"


class _Named(msgspec.Struct, rename="camel", frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identified(msgspec.Struct):
    metadata: _Named = _Named()


def _identity(raw: Raw) -> Metadata:
    """Name, namespace, uid and version of an object, as far as they can be decoded."""
    try:
        named = msgspec.json.decode(raw, type=_Identified).metadata
    except UNDECODABLE:
        return Metadata()
    return Metadata(named.name, named.namespace, named.uid, resource_version=named.resource_version)


def _quoted(part: str) -> str:
    return quote(part, safe=":")


def _part(part: str) -> str:
    return f"/{_quoted(part)}" if part else ""


LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True, type=Lease)
EVENTS: Final = Resource("", "v1", "events", "Event", namespaced=True, type=Event)
TOKEN_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False, type=TokenReview
)
SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io",
    "v1",
    "subjectaccessreviews",
    "SubjectAccessReview",
    namespaced=False,
    type=SubjectAccessReview,
)
CUSTOM_RESOURCE_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
    type=CustomResourceDefinition,
)
