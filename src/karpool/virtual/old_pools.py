"""Pools of older APIs in a scenario, read as the NodePools they became: those of v1beta1, and Provisioners."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from karpool.model import nodepool_v1beta1, provisioner
from karpool.model.nodepool import NodePool
from karpool.model.reading.decoding import ObjectReading, read_object, read_provisioner
from karpool.model.reading.kinds import KINDS
from karpool.wire.objects import encode_value
from karpool.wire.problems import Flaw, suggestion

_POOL: Final = NodePool.__name__
_PROVISIONER: Final = "Provisioner"
_CURRENT: Final = "karpenter.sh/v1"
_VERSIONS: Final = {_POOL: (_CURRENT, nodepool_v1beta1.API_VERSION), _PROVISIONER: (provisioner.API_VERSION,)}
"""What an entry of `pools` may be; it is the first of them where it does not say."""


def is_old(pool: Any) -> bool:
    """Whether an entry of `pools` says that it is of an older API."""
    return _api_of(pool)[1] in (nodepool_v1beta1.API_VERSION, provisioner.API_VERSION)


def with_node_pools(scenario: Any) -> Any:
    """A scenario as plain values, in which every pool is a NodePool of today."""
    pools = _pools(scenario)
    for flaw in _kind_flaws(pools):
        raise msgspec.ValidationError(f"{flaw.field}: {flaw.message}")
    if not any(map(is_old, pools)):
        return scenario
    return {**scenario, "pools": [_as_node_pool(pool) if is_old(pool) else pool for pool in pools]}


def old_pool_flaws(scenario: Any) -> Iterator[Flaw]:
    """Pools that are none, and what is wrong with those of older APIs; fields that they never had would be ignored."""
    pools = _pools(scenario)
    wrong = list(_kind_flaws(pools))
    yield from wrong
    for number, pool in enumerate(() if wrong else pools):
        if is_old(pool):
            reading = _read(pool)
            unknown = (flaw for flaw in reading.warnings if flaw.rule == "UnknownField")
            for flaw in (*reading.refused, *unknown):
                message = flaw.message.replace(" and is ignored", "")
                yield Flaw(f"pools[{number}].{flaw.field}", flaw.rule, message)


def _pools(scenario: Any) -> list[Any]:
    pools = scenario.get("pools") if isinstance(scenario, dict) else None
    return pools if isinstance(pools, list) else []


def _api_of(pool: Any) -> tuple[Any, Any]:
    """The kind and the version of an entry; what it leaves out is that of a NodePool of today, or of a Provisioner."""
    if not isinstance(pool, dict):
        return _POOL, _CURRENT
    kind, version = pool.get("kind"), pool.get("apiVersion")
    kind = _POOL if kind is None else kind
    if version is not None:
        return kind, version
    return kind, _VERSIONS[kind][0] if isinstance(kind, str) and kind in _VERSIONS else _CURRENT


def _kind_flaws(pools: list[Any]) -> Iterator[Flaw]:
    for number, pool in enumerate(pools):
        kind, version = _api_of(pool)
        known = _VERSIONS.get(kind) if isinstance(kind, str) else None
        if known is None:
            message = f"{str(kind)[:60]!r} is no kind of pool; write {' or '.join(_VERSIONS)}"
            yield Flaw(f"pools[{number}].kind", "Kind", f"{message}{suggestion(str(kind)[:60], _VERSIONS)}")
        elif version not in known:
            message = f"{str(version)[:60]!r} is no version of a {kind} that can be read; write {' or '.join(known)}"
            yield Flaw(f"pools[{number}].apiVersion", "ApiVersion", message)


def _as_node_pool(written: dict[str, Any]) -> Any:
    pool = _read(written).object
    if pool is None:
        flaw = next(old_pool_flaws({"pools": [written]}))
        raise msgspec.ValidationError(f"{_api_of(written)[0]}: {flaw.field.partition('.')[2]}: {flaw.message}")
    return msgspec.to_builtins(pool, enc_hook=encode_value)


def _read(written: dict[str, Any]) -> ObjectReading:
    kind, version = _api_of(written)
    raw = msgspec.Raw(msgspec.json.encode({**_with_template(written), "apiVersion": version}))
    return read_provisioner(raw) if kind == _PROVISIONER else read_object(raw, KINDS[_POOL], version)


def _with_template(written: dict[str, Any]) -> dict[str, Any]:
    """Scenarios may leave out the template of a NodePool, to which v1 has moved some of what v1beta1 says elsewhere."""
    spec = written.get("spec")
    if not isinstance(spec, dict) or written.get("kind") == _PROVISIONER:
        return written
    template = spec.get("template", {})
    if isinstance(template, dict):
        template = {"spec": {}, **template}
    return {**written, "spec": {**spec, "template": template}}
