"""The lines of the decision journal, declared once; fields are named as in the plan document."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec import field

from karpool.disruption.command import Command
from karpool.execution.tickets import Ticket, command_id
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from karpool.model.nodepool import NodeClaim
from karpool.model.reasons import Reason

API_VERSION: Final = "karpool.sh/v1"
Rejected = Sequence[tuple[str, Sequence[Reason]]]
"""Nodes that stay, by name, with every reason."""


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of every part of a line; all fields are always written."""


class Line(Part, frozen=True, kw_only=True, tag_field="kind"):
    """One line: what happened, and when."""

    api_version: str = API_VERSION
    time: datetime


class NewNode(Part, frozen=True, kw_only=True):
    """A node to launch; the instance types are cheapest first, a price that nobody knows is None."""

    name: str
    node_pool: str
    capacity_type: str
    zones: tuple[str, ...]
    instance_types: tuple[str, ...]
    price_per_hour: float | None


class Placement(Part, frozen=True, kw_only=True):
    """Where a pod goes; `source` is None for a pod that was pending."""

    pod: str
    source: str | None = field(name="from")
    target: str = field(name="to")


class Kept(Part, frozen=True, kw_only=True):
    """A node that stays, and every reason why."""

    name: str
    reasons: tuple[Reason, ...]


class Waiting(Part, frozen=True, kw_only=True):
    """A pod that no node can take, and why."""

    pod: str
    reasons: tuple[Reason, ...]


class NewClaim(Part, frozen=True, kw_only=True):
    """A node that was asked for because pods wait; what nothing is said about may be anything."""

    name: str
    node_pool: str
    capacity_types: tuple[str, ...]
    zones: tuple[str, ...]
    instance_types: tuple[str, ...]


class Decision(Line, frozen=True, kw_only=True, tag=True):
    """A command that was decided, and why every other node stays."""

    method: str
    reason: str
    decision: str
    nodes: tuple[str, ...]
    replacements: tuple[NewNode, ...]
    placements: tuple[Placement, ...]
    savings_per_hour: float | None
    disruption_cost: float
    ended: tuple[str, ...]
    rejected: tuple[Kept, ...]
    dry_run: bool


class NoDecision(Line, frozen=True, kw_only=True, tag=True):
    """A pass that found nothing to do, and why every node stays."""

    rejected: tuple[Kept, ...]


class Begun(Line, frozen=True, kw_only=True, tag=True):
    """A command that passed its second look, perhaps with fewer nodes than decided; its NodeClaims carry its id."""

    id: str
    method: str
    reason: str
    nodes: tuple[str, ...]
    savings_per_hour: float | None


class Dropped(Line, frozen=True, kw_only=True, tag=True):
    """A command that was never begun, because a second look found it wrong."""

    method: str
    reason: str
    nodes: tuple[str, ...]
    reasons: tuple[Reason, ...]


class RolledBack(Line, frozen=True, kw_only=True, tag=True):
    """A command that was begun and taken back."""

    id: str
    method: str
    reason: str
    nodes: tuple[str, ...]
    message: str


class Provisioned(Line, frozen=True, kw_only=True, tag=True):
    """Nodes that were asked for because pods wait, and the pods that no node can take."""

    new_nodes: tuple[NewClaim, ...]
    unschedulable: tuple[Waiting, ...]


AnyLine = Decision | NoDecision | Begun | Dropped | RolledBack | Provisioned


def decision_line(time: datetime, command: Command, rejected: Rejected = (), *, dry_run: bool = False) -> Decision:
    """A command as its line; replacements have no names yet and are called `new-1` and so on."""
    names = tuple(f"new-{number + 1}" for number in range(len(command.replacements)))
    return Decision(
        time=time,
        method=command.method.value,
        reason=command.cause.value,
        decision=command.decision,
        nodes=command.nodes,
        replacements=_new_nodes(command, names),
        placements=_placements(command, names),
        savings_per_hour=_savings(command),
        disruption_cost=command.disruption_cost,
        ended=command.ended,
        rejected=kept(rejected),
        dry_run=dry_run,
    )


def begun_line(time: datetime, command: Command) -> Begun:
    """A command that begins now."""
    return Begun(
        time=time,
        id=command_id(command, time),
        method=command.method.value,
        reason=command.cause.value,
        nodes=command.nodes,
        savings_per_hour=_savings(command),
    )


def dropped_line(time: datetime, command: Command, why: Reason) -> Dropped:
    """A command that does not begin."""
    return Dropped(
        time=time, method=command.method.value, reason=command.cause.value, nodes=command.nodes, reasons=(why,)
    )


def rolled_back_line(time: datetime, ticket: Ticket, message: str) -> RolledBack:
    """A command that is taken back."""
    return RolledBack(
        time=time, id=ticket.id, method=ticket.method, reason=ticket.cause, nodes=ticket.nodes, message=message
    )


def provisioned_line(
    time: datetime, claims: Sequence[NodeClaim], unschedulable: Sequence[tuple[str, Reason]]
) -> Provisioned:
    """NodeClaims for pods that wait, and the pods that no node can take."""
    return Provisioned(
        time=time,
        new_nodes=tuple(_new_claim(claim) for claim in claims),
        unschedulable=tuple(Waiting(pod=pod, reasons=(why,)) for pod, why in unschedulable),
    )


def _new_claim(claim: NodeClaim) -> NewClaim:
    wanted = {one.key: one.values for one in claim.spec.requirements if one.operator == "In"}
    return NewClaim(
        name=claim.name,
        node_pool=claim.metadata.labels.get(NODEPOOL, ""),
        capacity_types=wanted.get(CAPACITY_TYPE, ()),
        zones=wanted.get(ZONE, ()),
        instance_types=wanted.get(INSTANCE_TYPE, ()),
    )


def _savings(command: Command) -> float | None:
    """What a command saves an hour; None if the price of a node is unknown."""
    return None if command.unpriced else command.savings


def kept(rejected: Rejected) -> tuple[Kept, ...]:
    """Nodes that stay, as on a line."""
    return tuple(Kept(name=name, reasons=tuple(reasons)) for name, reasons in rejected)


def _new_nodes(command: Command, names: tuple[str, ...]) -> tuple[NewNode, ...]:
    return tuple(
        NewNode(
            name=name,
            node_pool=new.pool,
            capacity_type=new.capacity_type,
            zones=new.zones,
            instance_types=new.instance_types,
            price_per_hour=new.price,
        )
        for name, new in zip(names, command.replacements, strict=True)
    )


def _placements(command: Command, names: tuple[str, ...]) -> tuple[Placement, ...]:
    return tuple(
        Placement(
            pod=move.pod,
            source=move.source,
            target=names[move.target] if isinstance(move.target, int) else move.target,
        )
        for move in command.moves
        if not move.leaving
    )
