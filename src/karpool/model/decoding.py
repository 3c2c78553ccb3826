"""Decoding one object of a manifest: from JSON bytes to a typed object and its flaws."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from karpool.model import nodepool_v1beta1, provisioner
from karpool.model.kinds import KARPENTER, Kind
from karpool.model.provisioner import Provisioner
from karpool.model.rules import capacity_buffers, node_overlays, pools, workloads
from karpool.wire.fields import every_flaw, explain, unknown_fields, without_nulls, written_path
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
    omitted: tuple[Flaw, ...] = ()
    warnings: tuple[Flaw, ...] = ()


def read_object(raw: Raw, kind: Kind, api_version: str) -> ObjectReading:
    if kind.name in _KARPENTER_RULES:
        return _read_karpenter(raw, kind, api_version)
    try:
        obj = kind.decoder.decode(raw)
    except msgspec.ValidationError:
        # To Kubernetes null means absent: rare enough that objects are first decoded without a check for it.
        obj = _decode(_plain(raw), kind)
    if isinstance(obj, tuple):
        return ObjectReading(refused=obj)
    rule = _REFUSALS.get(kind.name)
    return ObjectReading(obj, tuple(rule(obj)) if rule is not None else ())


def _read_karpenter(raw: Raw, kind: Kind, api_version: str) -> ObjectReading:
    rules, written = _KARPENTER_RULES[kind.name], _plain(raw)
    if api_version == nodepool_v1beta1.API_VERSION:
        written = rules.upgrade(written)
    obj = _decode(written, kind)
    if isinstance(obj, tuple):
        return ObjectReading(refused=obj)
    refused, path = tuple(rules.refused(obj, written)), rules.claim_path
    tolerated = (*pools.omitted_fields(written, path), *pools.spelling_flaws(written, path))
    return ObjectReading(obj, refused, tolerated, tuple(_warnings(kind.struct, written, api_version)))


def read_provisioner(raw: Raw) -> ObjectReading:
    written = provisioner.with_flat_limits(_plain(raw))
    obj = _decode(written, _PROVISIONER)
    if isinstance(obj, tuple):
        return ObjectReading(refused=obj)
    refused = tuple(provisioner.refused_provisioner(obj, written))
    warnings = tuple(_warnings(Provisioner, written, provisioner.API_VERSION))
    return ObjectReading(None if refused else provisioner.as_node_pool(obj), refused, warnings=warnings)


def _plain(raw: Raw) -> Any:
    return without_nulls(msgspec.json.decode(raw))


def _decode(written: Any, kind: Kind) -> Any:
    """The object, or a tuple with what cannot be read of it."""
    try:
        return kind.decoder.decode(msgspec.json.encode(written))
    except msgspec.ValidationError as error:
        flaws = tuple(islice(every_flaw(kind.struct, written), _MOST_FLAWS))
        return flaws or (explain(error, kind.struct, written),)


def _warnings(struct: type[Object], written: Any, api_version: str) -> Iterator[Flaw]:
    if api_version not in ("", _CURRENT):
        yield Flaw("apiVersion", "Converted", f"{api_version} is read as {_CURRENT}")
    checked = {key: value for key, value in written.items() if key not in _OWN_TOP_FIELDS}
    for path, known in unknown_fields(struct, checked):
        hint = suggestion(str(path[-1]), known)
        yield Flaw(written_path(path), "UnknownField", f"is not a known field and is ignored{hint}")
