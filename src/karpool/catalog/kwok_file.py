"""Catalogues in files: the JSON array that Karpenter's KWOK provider reads instead of its own types.

Field names are taken in any case, as that provider takes them. A mistake is refused with the file, the type and
the field; nothing of such a file is used.
"""

import re
from collections.abc import Container
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any, Final

import msgspec

from karpool.catalog.instance_types import InstanceType, Offering, sold_in
from karpool.catalog.kwok import kwok_type
from karpool.model.devices import AttributeBinding, SliceTemplate, TypeDevices
from karpool.model.labels import CAPACITY_TYPE, CAPACITY_TYPES, RESERVATION_ID, RESERVED, ZONE, canonical
from karpool.model.requirements import Requirement, Requirements, one_of, requirement
from karpool.wire.fields import explain
from karpool.wire.objects import decode_value
from karpool.wire.problems import InputError, Problem
from karpool.wire.quantity import ZERO, Quantity, parse_quantity

_LEAST_BOUND: Final = 2
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_KEY: Final = re.compile(r"([a-z0-9][-a-z0-9.]{0,252}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


class FileRequirement(msgspec.Struct, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class FileOffering(msgspec.Struct, frozen=True, rename="camel"):
    """An offering as a file writes it; without a price, the price is unknown."""

    price: float | None = None
    available: bool = True
    reservation_capacity: int = 0
    requirements: tuple[FileRequirement, ...] = ()


class FileType(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    architecture: str
    resources: dict[str, str | int | float]
    operating_systems: tuple[str, ...] = ("linux",)
    offerings: tuple[FileOffering, ...] = ()
    resource_slices: tuple[SliceTemplate, ...] = ()
    attribute_bindings: tuple[AttributeBinding, ...] = ()


_FIELDS: Final = {
    name.lower(): name for kind in (FileType, FileOffering, FileRequirement) for name in kind.__struct_encode_fields__
}


_OWN_NAMES: Final = ("resources", "resourceSlices", "attributeBindings")
"""Fields whose contents have names that users, or Kubernetes, chose."""


class _FieldError(Exception):
    """A mistake: the field, and what is wrong with it."""


def read_types(data: bytes, file: str) -> tuple[InstanceType, ...]:
    """The instance types in the bytes of a catalogue file; raises InputError for the first mistake."""
    types: dict[str, InstanceType] = {}
    for position, entry in enumerate(_entries(data, file)):
        name = entry.get("name") if isinstance(entry, dict) else None
        where = f"type {name:.80}" if isinstance(name, str) else f"type [{position}]"
        try:
            instance_type = _instance_type(_decoded(entry), types)
        except _FieldError as error:
            field, message = error.args
            problem = Problem(file=file, object=where, field=field, rule="InvalidCatalog", message=message)
            raise InputError(problem) from None
        types[instance_type.name] = instance_type
    if not types:
        raise InputError.at(file, "lists no instance types; write at least one, or leave out --catalog")
    return tuple(types.values())


def _entries(data: bytes, file: str) -> list[Any]:
    try:
        decoded = msgspec.json.decode(data)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError.at(file, f"not a JSON catalogue of instance types: {why}") from None
    if not isinstance(decoded, list):
        raise InputError.at(file, "expected a JSON array of instance types, as the KWOK provider of Karpenter reads")
    return [_named(entry) for entry in decoded]


def _named(value: Any, depth: int = 5) -> Any:
    """The value with its fields in the case that we declare; null counts as absent, as it does in Go."""
    if depth and isinstance(value, list):
        return [_named(entry, depth - 1) for entry in value]
    if not depth or not isinstance(value, dict):
        return value
    fields = {_FIELDS.get(key.lower(), key): entry for key, entry in value.items() if entry is not None}
    return {key: entry if key in _OWN_NAMES else _named(entry, depth - 1) for key, entry in fields.items()}


def _decoded(entry: Any) -> FileType:
    try:
        return msgspec.convert(entry, FileType, dec_hook=decode_value)
    except msgspec.ValidationError as error:
        flaw = explain(error, FileType, entry)
        raise _FieldError(flaw.field, flaw.message) from None


def _instance_type(written: FileType, others: Container[str]) -> InstanceType:
    _check_label_value("name", written.name)
    if written.name in others:
        raise _FieldError("name", "there is another type of this name")
    _check_label_value("architecture", written.architecture)
    if not written.operating_systems:
        raise _FieldError("operatingSystems", "expected at least one, such as linux")
    for position, system in enumerate(written.operating_systems):
        _check_label_value(f"operatingSystems[{position}]", system)
    resources = {name: _amount(name, text) for name, text in written.resources.items()}
    for name in ("cpu", "memory"):
        if resources.get(name, ZERO) == ZERO:
            raise _FieldError(f"resources.{name}", "a type needs some")
    offerings = tuple(
        offering
        for position, entry in enumerate(written.offerings)
        for offering in _offerings(entry, f"offerings[{position}]")
    )
    made = kwok_type(written.name, written.architecture, written.operating_systems, resources, offerings)
    return replace(made, devices=_devices(written)) if written.resource_slices else made


def _devices(written: FileType) -> TypeDevices:
    for position, binding in enumerate(written.attribute_bindings):
        if len(set(binding.devices)) < _LEAST_BOUND:
            raise _FieldError(f"attributeBindings[{position}].devices", "expected at least two devices")
    for position, template in enumerate(written.resource_slices):
        if bool(template.devices) == bool(template.shared_counters):
            raise _FieldError(f"resourceSlices[{position}]", "expected devices or sharedCounters, and not both")
    return TypeDevices(written.resource_slices, written.attribute_bindings)


def _amount(name: str, text: str | float) -> Quantity:
    field = f"resources.{name:.80}"
    if not _LABEL_KEY.fullmatch(name):
        raise _FieldError(field, "not the name of a resource")
    try:
        amount = parse_quantity(text)
    except ValueError as error:
        raise _FieldError(field, str(error)) from None
    if amount < ZERO:
        raise _FieldError(field, f"{text!s:.40} is negative")
    return amount


def _offerings(written: FileOffering, field: str) -> list[Offering]:
    """One offering per zone and capacity type that are written; most files write one of each."""
    if written.price is not None and written.price < 0:
        raise _FieldError(f"{field}.price", f"{written.price} is negative; leave the price out if it is not known")
    if written.reservation_capacity < 0:
        raise _FieldError(f"{field}.reservationCapacity", f"{written.reservation_capacity} is negative")
    wanted = Requirements(
        (entry.key, _requirement(entry, f"{field}.requirements[{position}]"))
        for position, entry in enumerate(written.requirements)
    )
    rest = wanted.without(ZONE, CAPACITY_TYPE)
    zones, kinds = (sorted(wanted[key].values) if key in wanted else [""] for key in (ZONE, CAPACITY_TYPE))
    return [_offering(written, _shared(rest.intersect(sold_in(*place)))) for place in product(zones, kinds)]


@lru_cache(maxsize=4096)
def _shared(wanted: Requirements) -> Requirements:
    """The same object for equal requirements: they are compared often, and an object equals itself at once."""
    return wanted


def _offering(written: FileOffering, wanted: Requirements) -> Offering:
    reserved = CAPACITY_TYPE in wanted and wanted[CAPACITY_TYPE] == one_of(RESERVED)
    reservation = wanted.get(RESERVATION_ID)
    return Offering(
        requirements=wanted,
        # Reserved capacity is paid for whether it is used or not, so using it costs nothing more.
        price=0.0 if reserved else written.price,
        available=written.available,
        reservation_id=next(iter(reservation.values), None) if reservation and not reservation.complement else None,
        reservation_capacity=written.reservation_capacity if reserved else 0,
    )


def _requirement(written: FileRequirement, field: str) -> Requirement:
    if not _LABEL_KEY.fullmatch(written.key):
        raise _FieldError(f"{field}.key", f"{written.key[:80]!r} is not a label key")
    for position, value in enumerate(written.values):
        _check_label_value(f"{field}.values[{position}]", value)
    try:
        rule = requirement(written.operator, written.values)
    except ValueError as error:
        raise _FieldError(f"{field}.operator", str(error)) from None
    key = canonical(written.key)
    if key in (ZONE, CAPACITY_TYPE) and (rule.complement or not rule.values):
        raise _FieldError(field, f"{key} of an offering needs operator In with a value")
    if key == CAPACITY_TYPE and not rule.values <= set(CAPACITY_TYPES):
        unknown = ", ".join(sorted(rule.values - set(CAPACITY_TYPES)))
        raise _FieldError(f"{field}.values", f"unknown capacity type {unknown}; use one of {', '.join(CAPACITY_TYPES)}")
    return rule


def _check_label_value(field: str, value: str) -> None:
    if not _LABEL_VALUE.fullmatch(value):
        raise _FieldError(field, f"{value[:80]!r} is not a label value: letters, digits, '-', '_', '.', at most 63")
