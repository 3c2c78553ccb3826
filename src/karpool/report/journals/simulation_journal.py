"""The decision journal of a simulated controller: the same lines as those of `karpool run`."""

from collections.abc import Sequence

import msgspec

from karpool.controller.observer import DecisionObserver
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.command import Command
from karpool.disruption.decide import Decision
from karpool.execution.state import RolledBack, WaitOver
from karpool.execution.tickets import Ticket
from karpool.model.reasons import Reason
from karpool.provisioning.provision import ProvisioningResult
from karpool.report.journals.journal_lines import JournalLines
from karpool.report.journals.journal_records import JournalRecord, node_facts
from karpool.virtual.cluster import VirtualCluster


class SimulationJournal(DecisionObserver, JournalLines):
    """Hears of the decisions of one virtual cluster; `lines` are JSON, each with its line break."""

    def __init__(self, cluster: VirtualCluster) -> None:
        super().__init__()
        self.lines: list[bytes] = []
        self._clock = cluster.queue
        self._nodes = cluster.store.nodes
        self._cloud = cluster.cloud
        self._braked: dict[tuple[str, str | None, str], Stop] = {}
        self._failed: set[str] = set()
        cluster.controller.observers.append(self)

    def write(self, record: JournalRecord) -> None:
        """Keep a record as a line."""
        self.lines.append(msgspec.json.encode(record) + b"\n")

    def wants_reasons(self, commands: Sequence[Command]) -> bool:
        """With every command; without one, reasons would take longer than the simulation itself."""
        return bool(commands)

    def pass_finished(self, decision: Decision) -> None:
        """Write what a pass decided, and which brakes took hold or let go."""
        now = self._clock.moment
        before = self._braked
        self._braked = {(stop.code, stop.pool, stop.object): stop for stop in decision.stops if stop.node is None}
        for key, stop in before.items():
            if key not in self._braked:
                self.braked(now, stop, holds=False)
        for key, stop in self._braked.items():
            if key not in before:
                self.braked(now, stop, holds=True)
        if decision.commands:
            self.nodes_known(now, node_facts(self._nodes.listed(), self._cloud.catalog))
            self.decided(now, decision.commands, list(decision.reasons.items()))

    def command_started(self, command: Command, identity: str) -> None:
        self.started(self._clock.moment, command, identity)

    def command_dropped(self, command: Command, reason: Reason, in_a_row: int) -> None:
        self.dropped(self._clock.moment, command, reason, in_a_row)

    def command_completed(self, ticket: Ticket) -> None:
        self.completed(self._clock.moment, ticket)

    def command_failed(self, command: RolledBack) -> None:
        """Write that a command was rolled back; each once, however often that is tried."""
        if command.ticket.id not in self._failed:
            self._failed.add(command.ticket.id)
            self.rolled_back(self._clock.moment, command.ticket, command.failure)

    def wait_over(self, wait: WaitOver) -> None:
        self.waited(self._clock.moment, wait)

    def pods_provisioned(self, result: ProvisioningResult) -> None:
        self.provisioned(self._clock.moment, result.claims, result.unschedulable)
