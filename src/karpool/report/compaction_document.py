"""The document that `karpool compact --plan --output json` prints; other programs read it."""

from datetime import datetime
from typing import Final, Literal

import msgspec
from msgspec import field

from karpool.compaction.decide import Chosen, CompactionDecision, CompactionVerdict, PoolCount
from karpool.model.reasons import Reason
from karpool.wire.objects import encode_value

API_VERSION: Final = "karpool.sh/v1"

Change = Literal["mark", "unmark", "drain"]


class CompactionPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of every part of the document; all fields are always written."""


class PoolPart(CompactionPart, frozen=True, kw_only=True):
    """A pool in numbers; `marked` counts the marks as they should be now."""

    nodes: int
    underutilized: int
    marked: int
    in_progress: int
    enabled: bool


class DrainPlacementPart(CompactionPart, frozen=True, kw_only=True):
    """Where a pod goes; None: nowhere, in a pool that does not check it."""

    pod: str
    source: str = field(name="from")
    target: str | None = field(name="to")


class ChosenPart(CompactionPart, frozen=True, kw_only=True):
    """A node that would be drained; warnings say what may keep the autoscaler from removing it."""

    node: str
    pool: str
    placements: tuple[DrainPlacementPart, ...]
    warnings: tuple[Reason, ...]


class NodePart(CompactionPart, frozen=True, kw_only=True):
    """A node; ratios are of requests, None where unknown; `change` is what would be done to it."""

    name: str
    pool: str
    cpu_ratio: float | None
    memory_ratio: float | None
    marked: bool
    in_progress: bool
    change: Change | None
    reasons: tuple[Reason, ...]


class Compaction(CompactionPart, frozen=True, kw_only=True):
    """The whole decision."""

    api_version: str = API_VERSION
    kind: str = "Compaction"
    time: datetime
    pools: dict[str, PoolPart]
    chosen: tuple[ChosenPart, ...]
    nodes: tuple[NodePart, ...]


def document(decision: CompactionDecision) -> Compaction:
    """A decision as a document."""
    going = {chosen.node for chosen in decision.chosen}
    return Compaction(
        time=decision.time,
        pools={pool.name: _pool(pool) for pool in decision.pools},
        chosen=tuple(_chosen(chosen) for chosen in decision.chosen),
        nodes=tuple(node_part(verdict, chosen=verdict.look.name in going) for verdict in decision.nodes),
    )


def to_json(made: CompactionPart) -> bytes:
    """A document as other programs read it."""
    return msgspec.json.encode(made, enc_hook=encode_value)


def _pool(pool: PoolCount) -> PoolPart:
    return PoolPart(
        nodes=pool.nodes,
        underutilized=pool.underutilized,
        marked=pool.marked,
        in_progress=pool.in_progress,
        enabled=pool.enabled,
    )


def _chosen(chosen: Chosen) -> ChosenPart:
    places = tuple(
        DrainPlacementPart(pod=each.pod, source=each.source, target=each.target) for each in chosen.placements
    )
    return ChosenPart(node=chosen.node, pool=chosen.pool, placements=places, warnings=chosen.warnings)


def node_part(verdict: CompactionVerdict, *, chosen: bool) -> NodePart:
    """A node as the document shows it."""
    look = verdict.look
    changed: Change | None = "mark" if look.mark.marked else "unmark"
    if look.mark.marked == look.before.marked:
        changed = None
    return NodePart(
        name=look.name,
        pool=look.pool,
        cpu_ratio=look.usage.cpu_ratio,
        memory_ratio=look.usage.memory_ratio,
        marked=look.mark.marked,
        in_progress=look.mark.in_progress,
        change="drain" if chosen else changed,
        reasons=verdict.reasons,
    )
