"""Provisioners of `karpenter.sh/v1alpha5` among the pools of a scenario, read as the NodePools they became."""

from collections.abc import Iterator
from typing import Any

import msgspec

from karpool.model import provisioner
from karpool.model.reading.decoding import ObjectReading, read_provisioner
from karpool.wire.objects import encode_value
from karpool.wire.problems import Flaw


def is_provisioner(pool: Any) -> bool:
    """Whether an entry of `pools` says that it is one."""
    return isinstance(pool, dict) and pool.get("kind") == "Provisioner" and _is_old(pool.get("apiVersion"))


def _is_old(version: object) -> bool:
    return version in (None, provisioner.API_VERSION)


def with_node_pools(scenario: Any) -> Any:
    """A scenario as plain values, in which every Provisioner that can be read is a NodePool."""
    pools = _pools(scenario)
    if not any(map(is_provisioner, pools)):
        return scenario
    return {**scenario, "pools": [_as_node_pool(pool) if is_provisioner(pool) else pool for pool in pools]}


def provisioner_flaws(scenario: Any) -> Iterator[Flaw]:
    """What is wrong with Provisioners; fields that they never had would be ignored."""
    for number, pool in enumerate(_pools(scenario)):
        if is_provisioner(pool):
            reading = _read(pool)
            unknown = (flaw for flaw in reading.warnings if flaw.rule == "UnknownField")
            for flaw in (*reading.refused, *unknown):
                message = flaw.message.replace(" and is ignored", "")
                yield Flaw(f"pools[{number}].{flaw.field}", flaw.rule, message)


def _pools(scenario: Any) -> list[Any]:
    pools = scenario.get("pools") if isinstance(scenario, dict) else None
    return pools if isinstance(pools, list) else []


def _as_node_pool(written: dict[str, Any]) -> Any:
    pool = _read(written).object
    if pool is None:
        flaw = next(provisioner_flaws({"pools": [written]}))
        raise msgspec.ValidationError(f"Provisioner: {flaw.field.partition('.')[2]}: {flaw.message}")
    return msgspec.to_builtins(pool, enc_hook=encode_value)


def _read(written: dict[str, Any]) -> ObjectReading:
    return read_provisioner(msgspec.Raw(msgspec.json.encode({"apiVersion": provisioner.API_VERSION, **written})))
