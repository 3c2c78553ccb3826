"""The status that a NodePool should have: its conditions, and the resources of its nodes.

Statuses are computed from typed objects and written as merge patches on plain JSON, so that conditions and fields of
others survive.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from karpool.cluster.nodes import StateNode
from karpool.live.patches import Json, set_condition
from karpool.model.nodepool import NodePool
from karpool.wire.objects import Condition, condition
from karpool.wire.problems import Flaw
from karpool.wire.quantity import NANO, Quantity, parse_quantity

READY: Final = "Ready"
VALIDATION_SUCCEEDED: Final = "ValidationSucceeded"
NODE_CLASS_READY: Final = "NodeClassReady"
REGISTRATION_HEALTHY: Final = "NodeRegistrationHealthy"
_ALWAYS_WRITTEN: Final = ("cpu", "memory", "pods", "ephemeral-storage", "nodes")
_LONGEST_MESSAGE: Final = 2000
_NOT_TRIED: Final = Condition(
    REGISTRATION_HEALTHY, "Unknown", "AwaitingRegistration", "no node has tried to register since the pool changed"
)


@dataclass(frozen=True, slots=True)
class DesiredPoolStatus:
    """The fields of a status that Karpool owns."""

    conditions: tuple[Condition, ...]
    resources: Mapping[str, Quantity]

    @property
    def nodes(self) -> int:
        return self.resources["nodes"].units


def total_resources(nodes: Iterable[StateNode]) -> dict[str, Quantity]:
    """The capacity of all nodes and their number, without nodes that are being deleted."""
    total = dict.fromkeys(_ALWAYS_WRITTEN, 0)
    for state in nodes:
        if not state.deleting:
            total["nodes"] += NANO
            for name, amount in state.capacity.items():
                total[name] = total.get(name, 0) + amount.nano
    return {name: Quantity(nano) for name, nano in total.items()}


def pool_status(
    pool: NodePool,
    *,
    resources: Mapping[str, Quantity],
    node_class_ready: bool | None,
    registers: bool | None,
    flaws: Sequence[Flaw],
) -> DesiredPoolStatus:
    """The status that a pool should have; what is None stays as it is."""
    valid = _validation(flaws)
    node_class = _node_class(pool, ready=node_class_ready)
    known = node_class or condition(pool.status.conditions, NODE_CLASS_READY)
    ready = _ready([valid] if known is None else [valid, known])
    health = None if registers is None else _registration(healthy=registers)
    conditions = tuple(entry for entry in (valid, node_class, ready, health) if entry is not None)
    return DesiredPoolStatus(conditions, resources)


def _validation(flaws: Sequence[Flaw]) -> Condition:
    if not flaws:
        return Condition(VALIDATION_SUCCEEDED, "True", VALIDATION_SUCCEEDED)
    message = "; ".join(f"{flaw.field}: {flaw.message}" if flaw.field else flaw.message for flaw in flaws)
    return Condition(VALIDATION_SUCCEEDED, "False", "ValidationFailed", message[:_LONGEST_MESSAGE])


def _node_class(pool: NodePool, *, ready: bool | None) -> Condition | None:
    if ready is None:
        return None
    if ready:
        return Condition(NODE_CLASS_READY, "True", NODE_CLASS_READY)
    ref = pool.spec.template.spec.node_class_ref
    message = f"{ref.kind} {ref.name} is not there, or is being deleted"
    return Condition(NODE_CLASS_READY, "False", "NodeClassNotReady", message)


def _registration(*, healthy: bool) -> Condition:
    if healthy:
        return Condition(REGISTRATION_HEALTHY, "True", REGISTRATION_HEALTHY)
    message = "of the last four nodes, two or more did not register in time; check their instances and the node class"
    return Condition(REGISTRATION_HEALTHY, "False", "RegistrationFailures", message)


def _ready(conditions: Sequence[Condition]) -> Condition:
    """Ready if all conditions are true; otherwise with the reason and message of the first that is not."""
    for status in ("False", "Unknown"):
        for entry in conditions:
            if entry.status == status:
                return Condition(READY, status, entry.reason, entry.message)
    return Condition(READY, "True", READY)


def status_patch(pool: Json, desired: DesiredPoolStatus, now: datetime) -> Json:
    """The merge patch that gives a pool its desired status; empty if it has it."""
    status = pool.get("status") or {}
    conditions = status.get("conditions") or []
    generation = pool["metadata"].get("generation", 0)
    written = _conditions(conditions, desired, generation, now)
    patch: Json = {} if written == conditions else {"conditions": written}
    if amounts := _resources_patch(status.get("resources") or {}, desired.resources):
        patch["resources"] = amounts
    if status.get("nodes") != desired.nodes:
        patch["nodes"] = desired.nodes
    return {"status": patch} if patch else {}


def _conditions(written: list[Any], status: DesiredPoolStatus, generation: int, now: datetime) -> list[Any]:
    desired = list(status.conditions)
    if not any(new.type == REGISTRATION_HEALTHY for new in desired) and not _tried(written, generation):
        desired.append(_NOT_TRIED)
    for new in desired:
        written = set_condition(written, new.type, new.status, new.reason, new.message, now)
        written = [
            {**entry, "observedGeneration": generation} if entry["type"] == new.type else entry for entry in written
        ]
    return written


def _tried(written: list[Any], generation: int) -> bool:
    """Whether a pool shows, for its current generation, how its nodes register."""
    return any(
        entry["type"] == REGISTRATION_HEALTHY and entry.get("observedGeneration", generation) == generation
        for entry in written
    )


def _resources_patch(written: Mapping[str, Any], desired: Mapping[str, Quantity]) -> Json:
    gone: Json = {name: None for name in written if name not in desired}
    return gone | {name: str(amount) for name, amount in desired.items() if _amount(written.get(name)) != amount}


def _amount(written: str | float | None) -> Quantity | None:
    try:
        return None if written is None else parse_quantity(written)
    except ValueError:
        return None
