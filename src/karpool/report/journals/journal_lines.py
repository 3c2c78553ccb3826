"""The lines of a decision journal, whoever keeps them."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from karpool.disruption.brakes.failures import FailedCommand
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.command import Command
from karpool.execution.state import WaitOver
from karpool.execution.tickets import Ticket
from karpool.model.nodepool import NodeClaim
from karpool.model.reasons import Reason
from karpool.report.journals.journal_records import (
    BrakeRecord,
    CompletedRecord,
    DroppedRecord,
    JournalRecord,
    NoDecisionRecord,
    NodeRecord,
    NodesRecord,
    ProvisionedRecord,
    Rejected,
    RolledBackRecord,
    StartedRecord,
    WaitOverRecord,
    decision_record,
    kept_nodes,
    known_savings,
    requested_node,
)
from karpool.report.plans.document import Unschedulable

ReasonKeys = tuple[tuple[str, str, str], ...]
"""Names with reason codes and objects, without the sentences."""


class JournalLines:
    """Makes a record of what happened, unless it only repeats the last one; `write` keeps it."""

    def __init__(self) -> None:
        self._last_rejected: ReasonKeys | None = None
        self._last_unschedulable: ReasonKeys = ()
        self._told: dict[str, NodeRecord] = {}

    def write(self, record: JournalRecord) -> None:
        """Keep a record."""
        raise NotImplementedError

    def decided(
        self, time: datetime, commands: Sequence[Command], rejected: Rejected, *, dry_run: bool = False
    ) -> None:
        """Write a line for each command; the first says why the other nodes stay.

        A pass without a command gets a line only if the nodes stay for other reasons than the last time.
        """
        if commands:
            self._last_rejected = None
            for number, command in enumerate(commands):
                self.write(decision_record(time, command, () if number else rejected, dry_run=dry_run))
            return
        # Messages hold times and prices that change from pass to pass without meaning anything new.
        keys = tuple((name, reason.code, reason.object) for name, reasons in rejected for reason in reasons)
        if keys != self._last_rejected:
            self._last_rejected = keys
            self.write(NoDecisionRecord(time=time, rejected=kept_nodes(rejected)))

    def nodes_known(self, time: datetime, facts: Iterable[NodeRecord]) -> None:
        """What all nodes of now are: a line with those of which that has not been written yet, or has changed."""
        known = {fact.name: fact for fact in facts}
        new = tuple(fact for name, fact in known.items() if self._told.get(name) != fact)
        self._told = known
        if new:
            self.write(NodesRecord(time=time, nodes=new))

    def began_anew(self) -> None:
        """A new file begins, which is to be understood without the older ones."""
        self._told = {}

    def started(self, time: datetime, command: Command, identity: str) -> None:
        self.write(
            StartedRecord(
                time=time,
                id=identity,
                method=command.method.value,
                reason=command.cause.value,
                nodes=command.nodes,
                savings_per_hour=known_savings(command),
            )
        )

    def dropped(self, time: datetime, command: Command, reason: Reason, in_a_row: int) -> None:
        self.write(
            DroppedRecord(
                time=time,
                method=command.method.value,
                reason=command.cause.value,
                nodes=command.nodes,
                reasons=(reason,),
                in_a_row=in_a_row,
            )
        )

    def braked(self, time: datetime, stop: Stop, *, holds: bool) -> None:
        """A brake took hold, or let go."""
        self.write(
            BrakeRecord(
                time=time, brake=stop.code, node_pool=stop.pool, object=stop.object, message=stop.message, holds=holds
            )
        )

    def waited(self, time: datetime, wait: WaitOver) -> None:
        """A drain goes on though pods that left before are not ready elsewhere."""
        self.write(WaitOverRecord(time=time, id=wait.command, node=wait.node, object=wait.object, message=wait.message))

    def completed(self, time: datetime, ticket: Ticket) -> None:
        """The nodes of a command are gone, and it saves what it promised."""
        self.write(
            CompletedRecord(
                time=time,
                id=ticket.id,
                method=ticket.method,
                reason=ticket.cause,
                nodes=ticket.nodes,
                savings_per_hour=ticket.savings,
            )
        )

    def rolled_back(self, time: datetime, ticket: Ticket, failure: FailedCommand) -> None:
        self.write(
            RolledBackRecord(
                time=time,
                id=ticket.id,
                method=ticket.method,
                reason=ticket.cause,
                nodes=ticket.nodes,
                cause=failure.cause,
                message=failure.message,
                in_a_row=failure.tries,
            )
        )

    def provisioned(
        self, time: datetime, claims: Sequence[NodeClaim], unschedulable: Sequence[tuple[str, Reason]]
    ) -> None:
        """NodeClaims are created for pending pods; pods without a place are written once, until that changes."""
        keys = tuple((pod, reason.code, reason.object) for pod, reason in unschedulable)
        if claims or keys != self._last_unschedulable:
            self._last_unschedulable = keys
            self.write(
                ProvisionedRecord(
                    time=time,
                    new_nodes=tuple(map(requested_node, claims)),
                    unschedulable=tuple(Unschedulable(pod=pod, reasons=(reason,)) for pod, reason in unschedulable),
                )
            )
