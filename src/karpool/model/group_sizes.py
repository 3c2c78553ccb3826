"""How small and how large node groups may be: what Cluster Autoscaler writes into its status, or a file says.

Cluster Autoscaler knows groups by the names of the cloud, one for each zone in some clouds; nodes know theirs by a
label. Which belong together follows from how clouds name things.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from karpool.model.labels import STATUS_MAP
from karpool.model.node import Node
from karpool.model.workloads import ConfigMap
from karpool.wire.documents import DocumentError, documents
from karpool.wire.fields import explain, unknown_field, unknown_fields, without_nulls
from karpool.wire.objects import Wire
from karpool.wire.problems import InputError, Problem

STATUS_NAMESPACE: Final = "kube-system"
STATUS_KEY: Final = "status"
_FROM_STATUS: Final = f"ConfigMap {STATUS_MAP}"
_FROM_FILE: Final = "--groups"

_TEXT_HEAD: Final = "Cluster-autoscaler status"
_TEXT_NAME: Final = re.compile(r"^\s*Name:\s+(\S+)\s*$")
_TEXT_SIZES: Final = re.compile(r"\(minSize=(\d{1,9}), maxSize=(\d{1,9})\)")
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class Sizes(NamedTuple):
    """The least and the most nodes of a group, and who says so; and what a node of it costs in $/h, if that is told."""

    minimum: int | None = None
    maximum: int | None = None
    source: str = ""
    price: float | None = None


UNKNOWN_SIZES: Final = Sizes()


class ScaledGroup(NamedTuple):
    """A group under the name that Cluster Autoscaler has for it."""

    name: str
    minimum: int
    maximum: int


# -- Cluster Autoscaler's status -------------------------------------------------------------------------------------


class _Health(msgspec.Struct, rename="camel"):
    min_size: int = 0
    max_size: int = 0


class _Group(msgspec.Struct, rename="camel"):
    name: str = ""
    health: _Health | None = None


class _Status(msgspec.Struct, rename="camel"):
    node_groups: tuple[_Group, ...] | None = None


def scaled_groups(status: ConfigMap) -> tuple[ScaledGroup, ...]:
    """The groups in Cluster Autoscaler's status, as YAML or as the text of versions before 1.30; none if it is odd."""
    text = status.data.get(STATUS_KEY, "")
    return tuple(_text_groups(text)) or tuple(_yaml_groups(text))


def is_readable(status: ConfigMap) -> bool:
    """Whether a status is one of Cluster Autoscaler, though it may name no groups."""
    text = status.data.get(STATUS_KEY, "")
    if text.startswith(_TEXT_HEAD):
        return True
    try:
        read = [msgspec.json.decode(document, type=_Status) for document in documents(text.encode())]
    except (DocumentError, msgspec.DecodeError, UnicodeError):
        return False
    return bool(read)


def _text_groups(text: str) -> Iterator[ScaledGroup]:
    name = ""
    for line in text.splitlines():
        named, sizes = _TEXT_NAME.match(line), _TEXT_SIZES.search(line)
        if named is not None:
            name = named[1]
        elif sizes is not None and name:
            yield ScaledGroup(name, int(sizes[1]), int(sizes[2]))
            name = ""


def _yaml_groups(text: str) -> Iterator[ScaledGroup]:
    try:
        read = [msgspec.json.decode(document, type=_Status) for document in documents(text.encode())]
    except (DocumentError, msgspec.DecodeError, UnicodeError):
        return
    for group in (group for status in read for group in status.node_groups or ()):
        if group.name and group.health is not None:
            yield ScaledGroup(group.name, group.health.min_size, group.health.max_size)


# -- the file --------------------------------------------------------------------------------------------------------


class FileSizes(Wire):
    minimum: int | None = None
    maximum: int | None = None
    price: float | None = None


class _File(Wire):
    groups: dict[str, FileSizes] = {}


