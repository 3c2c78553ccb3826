"""The document that `karpool compact --plan --node NAME --output json` prints; other programs read it."""

from datetime import datetime

import msgspec
from msgspec import field

from karpool.compaction.decide import CompactionVerdict
from karpool.compaction.explain import CompactionExplanation, PodOutcome
from karpool.model.reasons import Reason
from karpool.report.compaction.compaction_document import NodePart, node_part
from karpool.report.document_part import API_VERSION, DocumentPart
from karpool.wire.quantity import Quantity


class UsePart(DocumentPart, frozen=True, kw_only=True):
    """Requests and allocatable amount of a resource, and the limit of their ratio; None: no limit."""

    requested: Quantity
    allocatable: Quantity
    ratio: float | None
    limit: float | None


class WaitsPart(DocumentPart, frozen=True, kw_only=True):
    """What the node waits for before it can be drained, or is uncordoned; None: nothing of that kind."""

    old_enough_at: datetime | None
    marked_long_enough_at: datetime | None
    left_alone_until: datetime | None
    window_opens_at: datetime | None
    next_begin_at: datetime | None
    underutilized: int | None
    underutilized_needed: int | None
    pods_leave_by: datetime | None
    removed_by: datetime | None


class PodPart(DocumentPart, frozen=True, kw_only=True):
    """A pod: whether it leaves a node that is drained, why it stays or blocks the drain, and where it would go."""

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


class CompactionNode(DocumentPart, frozen=True, kw_only=True):
    api_version: str = API_VERSION
    kind: str = "CompactionNode"
    time: datetime
    node: ExplainedPart


def compaction_node(explained: CompactionExplanation) -> CompactionNode:
    view, mark = explained.view, explained.view.mark
    created = view.node.metadata.creation_timestamp
    plain = node_part(CompactionVerdict(view, explained.reasons), chosen=explained.chosen)
    usage, config = view.usage, view.config
    node = ExplainedPart(
        **msgspec.structs.asdict(plain),
        age_seconds=None if created is None else (explained.time - created).total_seconds(),
        cpu=_use(usage.requested_cpu, usage.cpu, usage.cpu_ratio, config.cpu_limit),
        memory=_use(usage.requested_memory, usage.memory, usage.memory_ratio, config.memory_limit),
        underutilized=view.underutilized,
        marked_at=mark.marked_at,
        in_progress_since=mark.updated if mark.in_progress else None,
        drained_at=mark.drained_at,
        waits_for=msgspec.convert(explained.waits, WaitsPart, from_attributes=True),
        warnings=explained.warnings,
        pods=tuple(map(_pod, explained.pods)),
    )
    return CompactionNode(time=explained.time, node=node)


def _use(requested: Quantity, allocatable: Quantity, ratio: float | None, limit: float | None) -> UsePart:
    return UsePart(requested=requested, allocatable=allocatable, ratio=ratio, limit=limit)


def _pod(outcome: PodOutcome) -> PodPart:
    return PodPart(
        pod=outcome.pod.key,
        leaves=outcome.leaves,
        why=outcome.why,
        keeps=outcome.keeps,
        target=outcome.target,
        nowhere=outcome.nowhere,
    )
