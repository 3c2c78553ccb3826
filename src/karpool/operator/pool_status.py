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
_NOT_REGISTERED: Final = (
    "of the last four nodes, two or more did not register in time; check their instances and the node class"
)
_NOT_TRIED: Final = Condition(
    REGISTRATION_HEALTHY, "Unknown", "AwaitingRegistration", "no node has tried to register since the pool changed"
)


@dataclass(frozen=True, slots=True)
class DesiredPoolStatus:
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
    flaws: Sequence[Flaw],
    node_class_ready: Condition | bool | None = None,
    registers: bool | None = None,
) -> DesiredPoolStatus:
    """The status that a pool should have; what is None stays as it is."""
    problems = "; ".join(f"{flaw.field}: {flaw.message}" if flaw.field else flaw.message for flaw in flaws)
    valid = _condition(VALIDATION_SUCCEEDED, "ValidationFailed", problems[:_LONGEST_MESSAGE], holds=not flaws)
    ref = pool.spec.template.spec.node_class_ref
    not_there = f"{ref.kind} {ref.name} is not there, or is being deleted"
    if isinstance(node_class_ready, Condition):
        node_class: Condition | None = node_class_ready
    else:
        node_class = _condition(NODE_CLASS_READY, "NodeClassNotReady", not_there, holds=node_class_ready)
    ready = _ready([valid, node_class or condition(pool.status.conditions, NODE_CLASS_READY)])
    health = _condition(REGISTRATION_HEALTHY, "RegistrationFailures", _NOT_REGISTERED, holds=registers)
    conditions = tuple(entry for entry in (valid, node_class, ready, health) if entry is not None)
    return DesiredPoolStatus(conditions, resources)


def _condition(kind: str, reason: str, message: str, *, holds: bool | None) -> Condition | None:
    """A condition that is true, or false with a reason and a message; None if that is unknown."""
    if holds is None:
        return None
    return Condition(kind, "True", kind) if holds else Condition(kind, "False", reason, message)


def _ready(conditions: Sequence[Condition | None]) -> Condition:
    for status in ("False", "Unknown"):
        for entry in conditions:
            if entry is not None and entry.status == status:
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
