"""The base of all Kubernetes objects: immutable structs with camel-case names, decoded straight from JSON."""

from datetime import datetime
from typing import Annotated, Any, dataclass_transform

import msgspec

from karpool.wire.duration import Duration, parse_duration
from karpool.wire.quantity import Quantity, parse_quantity

Timestamp = Annotated[datetime, msgspec.Meta(tz=True)]


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class FrozenMeta(msgspec.StructMeta):
    """Tells type checkers what msgspec does: whatever inherits from a frozen struct is frozen too."""


class Wire(msgspec.Struct, metaclass=FrozenMeta, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Base of every object and part of an object: immutable, named as on the wire, unknown fields ignored."""


class OwnerReference(Wire):
    kind: str
    name: str
    api_version: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(Wire):
    """The part of an object's metadata that decisions need."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()
    unreadable: str = ""
    """What could not be read, if this is only a stand-in for an object; no API server stores this field."""


class Condition(Wire):
    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: Timestamp | None = None


class Object(Wire):
    metadata: Metadata = Metadata()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone for objects without a namespace."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def unreadable(self) -> str:
        """The field that cannot be read and why; empty if all of the object was read."""
        return self.metadata.unreadable


def is_owned(entry: Object, uid: str) -> bool:
    """Whether an object has the owner with this uid."""
    return any(owner.uid == uid for owner in entry.metadata.owner_references)


def condition(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    for entry in conditions:
        if entry.type == kind:
            return entry
    return None


def is_true(conditions: tuple[Condition, ...], kind: str) -> bool:
    for entry in conditions:
        if entry.type == kind:
            return entry.status == "True"
    return False


def decode_value(kind: type, value: Any) -> Any:
    """Decode a Quantity or a Duration; msgspec calls this with the type of the field."""
    if kind is Quantity:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise TypeError("expected a quantity such as 500m, 1.5 or 2Gi")
        amount = parse_quantity(value)
        if amount.nano < 0:
            raise ValueError(f"'{amount}' is negative; write zero or more")
        return amount
    if kind is Duration:
        if isinstance(value, str):
            return parse_duration(value)
        raise TypeError("expected a duration such as 30s, 1h30m or Never")
    raise NotImplementedError(f"cannot decode into {kind.__name__}")


def encode_value(value: Any) -> Any:
    if isinstance(value, Quantity | Duration):
        return str(value)
    raise NotImplementedError(f"cannot encode {type(value).__name__}")
