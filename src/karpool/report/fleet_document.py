"""What an organisation could save: a plan for each of its clusters in a row, and their sums."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from karpool.disruption.reasons import ReasonCode
from karpool.report.document_part import API_VERSION, DocumentPart
from karpool.report.plans.document import BlockerPart, NodeVerdict, PlanDocument, PlannedCommand

_DIGITS: Final = 9
Measure = Literal["leastPrice", "nodes"]
LEAST_PRICE: Final = "leastPrice"
"""By how much the least possible price would be lower without a blocker."""
NODES: Final = "nodes"
"""What the nodes cost that stay at the end of the plan for a reason that people can change."""
_NOTHING_TO_CHANGE: Final = frozenset(
    (
        ReasonCode.EMPTY,
        ReasonCode.PODS_WOULD_NOT_FIT,
        ReasonCode.NEEDS_SEVERAL_NODES,
        ReasonCode.NOT_CHEAPER,
        ReasonCode.SAME_TYPE_REPLACEMENT,
        ReasonCode.NOT_THIS_STEP,
        ReasonCode.IN_COMMAND,
        ReasonCode.NODE_DELETING,
        ReasonCode.NODE_NOMINATED,
    )
)
"""Why nodes stay that are needed, or on their way."""


class ClusterBlockerPart(DocumentPart, frozen=True, kw_only=True):
    """What keeps money where it is in one cluster: the code of a reason, $/h if any of it is known, and its nodes."""

    code: str
    price_per_hour: float | None
    nodes: int


class FleetRow(DocumentPart, frozen=True, kw_only=True):
    """A cluster and what its plan comes to; `error` says why there is none."""

    name: str
    error: str = ""
    nodes_before: int = 0
    nodes_after: int = 0
    price_before: float | None = None
    price_after: float | None = None
    savings_per_hour: float | None = None
    savings_percent: float | None = None
    evictions: int = 0
    steps: int = 0
    unpriced_nodes: int = 0
    blockers: tuple[ClusterBlockerPart, ...] = ()
    """What keeps money where it is, by kind, the dearest first, in the measure that the fleet has."""
    measure: Measure = NODES
    stays: str = ""
    """The code of the reason that keeps most nodes, where a plan has no step and nothing to blame."""
    stays_nodes: int = 0
    """How many nodes it keeps."""
    warnings: tuple[str, ...] = ()


class FleetBlockerPart(DocumentPart, frozen=True, kw_only=True):
    code: str
    price_per_hour: float | None
    nodes: int
    clusters: int


class FleetDocument(DocumentPart, frozen=True, kw_only=True):
    api_version: Literal["karpool.sh/v1"] = API_VERSION
    kind: Literal["FleetPlan"] = "FleetPlan"
    time: datetime
    complete: bool
    planned: int
    failed: int
    nodes_before: int
    nodes_after: int
    price_before: float | None
    """Of nodes whose price is known, as all sums; null if no cluster has any."""
    price_after: float | None
    savings_per_hour: float | None
    evictions: int
    blockers: tuple[FleetBlockerPart, ...]
    measure: Measure
    """What the prices of blockers say."""
    clusters: tuple[FleetRow, ...]
    """Those that save most first, and those without a plan last."""


def fleet_row(name: str, plan: PlanDocument) -> FleetRow:
    bound = plan.lower_bound
    blockers = _keeping(plan.nodes) if bound is None else tuple(map(_blocker, bound.blockers))
    stays, stays_nodes = _most_frequent(plan.nodes) if not plan.commands and not blockers else ("", 0)
    return FleetRow(
        name=name,
        nodes_before=plan.before.nodes,
        nodes_after=plan.after.nodes,
        price_before=plan.before.price_per_hour,
        price_after=plan.after.price_per_hour,
        savings_per_hour=plan.savings.price_per_hour,
        savings_percent=plan.savings.percent,
        evictions=sum(map(_evictions, plan.commands)),
        steps=len(plan.commands),
        unpriced_nodes=plan.before.unpriced_nodes,
        blockers=blockers,
        measure=NODES if bound is None else LEAST_PRICE,
        stays=stays,
        stays_nodes=stays_nodes,
        warnings=plan.warnings,
    )


def _blocker(part: BlockerPart) -> ClusterBlockerPart:
    return ClusterBlockerPart(code=part.code, price_per_hour=part.price_per_hour, nodes=part.nodes)


def _keeping(nodes: Iterable[NodeVerdict]) -> tuple[ClusterBlockerPart, ...]:
    """What keeps nodes, each counted for the first of its reasons; the dearest first."""
    kept: dict[str, list[NodeVerdict]] = {}
    for node in nodes:
        code = next((str(reason.code) for reason in node.reasons), "")
        if node.step is None and code and code not in _NOTHING_TO_CHANGE:
            kept.setdefault(code, []).append(node)
    parts = [
        ClusterBlockerPart(code=code, price_per_hour=_known(node.price_per_hour for node in found), nodes=len(found))
        for code, found in kept.items()
    ]
    return tuple(sorted(parts, key=_dearest_first))


def _dearest_first(part: ClusterBlockerPart | FleetBlockerPart) -> tuple[float, str]:
    return -(part.price_per_hour or 0.0), part.code


def _most_frequent(nodes: Iterable[NodeVerdict]) -> tuple[str, int]:
    """The first reason that most nodes have, and how many these are."""
    codes = Counter(str(reason.code) for node in nodes for reason in node.reasons[:1])
    return next(iter(codes.most_common(1)), ("", 0))


def _evictions(command: PlannedCommand) -> int:
    return sum(placement.source is not None for placement in command.placements) + len(command.ended)


def failed_row(name: str, error: str) -> FleetRow:
    return FleetRow(name=name, error=error)


def fleet_document(rows: Sequence[FleetRow], time: datetime, *, complete: bool) -> FleetDocument:
    planned = [row for row in rows if not row.error]
    return FleetDocument(
        time=time,
        complete=complete,
        planned=len(planned),
        failed=len(rows) - len(planned),
        nodes_before=sum(row.nodes_before for row in planned),
        nodes_after=sum(row.nodes_after for row in planned),
        price_before=_known(row.price_before for row in planned),
        price_after=_known(row.price_after for row in planned),
        savings_per_hour=_known(row.savings_per_hour for row in planned),
        evictions=sum(row.evictions for row in planned),
        blockers=tuple(_blockers(planned)),
        measure=LEAST_PRICE if any(row.measure == LEAST_PRICE for row in planned) else NODES,
        clusters=tuple(sorted(rows, key=lambda row: (bool(row.error), -(row.savings_per_hour or 0.0), row.name))),
    )


def _known(prices: Iterable[float | None]) -> float | None:
    """The sum of those that are known; None if none is."""
    known = [price for price in prices if price is not None]
    return _sum(known) if known else None


def _sum(prices: Iterable[float | None]) -> float:
    return round(sum(price for price in prices if price is not None), _DIGITS)


def _blockers(rows: Sequence[FleetRow]) -> list[FleetBlockerPart]:
    """What blocks, over all clusters; the dearest first."""
    by_code: dict[str, list[ClusterBlockerPart]] = {}
    for blocker in (blocker for row in rows for blocker in row.blockers):
        by_code.setdefault(blocker.code, []).append(blocker)
    parts = [
        FleetBlockerPart(
            code=code,
            price_per_hour=_known(one.price_per_hour for one in found),
            nodes=sum(one.nodes for one in found),
            clusters=len(found),
        )
        for code, found in by_code.items()
    ]
    return sorted(parts, key=_dearest_first)


def to_json(document: FleetDocument) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2)
