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


class RecordPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of every part of a line; all fields are always written."""


class JournalRecord(RecordPart, frozen=True, kw_only=True, tag_field="kind"):
    """One line: what happened, and when."""

    api_version: str = API_VERSION
    time: datetime


class LaunchRecord(RecordPart, frozen=True, kw_only=True):
    """A node to launch; the instance types are cheapest first, a price that nobody knows is None."""

    name: str
    node_pool: str
    capacity_type: str
    zones: tuple[str, ...]
    instance_types: tuple[str, ...]
    price_per_hour: float | None


class MoveRecord(RecordPart, frozen=True, kw_only=True):
    """Where a pod goes; `source` is None for a pod that was pending."""

    pod: str
    source: str | None = field(name="from")
    target: str = field(name="to")


class KeptNodeRecord(RecordPart, frozen=True, kw_only=True):
    """A node that stays, and every reason why."""

    name: str
    reasons: tuple[Reason, ...]


class UnschedulableRecord(RecordPart, frozen=True, kw_only=True):
    """A pod that no node can take, and why."""

    pod: str
    reasons: tuple[Reason, ...]


class NodeClaimRecord(RecordPart, frozen=True, kw_only=True):
    """A node that was asked for because pods wait; what nothing is said about may be anything."""

    name: str
    node_pool: str
    capacity_types: tuple[str, ...]
    zones: tuple[str, ...]
    instance_types: tuple[str, ...]


class DecisionRecord(JournalRecord, frozen=True, kw_only=True, tag="Decision"):
    """A command that was decided, and why every other node stays."""

    method: str
    reason: str
    decision: str
    nodes: tuple[str, ...]
    replacements: tuple[LaunchRecord, ...]
    placements: tuple[MoveRecord, ...]
    savings_per_hour: float | None
    disruption_cost: float
    ended: tuple[str, ...]
    rejected: tuple[KeptNodeRecord, ...]
    dry_run: bool


class NoDecisionRecord(JournalRecord, frozen=True, kw_only=True, tag="NoDecision"):
    """A pass that found nothing to do, and why every node stays."""

    rejected: tuple[KeptNodeRecord, ...]


class StartedRecord(JournalRecord, frozen=True, kw_only=True, tag="Begun"):
    """A command that passed its second look, perhaps with fewer nodes than decided; its NodeClaims carry its id."""

    id: str
    method: str
    reason: str
    nodes: tuple[str, ...]
    savings_per_hour: float | None


class DroppedRecord(JournalRecord, frozen=True, kw_only=True, tag="Dropped"):
    """A command that was never begun, because a second look found it wrong."""

    method: str
    reason: str
    nodes: tuple[str, ...]
    reasons: tuple[Reason, ...]


class RolledBackRecord(JournalRecord, frozen=True, kw_only=True, tag="RolledBack"):
    """A command that was begun and taken back."""

    id: str
    method: str
    reason: str
    nodes: tuple[str, ...]
    message: str


class ProvisionedRecord(JournalRecord, frozen=True, kw_only=True, tag="Provisioned"):
    """Nodes that were asked for because pods wait, and the pods that no node can take."""

    new_nodes: tuple[NodeClaimRecord, ...]
    unschedulable: tuple[UnschedulableRecord, ...]


AnyLine = DecisionRecord | NoDecisionRecord | StartedRecord | DroppedRecord | RolledBackRecord | ProvisionedRecord


def decision_line(
    time: datetime, command: Command, rejected: Rejected = (), *, dry_run: bool = False
) -> DecisionRecord:
    """A command as its line; replacements have no names yet and are called `new-1` and so on."""
    names = tuple(f"new-{number + 1}" for number in range(len(command.replacements)))
    return DecisionRecord(
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


def begun_line(time: datetime, command: Command) -> StartedRecord:
    """A command that begins now."""
    return StartedRecord(
        time=time,
        id=command_id(command, time),
        method=command.method.value,
        reason=command.cause.value,
        nodes=command.nodes,
        savings_per_hour=_savings(command),
    )


def dropped_line(time: datetime, command: Command, why: Reason) -> DroppedRecord:
    """A command that does not begin."""
    return DroppedRecord(
        time=time, method=command.method.value, reason=command.cause.value, nodes=command.nodes, reasons=(why,)
    )


def rolled_back_line(time: datetime, ticket: Ticket, message: str) -> RolledBackRecord:
    """A command that is taken back."""
    return RolledBackRecord(
        time=time, id=ticket.id, method=ticket.method, reason=ticket.cause, nodes=ticket.nodes, message=message
    )


def provisioned_line(
    time: datetime, claims: Sequence[NodeClaim], unschedulable: Sequence[tuple[str, Reason]]
) -> ProvisionedRecord:
    """NodeClaims for pods that wait, and the pods that no node can take."""
    return ProvisionedRecord(
        time=time,
        new_nodes=tuple(_new_claim(claim) for claim in claims),
        unschedulable=tuple(UnschedulableRecord(pod=pod, reasons=(why,)) for pod, why in unschedulable),
    )


def _new_claim(claim: NodeClaim) -> NodeClaimRecord:
    wanted = {one.key: one.values for one in claim.spec.requirements if one.operator == "In"}
    return NodeClaimRecord(
        name=claim.name,
        node_pool=claim.metadata.labels.get(NODEPOOL, ""),
        capacity_types=wanted.get(CAPACITY_TYPE, ()),
        zones=wanted.get(ZONE, ()),
        instance_types=wanted.get(INSTANCE_TYPE, ()),
    )


def _savings(command: Command) -> float | None:
    """What a command saves an hour; None if the price of a node is unknown."""
    return None if command.unpriced else command.savings


def kept(rejected: Rejected) -> tuple[KeptNodeRecord, ...]:
    """Nodes that stay, as on a line."""
    return tuple(KeptNodeRecord(name=name, reasons=tuple(reasons)) for name, reasons in rejected)


def _new_nodes(command: Command, names: tuple[str, ...]) -> tuple[LaunchRecord, ...]:
    return tuple(
        LaunchRecord(
            name=name,
            node_pool=new.pool,
            capacity_type=new.capacity_type,
            zones=new.zones,
            instance_types=new.instance_types,
            price_per_hour=new.price,
        )
        for name, new in zip(names, command.replacements, strict=True)
    )


def _placements(command: Command, names: tuple[str, ...]) -> tuple[MoveRecord, ...]:
    return tuple(
        MoveRecord(
            pod=move.pod,
            source=move.source,
            target=names[move.target] if isinstance(move.target, int) else move.target,
        )
        for move in command.moves
        if not move.leaving
    )
