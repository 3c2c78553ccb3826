"""The decision journal: one JSON line per decision, in files that are rotated when they are full.

A failing disk stops nothing: a line that cannot be written is lost, and the log says so.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
import structlog

from karpool.disruption.brakes.failures import FailedCommand
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.command import Command
from karpool.execution.state import WaitOver
from karpool.execution.tickets import Ticket
from karpool.model.nodepool import NodeClaim
from karpool.model.reasons import Reason
from karpool.operator.journal_records import (
    BrakeRecord,
    CompletedRecord,
    DroppedRecord,
    JournalRecord,
    NoDecisionRecord,
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
from karpool.report.document import Unschedulable

_LOG_INTERVAL: Final = timedelta(minutes=1)

ReasonKeys = tuple[tuple[str, str, str], ...]
"""Names with reason codes and objects, without the sentences."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings:
    """The file of the decision journal; without a path nothing is written."""

    path: Path | None = None
    largest: int = 64 * 2**20
    """At how many bytes a new file begins."""
    old_files: int = 5


class Journal:
    """The current file and the older ones beside it: `journal.jsonl`, `journal.jsonl.1`, and so on."""

    def __init__(self, settings: JournalSettings, *, on_failure: Callable[[], None] = lambda: None) -> None:
        """`on_failure` is called for every line that is lost."""
        self._settings = settings
        self._on_failure = on_failure
        self._file: int | None = None
        self._failure_logged: datetime | None = None
        self._last_rejected: ReasonKeys | None = None
        self._last_unschedulable: ReasonKeys = ()

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

    def write(self, record: JournalRecord) -> None:
        """Append a record; never raises because of the disk."""
        path = self._settings.path
        if path is None:
            return
        try:
            self._append(path, msgspec.json.encode(record) + b"\n")
        except OSError as error:
            self._failed(record.time, error)

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _append(self, path: Path, line: bytes) -> None:
        file = self._opened(path)
        size = os.fstat(file).st_size
        if size and size + len(line) > self._settings.largest:
            self.close()
            self._rotate(path)
            file, size = self._opened(path), 0
        try:
            _write_all(file, line)
        except OSError:
            # Half a line would break the next one.
            os.ftruncate(file, size)
            raise

    def _opened(self, path: Path) -> int:
        if self._file is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
            _end_line(self._file)
        return self._file

    def _rotate(self, path: Path) -> None:
        """Give every file the next number; the oldest is deleted."""
        if self._settings.old_files == 0:
            path.unlink(missing_ok=True)
            return
        for number in range(self._settings.old_files - 1, 0, -1):
            younger = _numbered(path, number)
            if younger.exists():
                younger.replace(_numbered(path, number + 1))
        path.replace(_numbered(path, 1))

    def _failed(self, now: datetime, error: OSError) -> None:
        self._on_failure()
        if self._failure_logged is None or now - self._failure_logged >= _LOG_INTERVAL:
            self._failure_logged = now
            log.error(
                "journal write failed; decisions are not recorded", path=str(self._settings.path), error=str(error)
            )


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _end_line(file: int) -> None:
    """End the half line that a killed process left."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        _write_all(file, b"\n")
