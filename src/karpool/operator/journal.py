"""The decision journal: one JSON line for every decision, in files that take each other's place when they are full.

Nobody waits for the disk and nothing fails because of it: a line that cannot be written is lost, and the log says so.
"""

import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
import structlog

from karpool.disruption.command import Command
from karpool.execution.tickets import Ticket
from karpool.model.nodepool import NodeClaim
from karpool.model.reasons import Reason
from karpool.operator.journal_records import (
    AnyLine,
    NoDecisionRecord,
    Rejected,
    begun_line,
    decision_line,
    dropped_line,
    kept,
    provisioned_line,
    rolled_back_line,
)

LARGEST: Final = 64 * 2**20
OLD_FILES: Final = 5
_TELL_EVERY: Final = timedelta(minutes=1)

Gist = tuple[tuple[str, str, str], ...]
"""Who is told about, and for which reasons, without the words."""

log = structlog.get_logger(__name__)


class Journal:
    """A file of lines, and the older ones beside it: `journal.jsonl`, `journal.jsonl.1`, and so on to the oldest."""

    def __init__(
        self,
        path: Path | None,
        *,
        largest: int = LARGEST,
        old_files: int = OLD_FILES,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        """Without a path nothing is written; `on_failure` hears of every line that is lost."""
        self._path = path
        self._largest = largest
        self._old_files = old_files
        self._on_failure = on_failure
        self._file: int | None = None
        self._told: datetime | None = None
        self._nothing: Gist | None = None
        self._waiting: Gist = ()

    def decided(
        self, time: datetime, commands: Sequence[Command], rejected: Rejected, *, dry_run: bool = False
    ) -> None:
        """A pass is over: a line for each command, the first of which tells why the other nodes stay.

        A pass without a command has a line of its own, unless the nodes stay for the same reasons as the last time.
        """
        if not commands:
            self._decided_nothing(time, rejected)
            return
        self._nothing = None
        for number, command in enumerate(commands):
            self.write(decision_line(time, command, () if number else rejected, dry_run=dry_run))

    def begun(self, time: datetime, command: Command) -> None:
        """A command begins."""
        self.write(begun_line(time, command))

    def dropped(self, time: datetime, command: Command, why: Reason) -> None:
        """A command does not begin, because a second look found it wrong."""
        self.write(dropped_line(time, command, why))

    def rolled_back(self, time: datetime, ticket: Ticket, message: str) -> None:
        """A command that had begun is taken back."""
        self.write(rolled_back_line(time, ticket, message))

    def provisioned(
        self, time: datetime, claims: Sequence[NodeClaim], unschedulable: Sequence[tuple[str, Reason]]
    ) -> None:
        """NodeClaims are created for pods that wait; pods that fit nowhere are told of once, until that changes."""
        waiting = tuple((pod, why.code, why.object) for pod, why in unschedulable)
        if claims or waiting != self._waiting:
            self._waiting = waiting
            self.write(provisioned_line(time, claims, unschedulable))

    def _decided_nothing(self, time: datetime, rejected: Rejected) -> None:
        # Messages hold times and prices that change from pass to pass without meaning anything new.
        gist = tuple((name, why.code, why.object) for name, reasons in rejected for why in reasons)
        if gist != self._nothing:
            self._nothing = gist
            self.write(NoDecisionRecord(time=time, rejected=kept(rejected)))

    def write(self, line: AnyLine) -> None:
        """Append a line; never raises because of the disk."""
        if self._path is None:
            return
        try:
            self._append(self._path, msgspec.json.encode(line) + b"\n")
        except OSError as error:
            self._failed(line.time, error)

    def close(self) -> None:
        """Let go of the file; the next line opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    # -- the files -----------------------------------------------------------------------------------------------

    def _append(self, path: Path, line: bytes) -> None:
        file = self._opened(path)
        size = os.fstat(file).st_size
        if size and size + len(line) > self._largest:
            self.close()
            self._rotate(path)
            file, size = self._opened(path), 0
        try:
            _write_all(file, line)
        except OSError:
            # Half a line would spoil the next one.
            os.ftruncate(file, size)
            raise

    def _opened(self, path: Path) -> int:
        if self._file is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
            _end_line(self._file)
        return self._file

    def _rotate(self, path: Path) -> None:
        """Every file takes the next number; the oldest goes."""
        if self._old_files == 0:
            path.unlink(missing_ok=True)
            return
        for number in range(self._old_files - 1, 0, -1):
            younger = _numbered(path, number)
            if younger.exists():
                younger.replace(_numbered(path, number + 1))
        path.replace(_numbered(path, 1))

    def _failed(self, now: datetime, error: OSError) -> None:
        self._on_failure()
        if self._told is None or now - self._told >= _TELL_EVERY:
            self._told = now
            log.error("the decision journal cannot be written", path=str(self._path), error=str(error))


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _write_all(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def _end_line(file: int) -> None:
    """A process that was killed while it wrote has left half a line; it gets an end of its own."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        _write_all(file, b"\n")
