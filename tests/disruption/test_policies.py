import math

import pytest
from tests.factories import node_pool
from tests.tables import row, table

from karpool.disruption import policies
from karpool.disruption.policies import Worth
from karpool.model.labels import BALANCED_K, MINIMUM_SAVINGS
from karpool.model.nodepool import NodePool

POOL = Worth(price=58.08, disruption=90)


def balanced(k: str | None = None) -> NodePool:
    return node_pool(policy="Balanced", annotations={} if k is None else {BALANCED_K: k})


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("WhenEmptyOrUnderutilized", None),
        ("Balanced", None),
        ("WhenEmpty", "PolicyWhenEmpty"),
        ("whenempty", "PolicyUnknown"),
        ("", "PolicyUnknown"),
    ],
)
def test_which_policies_let_used_nodes_go(policy: str, code: str | None) -> None:
    reason = policies.keeps_used_nodes(node_pool(policy=policy))
    assert (None if reason is None else reason.code) == code


@table(
    row(saved=7.26, disruption=4, k=None, approved=True),
    row(saved=2.42, disruption=9, k=None, approved=False),
    row(saved=2.42, disruption=9, k="3", approved=True),
    row(saved=2.42, disruption=9, k="2.4", approved=True),
    row(saved=0, disruption=1, k=None, approved=False),
    row(saved=-1, disruption=1, k=None, approved=False),
    row(saved=2.904, disruption=9, k=None, approved=True),
    row(saved=0.01, disruption=0, k=None, approved=True),
)
def test_a_balanced_pool_weighs_money_against_disruption(
    saved: float, disruption: float, k: str | None, *, approved: bool
) -> None:
    reason = policies.unbalanced(balanced(k), Worth(saved, disruption), POOL)
    assert (reason is None) is approved
    assert reason is None or reason.code == "BalancedScoreTooLow"


@pytest.mark.parametrize(
    ("saved", "disruption", "score", "approved"),
    [(1.0, 8, 0.50, True), (1.0, 9, 0.44, False), (0.4, 3, 0.53, True), (0.3, 3, 0.40, False)],
)
def test_a_balanced_pool_scores_as_karpenter_does(
    saved: float, disruption: float, score: float, *, approved: bool
) -> None:
    pool, move = Worth(10, 40), Worth(saved, disruption)
    assert policies.balanced_score(move, pool) == pytest.approx(score, abs=0.005)
    assert (policies.unbalanced(balanced(), move, pool) is None) is approved


@pytest.mark.parametrize("total", [Worth(0, 90), Worth(58.08, 0)])
def test_a_pool_that_costs_nothing_approves_nothing(total: Worth) -> None:
    assert policies.balanced_score(Worth(1, 1), total) == 0
    assert policies.unbalanced(balanced(), Worth(1, 1), total) is not None


def test_a_saving_without_any_disruption_scores_infinitely() -> None:
    assert policies.balanced_score(Worth(0.01, 0), POOL) == math.inf


def test_a_refusal_tells_the_score() -> None:
    reason = policies.unbalanced(balanced(), Worth(2.42, 9), POOL)
    assert reason is not None
    assert reason.object == "NodePool default"
    assert reason.message == (
        "the move saves 2.42 of the pool's 58.08 $/h for 9 of its 90 disruption: a score of 0.42, below 0.50"
    )


def test_pools_with_other_policies_are_not_scored() -> None:
    assert policies.unbalanced(node_pool(), Worth(0, 100), POOL) is None


@pytest.mark.parametrize("k", ["0", "-1", "two", "nan", "inf", ""])
def test_an_unreadable_k_approves_nothing(k: str) -> None:
    reason = policies.unbalanced(balanced(k), Worth(50, 1), POOL)
    assert reason is not None
    assert reason.code == "BalancedKInvalid"


def test_savings_are_split_by_the_price_taken_from_each_pool() -> None:
    assert policies.split_savings(0.4, {"a": 0.3, "b": 0.1}) == pytest.approx({"a": 0.3, "b": 0.1})
    assert policies.split_savings(0.4, {"a": 0.0}) == {"a": 0.0}


@table(
    row(written=None, saved=0.0001, removed=10, code=None),
    row(written="0.05", saved=0.15 - 0.10, removed=0.15, code=None),
    row(written="0.05", saved=0.0499, removed=0.15, code="SavingsBelowMinimum"),
    row(written="5%", saved=0.0075, removed=0.15, code=None),
    row(written="5%", saved=0.0074, removed=0.15, code="SavingsBelowMinimum"),
    row(written="5%", saved=12.852 - 12.701, removed=12.852, code="SavingsBelowMinimum"),
    row(written="1%", saved=12.852 - 12.701, removed=12.852, code=None),
    row(written="0", saved=0.0001, removed=10, code=None),
    row(written="five", saved=10, removed=10, code="MinimumSavingsInvalid"),
    row(written="-1", saved=10, removed=10, code="MinimumSavingsInvalid"),
    row(written="5 %", saved=10, removed=10, code="MinimumSavingsInvalid"),
    row(written="%", saved=10, removed=10, code="MinimumSavingsInvalid"),
)
def test_a_pool_can_ask_for_a_minimum_saving(
    written: str | None, saved: float, removed: float, code: str | None
) -> None:
    pool = node_pool(annotations={} if written is None else {MINIMUM_SAVINGS: written})
    reason = policies.saves_too_little(pool, saved, removed)
    assert (None if reason is None else reason.code) == code


def test_a_saving_that_is_too_small_is_told_with_what_is_wanted() -> None:
    reason = policies.saves_too_little(node_pool(annotations={MINIMUM_SAVINGS: "5%"}), 0.151, 12.852)
    assert reason is not None
    assert reason.message == "the move saves 0.151 $/h, and the pool wants at least 0.6426 $/h (5% of 12.85)"
