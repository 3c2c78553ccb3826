"""The document of a timeline: what a controller did, and what it said of its nodes at the time."""

from datetime import datetime
from typing import Literal

from karpool.model.reasons import Reason
from karpool.report.document_part import API_VERSION, DocumentPart
from karpool.report.journals.journal_records import NodeRecord, RequestedNode

Outcome = Literal["decided", "dryRun", "running", "completed", "rolledBack", "dropped"]


class TimelineCommand(DocumentPart, frozen=True, kw_only=True):
    """A command from its decision to its end, as far as the journal has them; `message` says why it failed.

    `evictions` are the pods that it was decided to move; None if the decision is not in the journal. `waits` are drains
    that went on though pods that had left before were not ready.
    """

    id: str
    method: str
    reason: str
    decision: str
    nodes: tuple[str, ...]
    replacements: tuple[str, ...]
    savings_per_hour: float | None
    evictions: int | None
    outcome: Outcome
    decided: datetime | None
    started: datetime | None
    ended: datetime | None
    message: str = ""
    waits: tuple[str, ...] = ()


class PausePart(DocumentPart, frozen=True, kw_only=True):
    """A brake that held a pool, or everything (`node_pool` is None); until None: it held at the end of the journal.

    `since` is None if it took hold before the journal begins.
    """

    code: str
    node_pool: str | None
    object: str
    message: str
    since: datetime | None
    until: datetime | None


class LaunchesPart(DocumentPart, frozen=True, kw_only=True):
    """Nodes that were requested for pods that waited, and how many pods fitted nowhere."""

    time: datetime
    new_nodes: tuple[RequestedNode, ...]
    unschedulable: int


class TimelinePoint(DocumentPart, frozen=True, kw_only=True):
    """How many nodes there were when the journal last named them all, and what completed commands had saved by then."""

    time: datetime
    nodes: int | None
    savings_per_hour: float
    evictions: int


class TimelineTotals(DocumentPart, frozen=True, kw_only=True):
    """Sums over commands; the savings are those of completed ones whose savings are known, `unpriced` the others."""

    decided: int
    completed: int
    rolled_back: int
    dropped: int
    running: int
    savings_per_hour: float
    unpriced: int
    evictions: int


class TimelineDocument(DocumentPart, frozen=True, kw_only=True):
    """A journal, read. `unreadable` lines were left out; `cut`: the last of them ends in the middle."""

    api_version: Literal["karpool.sh/v1"] = API_VERSION
    kind: Literal["Timeline"] = "Timeline"
    begins: datetime | None
    ends: datetime | None
    totals: TimelineTotals
    commands: tuple[TimelineCommand, ...]
    pauses: tuple[PausePart, ...]
    launches: tuple[LaunchesPart, ...]
    points: tuple[TimelinePoint, ...]
    lines: int
    unreadable: int
    cut: bool


class FleetNodePart(DocumentPart, frozen=True, kw_only=True):
    """A node that was there: why it stayed, or the place of the command that was to remove it.

    `facts`: what it was, and its price of then; None if the journal does not tell.
    """

    name: str
    reasons: tuple[Reason, ...]
    command: int | None
    facts: NodeRecord | None = None


class FleetMomentPart(DocumentPart, frozen=True, kw_only=True):
    """The fleet at a past moment, as far as the journal knows.

    `known_at`: when all nodes were last named; None if they never were by then. `gone`: nodes that commands have
    removed since; `requested`: NodeClaims that were asked for since, for pods that waited. Nodes that came or went
    otherwise are not known.
    """

    time: datetime
    known_at: datetime | None
    nodes: tuple[FleetNodePart, ...]
    gone: tuple[str, ...]
    requested: tuple[str, ...]
