"""What differs between two plans: money, nodes by pool, evictions, and what becomes of single nodes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, Literal

from karpool.report.document_part import API_VERSION, DocumentPart
from karpool.report.plans.condition import Metric, Values
from karpool.report.plans.document import PlanDocument
from karpool.report.plans.plan_metrics import PLAN_METRICS, evictions_of, known_price, money


class PlanSummaryPart(DocumentPart, frozen=True, kw_only=True):
    """One of the two plans in numbers; the price is that after it, None if that of a node is not known."""

    name: str
    time: datetime
    nodes_before: int
    nodes: int
    price_per_hour: float | None
    removed: int
    evictions: int
    steps: int
    pending: int


class PoolDiffPart(DocumentPart, frozen=True, kw_only=True):
    """Nodes of a pool after each plan, and what they cost; None: the price of one is not known."""

    name: str
    nodes: tuple[int, int]
    price_per_hour: tuple[float | None, float | None]


class NodeDiffPart(DocumentPart, frozen=True, kw_only=True):
    """A node of today with which the plans do not do the same; an empty verdict: the plan does not know the node."""

    name: str
    node_pool: str
    verdicts: tuple[str, str]
    reasons: tuple[tuple[str, ...], tuple[str, ...]]
    """Codes of why it stays or goes, for each plan."""


class PlanDiff(DocumentPart, frozen=True, kw_only=True):
    """The second plan against the first: differences are the second less the first."""

    api_version: Literal["karpool.sh/v1"] = API_VERSION
    kind: Literal["PlanDiff"] = "PlanDiff"
    compared: Literal["Plans", "NodePools"]
    first: PlanSummaryPart
    second: PlanSummaryPart
    price_per_hour: float | None
    price_per_month: float | None
    nodes: int
    evictions: int
    pending: int
    pools: tuple[PoolDiffPart, ...]
    changed_nodes: tuple[NodeDiffPart, ...]
    same_cluster: bool
    """Whether both plans begin with the same nodes; if not, the differences are also those of the clusters."""
    warnings: tuple[str, ...] = ()


DIFF_METRICS: Final[Mapping[str, Metric]] = {
    name: Metric(PLAN_METRICS[name].units, meaning)
    for name, meaning in (
        ("price", "what the second costs more after it"),
        ("nodes", "nodes that it has more after it"),
        ("evictions", "pods that it moves or ends more"),
        ("pending", "pods that no node can take, more"),
    )
}


def diff_values(diff: PlanDiff) -> Values:
    return {
        "price": money(diff.price_per_hour),
        "nodes": {"": diff.nodes},
        "evictions": {"": diff.evictions},
        "pending": {"": diff.pending},
    }


def plan_diff(
    first: PlanDocument,
    second: PlanDocument,
    names: tuple[str, str],
    compared: Literal["Plans", "NodePools"] = "Plans",
    notes: tuple[str, ...] = (),
) -> PlanDiff:
    """Compare two plans, which go by these names, or are those for two sets of NodePools; `notes` become warnings."""
    one, two = _summary(first, names[0]), _summary(second, names[1])
    unknown = one.price_per_hour is None or two.price_per_hour is None
    more = None if unknown else (two.price_per_hour or 0.0) - (one.price_per_hour or 0.0)
    return PlanDiff(
        compared=compared,
        first=one,
        second=two,
        price_per_hour=more,
        price_per_month=money(more)["$/month"],
        nodes=two.nodes - one.nodes,
        evictions=two.evictions - one.evictions,
        pending=two.pending - one.pending,
        pools=_pools(first, second),
        changed_nodes=_changed_nodes(first, second),
        same_cluster={node.name for node in first.nodes} == {node.name for node in second.nodes},
        warnings=tuple(dict.fromkeys((*notes, *first.warnings, *second.warnings))),
    )


def _summary(plan: PlanDocument, name: str) -> PlanSummaryPart:
    return PlanSummaryPart(
        name=name,
        time=plan.time,
        nodes_before=plan.before.nodes,
        nodes=plan.after.nodes,
        price_per_hour=known_price(plan.after),
        removed=sum(node.verdict != "keep" for node in plan.nodes),
        evictions=evictions_of(plan),
        steps=len(plan.commands),
        pending=len(plan.unschedulable),
    )


def _pools(first: PlanDocument, second: PlanDocument) -> tuple[PoolDiffPart, ...]:
    one, two = _after(first), _after(second)
    names = sorted({pool for pool, _ in (*one, *two)})
    return tuple(
        PoolDiffPart(
            name=name,
            nodes=(_count(one, name), _count(two, name)),
            price_per_hour=(_price(one, name), _price(two, name)),
        )
        for name in names
    )


def _after(plan: PlanDocument) -> list[tuple[str, float | None]]:
    """The nodes after a plan, each as its pool and its price: those that stay, and new ones that are not removed."""
    staying = [(node.node_pool, node.price_per_hour) for node in plan.nodes if node.verdict in ("keep", "reboot")]
    gone = Counter(name for command in plan.commands for name in command.nodes)
    new = [part for command in plan.commands for part in command.replacements if not gone[part.name]]
    return [*staying, *((part.node_pool, part.price_per_hour) for part in new)]


def _count(after: Iterable[tuple[str, float | None]], pool: str) -> int:
    return sum(name == pool for name, _ in after)


def _price(after: Iterable[tuple[str, float | None]], pool: str) -> float | None:
    prices = [price for name, price in after if name == pool]
    known = [price for price in prices if price is not None]
    return sum(known) if len(known) == len(prices) else None


def _changed_nodes(first: PlanDocument, second: PlanDocument) -> tuple[NodeDiffPart, ...]:
    one, two = ({node.name: node for node in plan.nodes} for plan in (first, second))
    found = []
    for name in sorted(one.keys() | two.keys()):
        nodes = one.get(name), two.get(name)
        verdicts = tuple("" if node is None else node.verdict for node in nodes)
        if verdicts[0] != verdicts[1]:
            codes = [() if node is None else tuple(reason.code for reason in node.reasons) for node in nodes]
            pool = next(node.node_pool for node in reversed(nodes) if node is not None)
            found.append(
                NodeDiffPart(
                    name=name, node_pool=pool, verdicts=(verdicts[0], verdicts[1]), reasons=(codes[0], codes[1])
                )
            )
    return tuple(found)
