import math

import pytest
from tests.factories import node_pool

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


@pytest.mark.parametrize(
    ("saved", "disruption", "k", "approved"),
    [
        (7.26, 4, None, True),
        (2.42, 9, None, False),
        (2.42, 9, "3", True),
        (2.42, 9, "2.4", True),
        (0, 1, None, False),
        (-1, 1, None, False),
        (2.904, 9, None, True),
        (0.01, 0, None, True),
    ],
)
def test_a_balanced_pool_weighs_money_against_disruption(
    saved: float, disruption: float, k: str | None, *, approved: bool
) -> None:
    reason = policies.unbalanced(balanced(k), Worth(saved, disruption), POOL)
    assert (reason is None) is approved
    assert reason is None or reason.code == "BalancedScoreTooLow"


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


@pytest.mark.parametrize(
    ("written", "saved", "removed", "code"),
    [
        (None, 0.0001, 10, None),
        ("0.05", 0.15 - 0.10, 0.15, None),
        ("0.05", 0.0499, 0.15, "SavingsBelowMinimum"),
        ("5%", 0.0075, 0.15, None),
        ("5%", 0.0074, 0.15, "SavingsBelowMinimum"),
        ("5%", 12.852 - 12.701, 12.852, "SavingsBelowMinimum"),
        ("1%", 12.852 - 12.701, 12.852, None),
        ("0", 0.0001, 10, None),
        ("five", 10, 10, "MinimumSavingsInvalid"),
        ("-1", 10, 10, "MinimumSavingsInvalid"),
        ("5 %", 10, 10, "MinimumSavingsInvalid"),
        ("%", 10, 10, "MinimumSavingsInvalid"),
    ],
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
