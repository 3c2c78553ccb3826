"""What the status of a NodePool should say: whether it can be used, and what its machines have together.

Statuses are worked out from typed objects and written as merge patches on plain JSON, so that conditions and fields of
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
_ALWAYS_SAID: Final = ("cpu", "memory", "pods", "ephemeral-storage", "nodes")
_LONGEST_MESSAGE: Final = 2000
_UNTRIED: Final = Condition(
    REGISTRATION_HEALTHY, "Unknown", "AwaitingRegistration", "no node has tried to register since the pool changed"
)


@dataclass(frozen=True, slots=True)
class WantedStatus:
    """The fields of a status that are Karpool's."""

    conditions: tuple[Condition, ...]
    resources: Mapping[str, Quantity]

    @property
    def nodes(self) -> int:
        """How many machines the pool has."""
        return self.resources["nodes"].units


def counted(machines: Iterable[StateNode]) -> dict[str, Quantity]:
    """What machines have together, and their number; those on their way out use up no limit and are left out."""
    total = dict.fromkeys(_ALWAYS_SAID, 0)
    for state in machines:
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
) -> WantedStatus:
    """The status that a pool should have; None: nobody can judge, so that whatever is written stays."""
    valid = _validation(flaws)
    node_class = _node_class(pool, ready=node_class_ready)
    known = node_class or condition(pool.status.conditions, NODE_CLASS_READY)
    ready = _ready([valid] if known is None else [valid, known])
    health = None if registers is None else _registration(healthy=registers)
    conditions = tuple(one for one in (valid, node_class, ready, health) if one is not None)
    return WantedStatus(conditions, resources)


def _validation(flaws: Sequence[Flaw]) -> Condition:
    if not flaws:
        return Condition(VALIDATION_SUCCEEDED, "True", VALIDATION_SUCCEEDED)
    said = "; ".join(f"{flaw.field}: {flaw.message}" if flaw.field else flaw.message for flaw in flaws)
    return Condition(VALIDATION_SUCCEEDED, "False", "ValidationFailed", said[:_LONGEST_MESSAGE])


def _node_class(pool: NodePool, *, ready: bool | None) -> Condition | None:
    if ready is None:
        return None
    if ready:
        return Condition(NODE_CLASS_READY, "True", NODE_CLASS_READY)
    ref = pool.spec.template.spec.node_class_ref
    said = f"{ref.kind} {ref.name} is not there, or is being deleted"
    return Condition(NODE_CLASS_READY, "False", "NodeClassNotReady", said)


def _registration(*, healthy: bool) -> Condition:
    if healthy:
        return Condition(REGISTRATION_HEALTHY, "True", REGISTRATION_HEALTHY)
    said = "of the last four nodes, two or more did not register in time; look at their machines and at the node class"
    return Condition(REGISTRATION_HEALTHY, "False", "RegistrationFailures", said)


def _ready(rests_on: Sequence[Condition]) -> Condition:
    """Ready if everything is that it rests on; otherwise it says what the first of these says."""
    for status in ("False", "Unknown"):
        for one in rests_on:
            if one.status == status:
                return Condition(READY, status, one.reason, one.message)
    return Condition(READY, "True", READY)


def status_patch(held: Json, wanted: WantedStatus, now: datetime) -> Json:
    """The merge patch that gives a pool its wanted status; empty if it has it."""
    status = held.get("status") or {}
    conditions = status.get("conditions") or []
    generation = held["metadata"].get("generation", 0)
    written = _conditions(conditions, wanted, generation, now)
    patch: Json = {} if written == conditions else {"conditions": written}
    if amounts := _resources_patch(status.get("resources") or {}, wanted.resources):
        patch["resources"] = amounts
    if status.get("nodes") != wanted.nodes:
        patch["nodes"] = wanted.nodes
    return {"status": patch} if patch else {}


def _conditions(held: list[Any], wanted: WantedStatus, generation: int, now: datetime) -> list[Any]:
    listed = list(wanted.conditions)
    if not any(one.type == REGISTRATION_HEALTHY for one in listed) and not _tried(held, generation):
        listed.append(_UNTRIED)
    for one in listed:
        held = set_condition(held, one.type, one.status, one.reason, one.message, now)
        held = [{**entry, "observedGeneration": generation} if entry["type"] == one.type else entry for entry in held]
    return held


def _tried(held: list[Any], generation: int) -> bool:
    """Whether a pool says, of what it is now, how its nodes register."""
    return any(
        entry["type"] == REGISTRATION_HEALTHY and entry.get("observedGeneration", generation) == generation
        for entry in held
    )


def _resources_patch(held: Mapping[str, Any], wanted: Mapping[str, Quantity]) -> Json:
    gone: Json = {name: None for name in held if name not in wanted}
    return gone | {name: str(amount) for name, amount in wanted.items() if _amount(held.get(name)) != amount}


def _amount(written: str | float | None) -> Quantity | None:
    try:
        return None if written is None else parse_quantity(written)
    except ValueError:
        return None
