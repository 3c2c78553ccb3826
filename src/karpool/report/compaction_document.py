"""The document that `karpool compact --plan --output json` prints; other programs read it."""

from datetime import datetime
from typing import Literal

import msgspec
from msgspec import field

from karpool.compaction.decide import CompactionDecision, CompactionVerdict
from karpool.model.reasons import Reason
from karpool.report.document import API_VERSION, DocumentPart

Change = Literal["mark", "unmark", "drain"]


class PoolPart(DocumentPart, frozen=True, kw_only=True):
    """A pool in numbers; `marked` counts the marks as they should be now."""

    nodes: int
    underutilized: int
    marked: int
    in_progress: int
    enabled: bool


class DrainPlacementPart(DocumentPart, frozen=True, kw_only=True):
    """Where a pod goes; None: nowhere, in a pool that does not check it."""

    pod: str
    source: str = field(name="from")
    target: str | None = field(name="to")


class ChosenPart(DocumentPart, frozen=True, kw_only=True):
    """A node that would be drained; warnings say what may stop the autoscaler from removing it."""

    node: str
    pool: str
    placements: tuple[DrainPlacementPart, ...]
    warnings: tuple[Reason, ...]


class NodePart(DocumentPart, frozen=True, kw_only=True):
    """A node; ratios are of requests, None where unknown; `change` is what would be done to it."""

    name: str
    pool: str
    cpu_ratio: float | None
    memory_ratio: float | None
    marked: bool
    in_progress: bool
    change: Change | None
    reasons: tuple[Reason, ...]


class Compaction(DocumentPart, frozen=True, kw_only=True):
    api_version: str = API_VERSION
    kind: str = "Compaction"
    time: datetime
    pools: dict[str, PoolPart]
    chosen: tuple[ChosenPart, ...]
    nodes: tuple[NodePart, ...]


def compaction_document(decision: CompactionDecision) -> Compaction:
    chosen = {node.node for node in decision.chosen}
    return Compaction(
        time=decision.time,
        pools={pool.name: msgspec.convert(pool, PoolPart, from_attributes=True) for pool in decision.pools},
        chosen=msgspec.convert(decision.chosen, tuple[ChosenPart, ...], from_attributes=True),
        nodes=tuple(node_part(verdict, chosen=verdict.view.name in chosen) for verdict in decision.nodes),
    )


def node_part(verdict: CompactionVerdict, *, chosen: bool) -> NodePart:
    view = verdict.view
    change: Change | None = "mark" if view.mark.marked else "unmark"
    if view.mark.marked == view.stored_mark.marked:
        change = None
    return NodePart(
        name=view.name,
        pool=view.pool,
        cpu_ratio=view.usage.cpu_ratio,
        memory_ratio=view.usage.memory_ratio,
        marked=view.mark.marked,
        in_progress=view.mark.in_progress,
        change="drain" if chosen else change,
        reasons=verdict.reasons,
    )
