"""A decision journal as a timeline: commands from decision to end, pauses, and the fleet at any past moment.

A journal may begin in the middle, end in half a line, or hold lines that nobody can read; these are counted and left
out. The journal names all nodes only when a pass gives reasons, so the fleet in between is what was named last, less
what commands have removed since.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Any, Final

import msgspec

from karpool.report.journals.journal_records import (
    BrakeRecord,
    CompletedRecord,
    DecisionRecord,
    DroppedRecord,
    KeptNode,
    NoDecisionRecord,
    NodeRecord,
    NodesRecord,
    ProvisionedRecord,
    RolledBackRecord,
    StartedRecord,
    WaitOverRecord,
)
from karpool.report.journals.timeline_document import (
    FleetMomentPart,
    FleetNodePart,
    LaunchesPart,
    Outcome,
    PausePart,
    TimelineCommand,
    TimelineDocument,
    TimelinePoint,
    TimelineTotals,
)

Record = (
    DecisionRecord
    | NoDecisionRecord
    | StartedRecord
    | CompletedRecord
    | DroppedRecord
    | RolledBackRecord
    | WaitOverRecord
    | BrakeRecord
    | ProvisionedRecord
    | NodesRecord
)
LONGEST_LINE: Final = 64 * 2**20
"""A line of more bytes than this was written by nobody."""
_DECODER: Final = msgspec.json.Decoder(Record)


@dataclass(slots=True)
class _Command:
    """A command as its lines come in."""

    place: int
    method: str
    reason: str
    nodes: tuple[str, ...]
    savings: float | None
    outcome: Outcome
    id: str = ""
    decided: DecisionRecord | None = None
    started: datetime | None = None
    ended: datetime | None = None
    message: str = ""
    waits: list[str] = field(default_factory=list)

    @property
    def evictions(self) -> int | None:
        """The pods that were to leave the nodes that really go."""
        if self.decided is None:
            return None
        return sum(move.source in self.nodes for move in self.decided.placements)

    def part(self) -> TimelineCommand:
        decided = self.decided
        return TimelineCommand(
            id=self.id,
            method=self.method,
            reason=self.reason,
            decision="" if decided is None else decided.decision,
            nodes=self.nodes,
            replacements=()
            if decided is None
            else tuple(new.instance_types[0] if new.instance_types else "" for new in decided.replacements),
            savings_per_hour=self.savings,
            evictions=self.evictions,
            outcome=self.outcome,
            decided=None if decided is None else decided.time,
            started=self.started,
            ended=self.ended,
            message=self.message,
            waits=tuple(self.waits),
        )


@dataclass(frozen=True, slots=True)
class _Naming:
    """A moment at which all nodes were named: those that stayed, and those that were to go."""

    time: datetime
    kept: tuple[KeptNode, ...]
    going: dict[str, int]


class Timeline:
    """A journal, line by line, each with its line break; `read` takes more at any time, as a growing file has them."""

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
        self._commands: list[_Command] = []
        self._open: dict[str, _Command] = {}
        self._pauses: list[PausePart] = []
        self._held: dict[tuple[str, str | None, str], int] = {}
        self._launches: list[LaunchesPart] = []
        self._namings: list[_Naming] = []
        self._points: list[TimelinePoint] = []
        self._facts: dict[str, list[tuple[datetime, NodeRecord]]] = {}
        self._times: list[datetime] = []
        self._lines = self._unreadable = self._evicted = 0
        self._saved = 0.0
        self._cut = b""
        self._handlers: dict[type, Callable[[Any], None]] = {
            DecisionRecord: self._decided,
            NoDecisionRecord: lambda record: self._named(record.time, record.rejected),
            StartedRecord: self._started,
            CompletedRecord: self._completed,
            RolledBackRecord: self._rolled_back,
            DroppedRecord: self._dropped,
            WaitOverRecord: self._waited,
            BrakeRecord: self._braked,
            ProvisionedRecord: self._provisioned,
            NodesRecord: self._told,
        }
        self.read(lines)

    def read(self, lines: Iterable[bytes]) -> None:
        """Take more lines; a last one without its line break is kept until the rest of it comes."""
        for raw in lines:
            line, self._cut = self._cut + raw, b""
            if line.endswith(b"\n") or _record(line) is not None:
                self._take(line)
            elif len(line) <= LONGEST_LINE:
                self._cut = line
            else:
                self._lines, self._unreadable = self._lines + 1, self._unreadable + 1

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        self._lines += 1
        record = _record(line)
        if record is None:
            self._unreadable += 1
            return
        self._times.append(record.time)
        self._handlers[type(record)](record)

    def _rolled_back(self, record: RolledBackRecord) -> None:
        command = self._of(record)
        command.outcome, command.ended, command.message = "rolledBack", record.time, record.message

    def _waited(self, record: WaitOverRecord) -> None:
        command = self._open.get(record.id)
        if command is not None:
            command.waits.append(f"{record.object}: {record.message}")

    def _provisioned(self, record: ProvisionedRecord) -> None:
        part = LaunchesPart(time=record.time, new_nodes=record.new_nodes, unschedulable=len(record.unschedulable))
        self._launches.append(part)

    # -- commands --------------------------------------------------------------------------------------------------

    def _add(
        self, method: str, reason: str, nodes: tuple[str, ...], savings: float | None, outcome: Outcome
    ) -> _Command:
        command = _Command(len(self._commands), method, reason, nodes, savings, outcome)
        self._commands.append(command)
        return command

    def _decided(self, record: DecisionRecord) -> None:
        outcome: Outcome = "dryRun" if record.dry_run else "decided"
        command = self._add(record.method, record.reason, record.nodes, record.savings_per_hour, outcome)
        # Why other nodes stayed is kept once, for the fleet.
        command.decided = msgspec.structs.replace(record, rejected=())
        if record.rejected:
            self._named(record.time, record.rejected)
        if self._namings and self._namings[-1].time == record.time:
            self._namings[-1].going.update(dict.fromkeys(record.nodes, command.place))

    def _waiting(self, method: str, nodes: Sequence[str]) -> _Command | None:
        """The last decision that has not started; it may start with fewer nodes than decided."""
        wanted = set(nodes)
        for command in reversed(self._commands):
            if command.outcome == "decided" and command.method == method and wanted <= set(command.nodes):
                return command
        return None

    def _started(self, record: StartedRecord) -> None:
        command = self._waiting(record.method, record.nodes) or self._add(
            record.method, record.reason, record.nodes, record.savings_per_hour, "running"
        )
        command.id, command.nodes, command.savings = record.id, record.nodes, record.savings_per_hour
        command.outcome, command.started = "running", record.time
        self._open[record.id] = command

    def _of(self, record: CompletedRecord | RolledBackRecord) -> _Command:
        """The command of a line that ends one; a command that started before the journal begins is added."""
        command = self._open.pop(record.id, None)
        if command is None:
            savings = record.savings_per_hour if isinstance(record, CompletedRecord) else None
            command = self._add(record.method, record.reason, record.nodes, savings, "running")
            command.id = record.id
        return command

    def _completed(self, record: CompletedRecord) -> None:
        command = self._of(record)
        command.outcome, command.ended, command.nodes = "completed", record.time, record.nodes
        command.savings = record.savings_per_hour
        self._saved += record.savings_per_hour or 0.0
        self._evicted += command.evictions or 0
        self._point(record.time, None)

    def _dropped(self, record: DroppedRecord) -> None:
        command = self._waiting(record.method, record.nodes) or self._add(
            record.method, record.reason, record.nodes, None, "dropped"
        )
        why = "; ".join(f"{reason.code}: {reason.message}" for reason in record.reasons)
        command.outcome, command.ended, command.message = "dropped", record.time, why

    # -- brakes and nodes ------------------------------------------------------------------------------------------

    def _braked(self, record: BrakeRecord) -> None:
        key = (record.brake, record.node_pool, record.object)
        place = self._held.pop(key, None)
        if record.holds and place is None:
            self._held[key] = len(self._pauses)
            self._pauses.append(_pause(record, since=record.time, until=None))
        elif record.holds and place is not None:  # the controller was restarted meanwhile
            self._held[key] = place
        elif place is None:
            self._pauses.append(_pause(record, since=None, until=record.time))
        else:
            self._pauses[place] = msgspec.structs.replace(self._pauses[place], until=record.time)

    def _named(self, time: datetime, kept: tuple[KeptNode, ...]) -> None:
        self._namings.append(_Naming(time, kept, {}))
        self._point(time, len(kept))

    def _told(self, record: NodesRecord) -> None:
        for fact in record.nodes:
            self._facts.setdefault(fact.name, []).append((record.time, fact))

    def _fact(self, name: str, moment: datetime) -> NodeRecord | None:
        """What a node was at a moment; what was told first of it holds for the time before, too."""
        told = self._facts.get(name)
        if told is None:
            return None
        before = [entry for entry in told if entry[0] <= moment]
        return max(before, key=itemgetter(0))[1] if before else min(told, key=itemgetter(0))[1]

    def _point(self, time: datetime, nodes: int | None) -> None:
        self._points.append(
            TimelinePoint(time=time, nodes=nodes, savings_per_hour=self._saved, evictions=self._evicted)
        )

    # -- what is asked of it ---------------------------------------------------------------------------------------

    def document(self) -> TimelineDocument:
        """All that was read so far."""
        outcomes = [command.outcome for command in self._commands]
        completed = [command for command in self._commands if command.outcome == "completed"]
        totals = TimelineTotals(
            decided=len(outcomes),
            completed=len(completed),
            rolled_back=outcomes.count("rolledBack"),
            dropped=outcomes.count("dropped"),
            running=outcomes.count("running"),
            savings_per_hour=self._saved,
            unpriced=sum(command.savings is None for command in completed),
            evictions=self._evicted,
        )
        return TimelineDocument(
            begins=min(self._times, default=None),
            ends=max(self._times, default=None),
            totals=totals,
            commands=tuple(command.part() for command in self._commands),
            pauses=tuple(self._pauses),
            launches=tuple(self._launches),
            points=tuple(sorted(self._counted_points(), key=attrgetter("time"))),
            lines=self._lines,
            unreadable=self._unreadable,
            cut=bool(self._cut.strip()),
        )

    def _counted_points(self) -> Iterable[TimelinePoint]:
        """The points, with nodes that stayed and those that were to go."""
        counts = {entry.time: len({node.name for node in entry.kept} | entry.going.keys()) for entry in self._namings}
        for point in self._points:
            named = point.nodes is not None
            yield msgspec.structs.replace(point, nodes=counts[point.time]) if named else point

    def fleet_at(self, moment: datetime) -> FleetMomentPart:
        """The fleet at a moment, with the reasons of then."""
        before = [naming for naming in self._namings if naming.time <= moment]
        naming = max(before, key=attrgetter("time"), default=None)
        since = None if naming is None else naming.time
        gone = {
            name: None
            for command in self._commands
            if command.outcome == "completed" and _between(since, command.ended, moment)
            for name in command.nodes
        }
        asked = (entry for entry in self._launches if _between(since, entry.time, moment))
        return FleetMomentPart(
            time=moment,
            known_at=since,
            nodes=() if naming is None else tuple(self._nodes(naming, gone, moment)),
            gone=tuple(gone),
            requested=tuple(node.name for entry in asked for node in entry.new_nodes),
        )

    def _nodes(self, naming: _Naming, gone: Iterable[str], moment: datetime) -> Iterator[FleetNodePart]:
        left = {node.name: node.reasons for node in naming.kept}
        for name in sorted({*left, *naming.going}.difference(gone)):
            yield FleetNodePart(
                name=name,
                reasons=left.get(name, ()),
                command=naming.going.get(name),
                facts=self._fact(name, moment),
            )


def _between(since: datetime | None, moment: datetime | None, until: datetime) -> bool:
    return moment is not None and moment <= until and (since is None or since < moment)


def _pause(record: BrakeRecord, *, since: datetime | None, until: datetime | None) -> PausePart:
    return PausePart(
        code=record.brake,
        node_pool=record.node_pool,
        object=record.object,
        message=record.message,
        since=since,
        until=until,
    )


def _record(line: bytes) -> Record | None:
    """A line as a record; None for what is none, and for a time that could be any."""
    if len(line) > LONGEST_LINE:
        return None
    try:
        record: Record = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return record if record.time.tzinfo is not None else None
