"""What a pool wants of a consolidation beyond a lower price: its policy, and how much a move must be worth."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from karpool.disruption.reasons import ReasonCode
from karpool.model.annotations import AnnotationError, balanced_k, minimum_savings
from karpool.model.nodepool import NodePool
from karpool.model.reasons import Reason
from karpool.model.rules.pools import POLICIES

WHEN_EMPTY: Final = "WhenEmpty"
WHEN_UNDERUTILIZED: Final = "WhenEmptyOrUnderutilized"
BALANCED: Final = "Balanced"
# Prices are sums of binary fractions: 0.15 - 0.10 is a hair less than 0.05, and a hair is no saving.
HAIR: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Worth:
    """What a pool, or a move within it, costs: money an hour, and trouble."""

    price: float
    disruption: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a pool says of a move of consolidation; only a Balanced pool has a score, and the shares it is made of."""

    pool: str
    policy: str
    approved: bool
    nodes: tuple[str, ...] = ()
    """The nodes of the move."""
    score: float | None = None
    least: float = 0.0
    """The score that the pool approves of."""
    savings: float = 0.0
    """The share of the pool's price that the move saves."""
    disruption: float = 0.0
    """The share of the pool's disruption that the move causes."""

    @property
    def told(self) -> str:
        """The score in words."""
        k = 1 / self.least if self.least else math.inf
        return (
            f"score {self.score or 0.0:.2f}, at least {self.least:.2f} (k = {k:g}): saves {100 * self.savings:.1f} % "
            f"of the pool's price for {100 * self.disruption:.1f} % of its disruption"
        )


def policy(pool: NodePool) -> str:
    """The pool's consolidation policy."""
    return pool.spec.disruption.consolidation_policy


def keeps_used_nodes(pool: NodePool) -> Reason | None:
    """Why nodes of the pool that have pods are not consolidated, if they are not."""
    match policy(pool):
        case "WhenEmptyOrUnderutilized" | "Balanced":
            return None
        case "WhenEmpty":
            message = "its consolidationPolicy is WhenEmpty, and the node has pods"
            return Reason(ReasonCode.POLICY_WHEN_EMPTY, message, _subject(pool))
        case other:
            message = (
                f"its consolidationPolicy {other[:40]!r} is not one of {', '.join(POLICIES)}, so only empty nodes go"
            )
            return Reason(ReasonCode.POLICY_UNKNOWN, message, _subject(pool))


def balanced_score(move: Worth, pool: Worth) -> float:
    """The share of the pool's price that a move saves for each share of the pool's disruption that it causes."""
    if move.price <= 0 or pool.price <= 0 or pool.disruption <= 0:
        return 0.0
    if move.disruption <= 0:
        return math.inf
    return (move.price / pool.price) / (move.disruption / pool.disruption)


def unbalanced(pool: NodePool, move: Worth, total: Worth) -> Reason | None:
    """Why a Balanced pool does not want a move that saves `move.price`; pools with other policies want every one."""
    if policy(pool) != BALANCED:
        return None
    try:
        least = 1 / balanced_k(pool)
    except AnnotationError as problem:
        return Reason(ReasonCode.BALANCED_K_INVALID, f"{problem}, so no move is approved", _subject(pool))
    score = balanced_score(move, total)
    if score >= least * (1 - HAIR):
        return None
    message = (
        f"the move saves {move.price:.4g} of the pool's {total.price:.4g} $/h for {move.disruption:.4g} of its "
        f"{total.disruption:.4g} disruption: a score of {score:.2f}, below {least:.2f}"
    )
    return Reason(ReasonCode.BALANCED_SCORE_TOO_LOW, message, _subject(pool))


def verdict(pool: NodePool, move: Worth, total: Worth, nodes: tuple[str, ...]) -> Verdict:
    """What a pool says of a move that saves `move.price`, of all that it costs."""
    approved = unbalanced(pool, move, total) is None
    if policy(pool) != BALANCED:
        return Verdict(pool.name, policy(pool), approved, nodes)
    try:
        least = 1 / balanced_k(pool)
    except AnnotationError:
        return Verdict(pool.name, BALANCED, approved=False, nodes=nodes)
    return Verdict(
        pool.name,
        BALANCED,
        approved,
        nodes,
        score=balanced_score(move, total),
        least=least,
        savings=_share(move.price, total.price),
        disruption=_share(move.disruption, total.disruption),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def split_savings(savings: float, prices: Mapping[str, float]) -> dict[str, float]:
    """What a command saves for each pool: in proportion to the price of the nodes that it takes from the pool."""
    total = sum(prices.values())
    return {pool: savings * price / total if total > 0 else 0.0 for pool, price in prices.items()}


def saves_too_little(pool: NodePool, savings: float, removed: float) -> Reason | None:
    """Why saving so much by removing nodes of this price is not worth it to the pool, if it is not."""
    try:
        minimum = minimum_savings(pool)
    except AnnotationError as problem:
        message = f"{problem}; until that is put right, no move is approved"
        return Reason(ReasonCode.MINIMUM_SAVINGS_INVALID, message, _subject(pool))
    least = minimum.of(removed)
    if savings >= least - HAIR:
        return None
    share = f" ({minimum.fraction * 100:.4g}% of {removed:.4g})" if minimum.fraction else ""
    message = f"the move saves {savings:.4g} $/h, and the pool wants at least {least:.4g} $/h{share}"
    return Reason(ReasonCode.SAVINGS_BELOW_MINIMUM, message, _subject(pool))


def evictions_cost_more(savings: float, weights: Sequence[float], price: float) -> str | None:
    """Why a saving does not pay for evictions of these weights at a price for each, in words, if it does not."""
    cost = price * sum(weights)
    if savings >= cost - HAIR:
        return None
    pods = "pod" if len(weights) == 1 else "pods"
    return f"the move saves {savings:.4g} $/h, and evicting {len(weights)} {pods} is priced at {cost:.4g} $/h"


def _subject(pool: NodePool) -> str:
    return pool.subject
