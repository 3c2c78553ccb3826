"""The document that `karpool compact --plan --node NAME --output json` prints; other programs read it."""

from datetime import datetime

import msgspec
from msgspec import field

from karpool.compaction.decide import CompactionVerdict
from karpool.compaction.explain import Explained, PodFate, Waits
from karpool.model.reasons import Reason
from karpool.report.compaction_document import API_VERSION, CompactionPart, NodePart, node_part
from karpool.wire.quantity import Quantity


class UsePart(CompactionPart, frozen=True, kw_only=True):
    """How much of a resource is requested, and the ratio under which the pool wants it; None: not looked at."""

    requested: Quantity
    allocatable: Quantity
    ratio: float | None
    limit: float | None


class WaitsPart(CompactionPart, frozen=True, kw_only=True):
    """What has to pass before the node can go, or is given back; None: nothing of that kind."""

    old_enough_at: datetime | None
    marked_long_enough_at: datetime | None
    left_alone_until: datetime | None
    window_opens_at: datetime | None
    next_begin_at: datetime | None
    underutilized: int | None
    underutilized_needed: int | None
    pods_leave_by: datetime | None
    removed_by: datetime | None


class PodPart(CompactionPart, frozen=True, kw_only=True):
    """A pod: whether it leaves a node that is drained, why it stays or keeps the node, and where it would go."""

    pod: str
    leaves: bool
    why: str
    keeps: Reason | None
    target: str | None = field(name="to")
    nowhere: Reason | None


class ExplainedPart(NodePart, frozen=True, kw_only=True):
    """A node as in the plan, and all else that is known of it."""

    age_seconds: float | None
    cpu: UsePart
    memory: UsePart
    underutilized: bool
    marked_at: datetime | None
    in_progress_since: datetime | None
    drained_at: datetime | None
    waits_for: WaitsPart
    warnings: tuple[Reason, ...]
    pods: tuple[PodPart, ...]


class CompactionNode(CompactionPart, frozen=True, kw_only=True):
    """The whole explanation."""

    api_version: str = API_VERSION
    kind: str = "CompactionNode"
    time: datetime
    node: ExplainedPart


def explanation(found: Explained) -> CompactionNode:
    """What is known of a node, as a document."""
    look, mark = found.look, found.look.mark
    created = look.node.metadata.creation_timestamp
    plain = node_part(CompactionVerdict(look, found.reasons), chosen=found.chosen)
    cpu, memory = _uses(found)
    node = ExplainedPart(
        **msgspec.structs.asdict(plain),
        age_seconds=None if created is None else (found.time - created).total_seconds(),
        cpu=cpu,
        memory=memory,
        underutilized=look.underutilized,
        marked_at=mark.marked_at,
        in_progress_since=mark.updated if mark.in_progress else None,
        drained_at=mark.drained_at,
        waits_for=_waits(found.waits),
        warnings=found.warnings,
        pods=tuple(map(_pod, found.pods)),
    )
    return CompactionNode(time=found.time, node=node)


def _uses(found: Explained) -> tuple[UsePart, UsePart]:
    used, config = found.look.usage, found.look.config
    return (
        UsePart(requested=used.requested_cpu, allocatable=used.cpu, ratio=used.cpu_ratio, limit=config.cpu_limit),
        UsePart(
            requested=used.requested_memory,
            allocatable=used.memory,
            ratio=used.memory_ratio,
            limit=config.memory_limit,
        ),
    )


def _waits(waits: Waits) -> WaitsPart:
    return WaitsPart(
        old_enough_at=waits.old_enough_at,
        marked_long_enough_at=waits.marked_long_enough_at,
        left_alone_until=waits.left_alone_until,
        window_opens_at=waits.window_opens_at,
        next_begin_at=waits.next_begin_at,
        underutilized=waits.underutilized,
        underutilized_needed=waits.needed,
        pods_leave_by=waits.pods_leave_by,
        removed_by=waits.removed_by,
    )


def _pod(fate: PodFate) -> PodPart:
    return PodPart(
        pod=fate.pod.key,
        leaves=fate.leaves,
        why=fate.why,
        keeps=fate.keeps,
        target=fate.target,
        nowhere=fate.nowhere,
    )
