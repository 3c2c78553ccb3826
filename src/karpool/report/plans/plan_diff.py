"""What differs between two plans: money, nodes by pool, evictions, and what becomes of single nodes."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Final, Literal, TypeVar

from msgspec.structs import replace

from karpool.report.document_part import API_VERSION, DocumentPart
from karpool.report.plans.condition import Metric, Values
from karpool.report.plans.document import PlanDocument
from karpool.report.plans.plan_metrics import PLAN_METRICS, evictions_of, known_price, money

N = TypeVar("N", int, float)


class PlanSummaryPart(DocumentPart, frozen=True, kw_only=True):
    """One of the two plans in numbers, as they are after it; None: not known, as all that deleting a pool changes."""

    name: str
    time: datetime
    nodes_before: int
    nodes: int | None
    price_per_hour: float | None
    removed: int | None
    evictions: int | None
    steps: int
    pending: int | None


class PoolDiffPart(DocumentPart, frozen=True, kw_only=True):
    """Nodes of a pool after each plan, and what they cost; None: not known, or the pool is deleted."""

    name: str
    nodes: tuple[int, int | None]
    price_per_hour: tuple[float | None, float | None]


class NodeDiffPart(DocumentPart, frozen=True, kw_only=True):
    """A node of today with which the plans do not do the same; an empty verdict: the plan does not know the node."""

    name: str
    node_pool: str
    verdicts: tuple[str, str]
    reasons: tuple[tuple[str, ...], tuple[str, ...]]
    """Codes of why it stays or goes, for each plan."""


class DeletedPoolPart(DocumentPart, frozen=True, kw_only=True):
    """A pool that only the first plan has, whose nodes go with it."""

    name: str
    nodes: int


class PlanDiff(DocumentPart, frozen=True, kw_only=True):
    """The second plan against the first: differences are the second less the first."""

    api_version: Literal["karpool.sh/v1"] = API_VERSION
    kind: Literal["PlanDiff"] = "PlanDiff"
    compared: Literal["Plans", "NodePools"]
    first: PlanSummaryPart
    second: PlanSummaryPart
    price_per_hour: float | None
    price_per_month: float | None
    nodes: int | None
    evictions: int | None
    pending: int | None
    pools: tuple[PoolDiffPart, ...]
    changed_nodes: tuple[NodeDiffPart, ...]
    deleted_pools: tuple[DeletedPoolPart, ...] = ()
    """Where there are any, nobody knows where their pods go: what the second costs and evicts is not known."""
    same_cluster: bool
    """Whether both plans begin with the same nodes; if not, the differences are also those of the clusters."""
    warnings: tuple[str, ...] = ()


NOT_PLANNED: Final = "deleting a NodePool deletes its nodes; where their pods go is not planned here"
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
    lost: Collection[str] = (),
) -> PlanDiff:
    """Compare two plans, which go by these names; for two sets of NodePools, only the first has the `lost` ones."""
    deleted = _deleted_pools(first, lost)
    one, two = _summary(first, names[0]), _summary(second, names[1])
    if deleted:
        two = replace(two, nodes=None, price_per_hour=None, removed=None, evictions=None, pending=None)
    more = _less(two.price_per_hour, one.price_per_hour)
    return PlanDiff(
        compared=compared,
        first=one,
        second=two,
        price_per_hour=more,
        price_per_month=money(more)["$/month"],
        nodes=_less(two.nodes, one.nodes),
        evictions=_less(two.evictions, one.evictions),
        pending=_less(two.pending, one.pending),
        pools=_pools(first, second, {pool.name for pool in deleted}),
        changed_nodes=_changed_nodes(first, second),
        deleted_pools=deleted,
        same_cluster={node.name for node in first.nodes} == {node.name for node in second.nodes},
        warnings=tuple(dict.fromkeys((*(NOT_PLANNED for _ in deleted), *first.warnings, *second.warnings))),
    )


def _less(second: N | None, first: N | None) -> N | None:
    return None if second is None or first is None else second - first


def _deleted_pools(first: PlanDocument, lost: Collection[str]) -> tuple[DeletedPoolPart, ...]:
    """Those of the lost pools that have nodes today; to delete one without changes only what is planned."""
    nodes = Counter(node.node_pool for node in first.nodes)
    return tuple(DeletedPoolPart(name=name, nodes=nodes[name]) for name in sorted(lost) if nodes[name])


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


def _pools(first: PlanDocument, second: PlanDocument, deleted: Collection[str]) -> tuple[PoolDiffPart, ...]:
    one, two = _after(first), _after(second)
    names = sorted({pool for pool, _ in (*one, *two)})
    return tuple(
        PoolDiffPart(
            name=name,
            nodes=(_count(one, name), None if name in deleted else _count(two, name)),
            price_per_hour=(_price(one, name), None if name in deleted else _price(two, name)),
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
