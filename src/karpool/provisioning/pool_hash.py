"""The hash of a NodePool's template: nodes made from another template have drifted.

It is the hash that Karpenter writes (`hashstructure` of version 2, with lists as sets and without zero values), so that
either controller can take over from the other and no node drifts. A list or a map that is written out empty is not the
same as none.
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import xor
from typing import Final

from karpool.model.labels import HASH_VERSION, NODEPOOL_HASH, NODEPOOL_HASH_VERSION
from karpool.model.nodepool import NodeClassRef, NodePool, Unwritten, UnwrittenMap
from karpool.model.scheduling import Taint
from karpool.wire.duration import Duration

_FNV_OFFSET: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_MASK: Final = 2**64 - 1
_WORD: Final = 8


def pool_hash(pool: NodePool) -> str:
    """A hash of everything in the template that nodes get once: labels, annotations, taints, class, life span."""
    template = pool.spec.template
    spec, metadata = template.spec, template.metadata
    fields = {
        "Taints": _taints(spec.taints),
        "StartupTaints": _taints(spec.startup_taints),
        "NodeClassRef": _class(spec.node_class_ref),
        "TerminationGracePeriod": _grace_period(spec.termination_grace_period),
        "ExpireAfter": _life_span(spec.expire_after),
    }
    maps = {"Labels": _map(metadata.labels), "Annotations": _map(metadata.annotations)}
    named = any(entry is not None for entry in maps.values())
    whole = {
        "ObjectMeta": _struct("ObjectMeta", maps) if named else None,
        "Spec": _struct("NodeClaimTemplateSpec", fields),
    }
    return str(_struct("NodeClaimTemplate", whole))


def hash_annotations(pool: NodePool) -> dict[str, str]:
    """The annotations that a pool should get now; none if it carries them already."""
    wanted = {NODEPOOL_HASH: pool_hash(pool), NODEPOOL_HASH_VERSION: HASH_VERSION}
    return {key: value for key, value in wanted.items() if pool.metadata.annotations.get(key) != value}


# -- hashstructure -----------------------------------------------------------------------------------------------------


def _fnv(data: bytes) -> int:
    """FNV-1 in 64 bits."""
    digest = _FNV_OFFSET
    for byte in data:
        digest = (digest * _FNV_PRIME & _MASK) ^ byte
    return digest


def _text(text: str) -> int:
    return _fnv(text.encode())


def _number(number: int | None) -> int | None:
    return None if number is None else _fnv(number.to_bytes(_WORD, "little", signed=True))


def _pair(name: int, value: int) -> int:
    return _fnv(name.to_bytes(_WORD, "little") + value.to_bytes(_WORD, "little"))


def _united(members: Iterable[int]) -> int:
    """Hashes in no order; two equal ones cancel each other out."""
    return reduce(xor, members, 0)


def _struct(kind: str, fields: Mapping[str, int | None]) -> int:
    """The hash of a struct of Go by the hashes of its fields, in their order; None: a zero value, which is left out."""
    digest = _text(kind)
    for name, value in fields.items():
        if value is not None:
            digest = _finished(digest ^ _pair(_text(name), value))
    return digest


def _finished(digest: int) -> int:
    return _fnv(digest.to_bytes(_WORD, "little"))


def _map(entries: Mapping[str, str]) -> int | None:
    pairs = (_pair(_text(key), _text(value)) for key, value in entries.items())
    return None if isinstance(entries, UnwrittenMap) else _finished(_united(pairs))


def _taints(taints: tuple[Taint, ...]) -> int | None:
    return _united(map(_taint, taints)) if not isinstance(taints, Unwritten) else None


def _taint(taint: Taint) -> int:
    return _struct("Taint", _texts({"Key": taint.key, "Value": taint.value, "Effect": taint.effect}))


def _class(ref: NodeClassRef) -> int | None:
    texts = _texts({"Kind": ref.kind, "Name": ref.name, "Group": ref.group})
    return _struct("NodeClassReference", texts) if any(texts.values()) else None


def _texts(fields: Mapping[str, str]) -> dict[str, int | None]:
    return {name: _text(value) if value else None for name, value in fields.items()}


def _life_span(length: Duration) -> int | None:
    return None if length.never else _struct("NillableDuration", {"Duration": _number(length.nanos)})


def _grace_period(length: Duration | None) -> int | None:
    # A number that is zero is left out, unless a pointer leads to it as in `ExpireAfter`.
    return None if length is None else _struct("Duration", {"Duration": _number(length.nanos or None)})
