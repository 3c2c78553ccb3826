"""The records of the decision journal; fields and parts are those of the plan document."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from karpool.catalog.instance_types import Catalog
from karpool.catalog.pricing import capacity_type_of, label_of, node_price
from karpool.disruption.command import Command
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.reasons import Reason
from karpool.report.document_part import API_VERSION, DocumentPart
from karpool.report.plans.assemble import placement_parts, replacement_parts
from karpool.report.plans.document import PlacementPart, ReplacementPart, Unschedulable

Rejected = Sequence[tuple[str, Sequence[Reason]]]
"""Nodes that stay, by name, with every reason."""


class JournalRecord(DocumentPart, frozen=True, kw_only=True, tag_field="kind"):
    api_version: str = API_VERSION
    time: datetime


class KeptNode(DocumentPart, frozen=True, kw_only=True):
    name: str
    reasons: tuple[Reason, ...]


class RequestedNode(DocumentPart, frozen=True, kw_only=True):
    """A NodeClaim for pending pods; an empty field means that any value is allowed."""

    name: str
    node_pool: str
    capacity_types: tuple[str, ...]
    zones: tuple[str, ...]
    instance_types: tuple[str, ...]


class DecisionRecord(JournalRecord, frozen=True, kw_only=True, tag="Decision"):
    method: str
    reason: str
    decision: str
    nodes: tuple[str, ...]
    replacements: tuple[ReplacementPart, ...]
    placements: tuple[PlacementPart, ...]
    savings_per_hour: float | None
    disruption_cost: float
    ended: tuple[str, ...]
    rejected: tuple[KeptNode, ...]
    dry_run: bool


class NoDecisionRecord(JournalRecord, frozen=True, kw_only=True, tag="NoDecision"):
    rejected: tuple[KeptNode, ...]


class StartedRecord(JournalRecord, frozen=True, kw_only=True, tag="Begun"):
    """A command that was validated and started, perhaps with fewer nodes than decided; its NodeClaims have its id."""

    id: str
    method: str
    reason: str
    nodes: tuple[str, ...]
    savings_per_hour: float | None


class CompletedRecord(JournalRecord, frozen=True, kw_only=True, tag="Completed"):
    """A command whose nodes are gone; its replacements were ready before."""

    id: str
    method: str
    reason: str
    nodes: tuple[str, ...]
    savings_per_hour: float | None


class DroppedRecord(JournalRecord, frozen=True, kw_only=True, tag="Dropped"):
    method: str
    reason: str
    nodes: tuple[str, ...]
    reasons: tuple[Reason, ...]
    in_a_row: int
    """How often in a row a command with one of these nodes was dropped when it was to start."""


class RolledBackRecord(JournalRecord, frozen=True, kw_only=True, tag="RolledBack"):
    id: str
    method: str
    reason: str
    nodes: tuple[str, ...]
    cause: str
    message: str
    in_a_row: int
    """How often in a row a command with one of these nodes has failed."""


class WaitOverRecord(JournalRecord, frozen=True, kw_only=True, tag="WaitOver"):
    """A pod of a node that drains was let go, or the node, though pods that went before are not ready elsewhere."""

    id: str
    node: str
    object: str
    message: str


class BrakeRecord(JournalRecord, frozen=True, kw_only=True, tag="Brake"):
    """A brake took hold of a pool, or of everything; or it let go."""

    brake: str
    node_pool: str | None
    object: str
    message: str
    holds: bool


class NodeRecord(DocumentPart, frozen=True, kw_only=True):
    """What a node is, and costs in $/h; None if its price is unknown."""

    name: str
    node_pool: str
    instance_type: str
    capacity_type: str
    zone: str
    price_per_hour: float | None


class NodesRecord(JournalRecord, frozen=True, kw_only=True, tag="Nodes"):
    """Nodes of which the journal has not told yet what they are, or of which that has changed."""

    nodes: tuple[NodeRecord, ...]


class ProvisionedRecord(JournalRecord, frozen=True, kw_only=True, tag="Provisioned"):
    new_nodes: tuple[RequestedNode, ...]
    unschedulable: tuple[Unschedulable, ...]


def decision_record(time: datetime, command: Command, rejected: Rejected, *, dry_run: bool) -> DecisionRecord:
    """A command as its record; replacements have no names yet and are called `new-1` and so on."""
    names = tuple(f"new-{number + 1}" for number in range(len(command.new_nodes)))
    return DecisionRecord(
        time=time,
        method=command.method.value,
        reason=command.cause.value,
        decision=command.decision,
        nodes=command.nodes,
        replacements=replacement_parts(command, names),
        placements=placement_parts(command, names),
        savings_per_hour=known_savings(command),
        disruption_cost=command.disruption_cost,
        ended=command.ended,
        rejected=kept_nodes(rejected),
        dry_run=dry_run,
    )


def known_savings(command: Command) -> float | None:
    """What a command saves an hour; None if the price of a node is unknown."""
    return None if command.unpriced else command.savings


def kept_nodes(rejected: Rejected) -> tuple[KeptNode, ...]:
    return tuple(KeptNode(name=name, reasons=tuple(reasons)) for name, reasons in rejected)


def requested_node(claim: NodeClaim) -> RequestedNode:
    values = {
        requirement.key: requirement.values for requirement in claim.spec.requirements if requirement.operator == "In"
    }
    return RequestedNode(
        name=claim.name,
        node_pool=claim.metadata.labels.get(NODEPOOL, ""),
        capacity_types=values.get(CAPACITY_TYPE, ()),
        zones=values.get(ZONE, ()),
        instance_types=values.get(INSTANCE_TYPE, ()),
    )


def node_facts(nodes: Iterable[Node], catalog: Catalog) -> Iterator[NodeRecord]:
    for node in nodes:
        labels = node.metadata.labels
        yield NodeRecord(
            name=node.name,
            node_pool=labels.get(NODEPOOL, ""),
            instance_type=label_of(labels, INSTANCE_TYPE),
            capacity_type=capacity_type_of(labels),
            zone=label_of(labels, ZONE),
            price_per_hour=node_price(catalog, labels),
        )
