"""Decoding one object of a manifest: from JSON bytes to a typed object and its flaws."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from karpool.model import nodepool_v1beta1, provisioner
from karpool.model.provisioner import Provisioner
from karpool.model.reading.consequences import as_written, independent
from karpool.model.reading.kinds import KARPENTER, Kind
from karpool.model.rules import capacity_buffers, node_overlays, pools, workloads
from karpool.wire.fields import every_flaw, explain, unknown_fields, without_nulls, written_path
from karpool.wire.mending import mended
from karpool.wire.objects import Object
from karpool.wire.problems import Flaw, suggestion

Raw = bytes | memoryview | msgspec.Raw

_PROVISIONER: Final = Kind(Provisioner, "node_pools", (KARPENTER,))
_MOST_FLAWS: Final = 100
"""Of one object: input is hostile."""
_CURRENT: Final = "karpenter.sh/v1"
_REFUSALS: Final[dict[str, Callable[[Any], Iterator[Flaw]]]] = {
    "Pod": workloads.refused_pod,
    "DaemonSet": workloads.refused_owner,
    "Deployment": workloads.refused_owner,
    "ReplicaSet": workloads.refused_owner,
    "StatefulSet": workloads.refused_owner,
    "PersistentVolume": workloads.refused_volume,
    "PodDisruptionBudget": workloads.refused_budget,
    "PodTemplate": workloads.refused_template,
    "NodeOverlay": node_overlays.refused_overlay,
    "CapacityBuffer": capacity_buffers.refused_buffer,
}


class _KarpenterRules(NamedTuple):
    upgrade: Callable[[Any], Any]
    refused: Callable[[Any, Any], Iterator[Flaw]]
    claim_path: str


_KARPENTER_RULES: Final = {
    "NodePool": _KarpenterRules(nodepool_v1beta1.upgraded_pool, pools.refused_pool, pools.TEMPLATE),
    "NodeClaim": _KarpenterRules(nodepool_v1beta1.upgraded_node_claim, pools.refused_claim, "spec"),
}
_OWN_TOP_FIELDS: Final = ("apiVersion", "kind", "metadata", "status")


@dataclass(slots=True)
class ObjectReading:
    """A decoded object, or None, and its flaws: those that refuse it, required fields it leaves out, and warnings."""

    object: Object | None = None
    refused: tuple[Flaw, ...] = ()
    mended: Object | None = None
    """An object that cannot be read, without what is broken in it: to look for more flaws, not to decide."""
    omitted: tuple[Flaw, ...] = ()
    warnings: tuple[Flaw, ...] = ()


def read_object(raw: Raw, kind: Kind, api_version: str) -> ObjectReading:
    if kind.name in _KARPENTER_RULES:
        return _read_karpenter(raw, kind, api_version)
    try:
        obj = kind.decoder.decode(raw)
    except msgspec.ValidationError:
        # To Kubernetes null means absent: rare enough that objects are first decoded without a check for it.
        return _reading(decoded := _decode(_plain(raw), kind), _refused(kind, decoded.object))
    return ObjectReading(obj, _refused(kind, obj))


def _refused(kind: Kind, obj: Any) -> tuple[Flaw, ...]:
    rule = _REFUSALS.get(kind.name)
    return tuple(rule(obj)) if rule is not None and obj is not None else ()


def _read_karpenter(raw: Raw, kind: Kind, api_version: str) -> ObjectReading:
    rules, written = _KARPENTER_RULES[kind.name], _plain(raw)
    if api_version == nodepool_v1beta1.API_VERSION:
        written = rules.upgrade(written)
    decoded, path = _decode(written, kind), rules.claim_path
    if decoded.object is None:
        return _reading(decoded)
    refused = rules.refused(decoded.object, decoded.readable)
    tolerated = (*pools.omitted_fields(decoded.readable, path), *pools.spelling_flaws(decoded.readable, path))
    return _reading(decoded, refused, tolerated, _warnings(kind.struct, decoded.readable, api_version))


def read_provisioner(raw: Raw) -> ObjectReading:
    written = provisioner.with_flat_limits(_plain(raw))
    decoded = _decode(written, _PROVISIONER)
    if decoded.object is None:
        return _reading(decoded)
    refused = tuple(provisioner.refused_provisioner(decoded.object, decoded.readable))
    wrong = {flaw.field for flaw in refused}
    warnings = _warnings(Provisioner, decoded.readable, provisioner.API_VERSION)
    reading = _reading(decoded, refused, (), (flaw for flaw in warnings if flaw.field not in wrong))
    pool = None if reading.refused else provisioner.as_node_pool(decoded.object)
    return replace(reading, object=pool, mended=None)


def _plain(raw: Raw) -> Any:
    return without_nulls(msgspec.json.decode(raw))


class _Decoded(NamedTuple):
    """An object, as far as it can be read, what it was read from, and what of that cannot be read."""

    object: Any
    written: Any
    readable: Any
    broken: tuple[Flaw, ...] = ()


def _decode(written: Any, kind: Kind) -> _Decoded:
    try:
        return _Decoded(kind.decoder.decode(msgspec.json.encode(written)), written, written)
    except msgspec.ValidationError as error:
        found = tuple(islice(every_flaw(kind.struct, written), _MOST_FLAWS))
        flaws = tuple(broken.flaw for broken in found) or (explain(error, kind.struct, written),)
        readable = mended(kind.struct, written, (broken.path for broken in found)) if found else None
    try:
        obj = None if readable is None else kind.decoder.decode(msgspec.json.encode(readable))
    except msgspec.ValidationError:
        obj = None
    return _Decoded(obj, written, readable, flaws)


def _reading(
    decoded: _Decoded, refused: Iterable[Flaw] = (), omitted: Iterable[Flaw] = (), warnings: Iterable[Flaw] = ()
) -> ObjectReading:
    """All flaws of an object, each once; what cannot be read of it does not hide the others."""
    if not decoded.broken:
        return ObjectReading(decoded.object, tuple(refused), None, tuple(omitted), tuple(warnings))
    known = decoded.broken
    every = as_written((*known, *independent(refused, known)), decoded.written)
    return ObjectReading(None, every, decoded.object, tuple(independent(omitted, known)), tuple(warnings))


def _warnings(struct: type[Object], written: Any, api_version: str) -> Iterator[Flaw]:
    if api_version not in ("", _CURRENT):
        yield Flaw("apiVersion", "Converted", f"{api_version} is read as {_CURRENT}")
    checked = {key: value for key, value in written.items() if key not in _OWN_TOP_FIELDS}
    for path, known in unknown_fields(struct, checked):
        hint = suggestion(str(path[-1]), known)
        yield Flaw(written_path(path), "UnknownField", f"is not a known field and is ignored{hint}")
