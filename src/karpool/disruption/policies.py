"""What a pool wants of a consolidation beyond a lower price: its policy, and how much a move must be worth."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from karpool.disruption.reasons import ReasonCode
from karpool.model.labels import BALANCED_K, MINIMUM_SAVINGS
from karpool.model.nodepool import NodePool
from karpool.model.reasons import Reason

WHEN_EMPTY: Final = "WhenEmpty"
WHEN_UNDERUTILIZED: Final = "WhenEmptyOrUnderutilized"
BALANCED: Final = "Balanced"
POLICIES: Final = (WHEN_EMPTY, WHEN_UNDERUTILIZED, BALANCED)
DEFAULT_K: Final = 2.0
_NUMBER: Final = re.compile(r"(\d+\.?\d*|\.\d+)", re.ASCII)
# Prices are sums of binary fractions: 0.15 - 0.10 is a hair less than 0.05, and a hair is no saving.
HAIR: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Worth:
    """What a pool, or a move within it, costs: money an hour, and trouble."""

    price: float
    disruption: float


@dataclass(frozen=True, slots=True)
class MinimumSavings:
    """The least that a command must save: an amount in $/h, or a share of the price of the nodes it removes."""

    amount: float = 0.0
    share: float = 0.0

    def of(self, removed: float) -> float:
        """The least saving in $/h when nodes of this price go."""
        return self.amount + self.share * removed


def policy(pool: NodePool) -> str:
    """The pool's consolidation policy."""
    return pool.spec.disruption.consolidation_policy


def keeps_used_nodes(pool: NodePool) -> Reason | None:
    """Why nodes of the pool that have pods are not consolidated, if they are not."""
    match policy(pool):
        case "WhenEmptyOrUnderutilized" | "Balanced":
            return None
        case "WhenEmpty":
            said = "its consolidationPolicy is WhenEmpty, and the node has pods"
            return Reason(ReasonCode.POLICY_WHEN_EMPTY, said, _subject(pool))
        case other:
            said = f"its consolidationPolicy {other[:40]!r} is not one of {', '.join(POLICIES)}, so only empty nodes go"
            return Reason(ReasonCode.POLICY_UNKNOWN, said, _subject(pool))


def balanced_k(pool: NodePool) -> float:
    """How many times the share of money saved the share of disruption may be; a ValueError if it is unreadable."""
    text = pool.metadata.annotations.get(BALANCED_K)
    k = DEFAULT_K if text is None else _number(text)
    if k is None or k == 0:
        raise ValueError(f"annotation {BALANCED_K} is {text!r}, which is not a number above zero")
    return k


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
    except ValueError as problem:
        return Reason(ReasonCode.BALANCED_K_INVALID, f"{problem}, so no move is approved", _subject(pool))
    score = balanced_score(move, total)
    if score >= least * (1 - HAIR):
        return None
    said = (
        f"the move saves {move.price:.4g} of the pool's {total.price:.4g} $/h for {move.disruption:.4g} of its "
        f"{total.disruption:.4g} disruption: a score of {score:.2f}, below {least:.2f}"
    )
    return Reason(ReasonCode.BALANCED_SCORE_TOO_LOW, said, _subject(pool))


def split_savings(savings: float, prices: Mapping[str, float]) -> dict[str, float]:
    """What a command saves for each pool: in proportion to the price of the nodes that it takes from the pool."""
    total = sum(prices.values())
    return {pool: savings * price / total if total > 0 else 0.0 for pool, price in prices.items()}


def minimum_savings(pool: NodePool) -> MinimumSavings:
    """The least that a command must save for the pool; a ValueError if it is unreadable."""
    text = pool.metadata.annotations.get(MINIMUM_SAVINGS)
    if text is None:
        return MinimumSavings()
    number = _number(text.removesuffix("%"))
    if number is None:
        raise ValueError(f"annotation {MINIMUM_SAVINGS} is {text!r}; write $/h such as 0.05, or a share such as 5%")
    return MinimumSavings(share=number / 100) if text.endswith("%") else MinimumSavings(amount=number)


def saves_too_little(pool: NodePool, savings: float, removed: float) -> Reason | None:
    """Why saving so much by removing nodes of this price is not worth it to the pool, if it is not."""
    try:
        wanted = minimum_savings(pool)
    except ValueError as problem:
        said = f"{problem}; until that is put right, no move is approved"
        return Reason(ReasonCode.MINIMUM_SAVINGS_INVALID, said, _subject(pool))
    least = wanted.of(removed)
    if savings >= least - HAIR:
        return None
    share = f" ({wanted.share * 100:.4g}% of {removed:.4g})" if wanted.share else ""
    said = f"the move saves {savings:.4g} $/h, and the pool wants at least {least:.4g} $/h{share}"
    return Reason(ReasonCode.SAVINGS_BELOW_MINIMUM, said, _subject(pool))


def _number(text: str) -> float | None:
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    return number if math.isfinite(number) else None


def _subject(pool: NodePool) -> str:
    return f"NodePool {pool.name}"
