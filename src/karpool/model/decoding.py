"""One object of a manifest: from JSON bytes to a typed object, or to the flaws that keep it from being one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from karpool.model import nodepool_v1beta1, provisioner
from karpool.model.kinds import KARPENTER, KINDS, Kind
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.provisioner import Provisioner
from karpool.model.rules import pools, workloads
from karpool.wire.fields import explain, unknown_fields, without_nulls, written_path
from karpool.wire.objects import Object
from karpool.wire.problems import Flaw, suggestion

Raw = bytes | memoryview | msgspec.Raw

_PROVISIONER: Final = Kind(Provisioner, "node_pools", (KARPENTER,))
_CURRENT: Final = "karpenter.sh/v1"
_REFUSALS: Final[dict[str, Callable[[Any, Any], Iterator[Flaw]]]] = {
    "Pod": workloads.refused_pod,
    "DaemonSet": workloads.refused_owner,
    "Deployment": workloads.refused_owner,
    "ReplicaSet": workloads.refused_owner,
    "StatefulSet": workloads.refused_owner,
    "PersistentVolume": workloads.refused_volume,
    "PodDisruptionBudget": workloads.refused_budget,
}
_OWN_TOP_FIELDS: Final = ("apiVersion", "kind", "metadata", "status")


@dataclass(slots=True)
class ObjectReading:
    """What became of one object: the object if it decoded, what is wrong with it, what it leaves out, what to know."""

    object: Object | None = None
    refused: tuple[Flaw, ...] = ()
    omitted: tuple[Flaw, ...] = ()
    warnings: tuple[Flaw, ...] = ()


def read_object(raw: Raw, kind: Kind) -> ObjectReading:
    """An object of a Kubernetes kind."""
    try:
        found = kind.decoder.decode(raw)
    except msgspec.ValidationError:
        # To Kubernetes null means absent: rare enough that objects are first decoded without asking.
        found = _decode(_plain(raw), kind)
    if isinstance(found, Flaw):
        return ObjectReading(refused=(found,))
    rule = _REFUSALS.get(kind.name)
    return ObjectReading(found, tuple(rule(found, None)) if rule is not None else ())


def read_pool(raw: Raw, api_version: str) -> ObjectReading:
    """A NodePool of v1 or v1beta1."""
    written = _plain(raw)
    if api_version == nodepool_v1beta1.API_VERSION:
        written = nodepool_v1beta1.upgraded_pool(written)
    found = _decode(written, KINDS["NodePool"])
    if isinstance(found, Flaw):
        return ObjectReading(refused=(found,))
    refused, omitted = pools.refused_pool(found, written), pools.omitted_pool(written)
    return ObjectReading(found, tuple(refused), tuple(omitted), tuple(_warnings(NodePool, written, api_version)))


def read_claim(raw: Raw, api_version: str) -> ObjectReading:
    """A NodeClaim of v1 or v1beta1."""
    written = _plain(raw)
    if api_version == nodepool_v1beta1.API_VERSION:
        written = nodepool_v1beta1.upgraded_node_claim(written)
    found = _decode(written, KINDS["NodeClaim"])
    if isinstance(found, Flaw):
        return ObjectReading(refused=(found,))
    refused, omitted = pools.refused_claim(found, written), pools.omitted_claim(written)
    return ObjectReading(found, tuple(refused), tuple(omitted), tuple(_warnings(NodeClaim, written, api_version)))


def read_provisioner(raw: Raw) -> ObjectReading:
    """A Provisioner, as a NodePool."""
    written = provisioner.with_flat_limits(_plain(raw))
    found = _decode(written, _PROVISIONER)
    if isinstance(found, Flaw):
        return ObjectReading(refused=(found,))
    refused = tuple(provisioner.refused_provisioner(found, written))
    warnings = tuple(_warnings(Provisioner, written, provisioner.API_VERSION))
    return ObjectReading(None if refused else provisioner.as_node_pool(found), refused, warnings=warnings)


def _plain(raw: Raw) -> Any:
    return without_nulls(msgspec.json.decode(raw))


def _decode(written: Any, kind: Kind) -> Any:
    try:
        return kind.decoder.decode(msgspec.json.encode(written))
    except msgspec.ValidationError as error:
        return explain(error, kind.struct, written)


def _warnings(struct: type[Object], written: Any, api_version: str) -> Iterator[Flaw]:
    if api_version not in ("", _CURRENT):
        yield Flaw("apiVersion", "Converted", f"{api_version} is read as {_CURRENT}")
    checked = {key: value for key, value in written.items() if key not in _OWN_TOP_FIELDS}
    for path, known in unknown_fields(struct, checked):
        hint = suggestion(str(path[-1]), known)
        yield Flaw(written_path(path), "UnknownField", f"is not a known field and is ignored{hint}")
