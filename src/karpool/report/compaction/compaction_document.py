"""The document that `karpool compact --plan --output json` prints; other programs read it."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import field

from karpool.catalog.instance_types import PriceOrigin
from karpool.compaction.decide import CompactionDecision, CompactionVerdict
from karpool.compaction.end_state import EndState
from karpool.model.group_sizes import UNKNOWN_SIZES, Sizes
from karpool.model.reasons import Reason
from karpool.report.document_part import API_VERSION, DocumentPart
from karpool.report.plans.document import PricesPart
from karpool.report.price_words import prices_parts

Change = Literal["mark", "unmark", "drain"]


class PoolPart(DocumentPart, frozen=True, kw_only=True):
    """A pool in numbers; `marked` counts the marks as they should be now."""

    nodes: int
    underutilized: int
    marked: int
    in_progress: int
    enabled: bool


class DrainPart(DocumentPart, frozen=True, kw_only=True):
    """A drain on the way to the end: the node, its pool, how many pods move, and what it costs (None: unknown)."""

    node: str
    pool: str
    pods: int
    price_per_hour: float | None


class EndPoolPart(DocumentPart, frozen=True, kw_only=True):
    """A pool today and at the end, with its price; None: not known."""

    before: int
    after: int
    minimum: int | None
    maximum: int | None
    price_before: float | None
    price_after: float | None


class EndPart(DocumentPart, frozen=True, kw_only=True):
    """Where the compactor ends if it is left alone and nothing else changes: drains in order, and pools by name.

    `prices` says where prices come from.
    """

    drains: tuple[DrainPart, ...]
    pools: dict[str, EndPoolPart]
    price_before: float | None
    price_after: float | None
    prices: tuple[PricesPart, ...] = ()


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
    end: EndPart | None = None
    configured: bool = True


def compaction_document(
    decision: CompactionDecision, end: EndPart | None = None, *, configured: bool = True
) -> Compaction:
    """What the compactor would do; `end`: where that leads, `configured`: whether somebody wrote a configuration."""
    chosen = {node.node for node in decision.chosen}
    return Compaction(
        time=decision.time,
        pools={pool.name: msgspec.convert(pool, PoolPart, from_attributes=True) for pool in decision.pools},
        chosen=msgspec.convert(decision.chosen, tuple[ChosenPart, ...], from_attributes=True),
        nodes=tuple(node_part(verdict, chosen=verdict.view.name in chosen) for verdict in decision.nodes),
        end=end,
        configured=configured,
    )


def end_part(
    decision: CompactionDecision,
    end: EndState,
    prices: Mapping[str, float | None],
    sizes: Mapping[str, Sizes],
    origins: Iterable[PriceOrigin] = (),
) -> EndPart:
    """Where the compactor ends; `prices`: of nodes, by name; `origins`: where these come from."""
    members: dict[str, list[str]] = {}
    for verdict in decision.nodes:
        members.setdefault(verdict.view.pool, []).append(verdict.view.name)
    every = [name for names in members.values() for name in names]
    return EndPart(
        drains=tuple(
            DrainPart(node=drain.node, pool=drain.pool, pods=len(drain.placements), price_per_hour=prices[drain.node])
            for drain in end.drains
        ),
        pools={
            name: _end_pool(nodes, end.gone, prices, sizes.get(name, UNKNOWN_SIZES))
            for name, nodes in sorted(members.items())
        },
        price_before=_sum(every, prices),
        price_after=_sum([name for name in every if name not in end.gone], prices),
        prices=prices_parts(origins),
    )


def _end_pool(nodes: list[str], gone: frozenset[str], prices: Mapping[str, float | None], sizes: Sizes) -> EndPoolPart:
    staying = [name for name in nodes if name not in gone]
    return EndPoolPart(
        before=len(nodes),
        after=len(staying),
        minimum=sizes.minimum,
        maximum=sizes.maximum,
        price_before=_sum(nodes, prices),
        price_after=_sum(staying, prices),
    )


def _sum(names: Iterable[str], prices: Mapping[str, float | None]) -> float | None:
    """What nodes cost together; unknown as soon as one of them is."""
    found = [prices[name] for name in names]
    known = [price for price in found if price is not None]
    return sum(known) if len(known) == len(found) else None


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