def read_sizes(data: bytes, file: str) -> dict[str, Sizes]:
    """The sizes in a file by the name of the group; raises InputError with one line that names the field."""
    value = _one_document(data, file)
    try:
        read = msgspec.convert(value, _File)
    except msgspec.ValidationError as error:
        raise InputError(Problem.of(explain(error, _File, value), file=file, about="")) from error
    for path, known in unknown_fields(_File, value):
        raise InputError(Problem.of(unknown_field(path, known), file=file, about=""))
    for name, entry in read.groups.items():
        _check(entry, name, file)
    return {name: Sizes(entry.minimum, entry.maximum, _FROM_FILE, entry.price) for name, entry in read.groups.items()}


def _one_document(data: bytes, file: str) -> Any:
    expected = "expected one document such as {groups: {web: {minimum: 3, maximum: 12}}}"
    try:
        values = [without_nulls(msgspec.json.decode(document)) for document in documents(data)]
    except (DocumentError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError.at(file, str(error)) from error
    if len(values) != 1 or not isinstance(values[0], dict):
        raise InputError.at(file, expected)
    return values[0]


def _check(entry: FileSizes, name: str, file: str) -> None:
    for word, value in (("minimum", entry.minimum), ("maximum", entry.maximum)):
        if value is not None and value < 0:
            raise InputError.at(file, f"{value} is not allowed; write zero or more", field=f"groups.{name}.{word}")
    if entry.price is not None and not (0 <= entry.price < math.inf):
        message = f"{entry.price} is not allowed; write what a node costs in $/h"
        raise InputError.at(file, message, field=f"groups.{name}.price")
    if entry.minimum is not None and entry.maximum is not None and entry.minimum > entry.maximum:
        message = f"{entry.minimum} is more than the maximum of {entry.maximum}"
        raise InputError.at(file, message, field=f"groups.{name}.minimum")


# -- which belong together -------------------------------------------------------------------------------------------


def sizes_of(
    groups: Mapping[str, Sequence[Node]], statuses: Iterable[ConfigMap], written: Mapping[str, Sizes]
) -> dict[str, Sizes]:
    """The sizes of groups of nodes by name; a file goes before the status. Groups of which nobody says are left out.

    A file that says nothing but the price of a group leaves its sizes to the status.

    A group that Cluster Autoscaler has in several parts, as in several zones, may be as small and as large as these
    together. A part that several groups could claim belongs to the one with the longest name.
    """
    parts: dict[str, list[ScaledGroup]] = {}
    for scaled in (scaled for status in statuses for scaled in scaled_groups(status)):
        owners = [name for name, nodes in groups.items() if _same(scaled.name, name, nodes)]
        if owners:
            parts.setdefault(max(owners, key=lambda name: (len(name), name)), []).append(scaled)
    read = {
        name: Sizes(sum(part.minimum for part in found), sum(part.maximum for part in found), _FROM_STATUS)
        for name, found in parts.items()
    }
    for name, told in written.items():
        if name in groups:
            sized = told.minimum is not None or told.maximum is not None
            read[name] = told if sized else read.get(name, UNKNOWN_SIZES)._replace(price=told.price)
    return read


def _same(scaled: str, name: str, nodes: Sequence[Node]) -> bool:
    """Whether a group of Cluster Autoscaler holds the nodes that a label puts into a group."""
    last = scaled.rpartition("/")[2]
    own = re.escape(name)
    named = (
        own,
        rf"eks-{own}-{_UUID}",
        rf"eksctl-.+-nodegroup-{own}-NodeGroup-[0-9A-Za-z]+",
        rf"{own}\..+",  # kOps adds the name of the cluster
    )
    if any(re.fullmatch(pattern, last) for pattern in named):
        return True
    # A MachineSet is called as its MachineDeployment, and a few letters.
    if scaled.startswith("MachineDeployment/") and re.fullmatch(rf"{re.escape(last)}-[0-9a-z]+", name):
        return True
    return any(_named_after(node.name, last) for node in nodes)


def _named_after(node: str, group: str) -> bool:
    """Whether a cloud named a node after its group: GKE's `…-grp`, AKS's `…-vmss`."""
    if group.endswith("-grp"):
        return node.rpartition("-")[0] == group.removesuffix("-grp")
    return group.endswith("-vmss") and node.startswith(group)
