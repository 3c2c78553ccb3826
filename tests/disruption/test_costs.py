from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.factories import node_claim, pod

from karpool.disruption.candidates import costs
from karpool.model.labels import DISRUPTION_COST, OWN_DELETION_COST, POD_DELETION_COST
from karpool.model.pod import Pod

NOW = datetime(2026, 11, 16, 14, 0, tzinfo=UTC)


def priced(cost: str | None = None, **rest: Any) -> Pod:
    return pod(node="n1", annotations={} if cost is None else {POD_DELETION_COST: cost}, **rest)


@pytest.mark.parametrize(
    ("cost", "priority", "expected"),
    [
        (None, None, 1.0),
        (str(2**27), None, 2.0),
        (f"-{2**27}", None, 0.0),
        ("2147483647", None, 10.0),
        ("-2147483647", None, -10.0),
        (None, 2**25, 2.0),
        (None, 2_000_001_000, 10.0),
        (str(2**26), 2**24, 2.0),
        ("1.34217728e8", None, 1.0),
        ("1.5", None, 1.0),
        ("2147483648", None, 1.0),
        ("much", 2**25, 2.0),
        ("nan", None, 1.0),
        ("inf", None, 1.0),
        ("1e999", None, 1.0),
        ("1_000", None, 1.0),
        (" 5", None, 1.0),
    ],
)
def test_deletion_cost_and_priority_move_the_eviction_cost(
    cost: str | None, priority: int | None, expected: float
) -> None:
    assert costs.eviction_cost(priced(cost, priority=priority)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("disruption", "deletion", "expected"),
    [(str(2**27), None, 2.0), ("0", str(2**27), 1.0), ("abc", str(2**27), 1.0), (None, str(2**27), 2.0)],
)
def test_a_disruption_cost_counts_more_than_a_deletion_cost(
    disruption: str | None, deletion: str | None, expected: float
) -> None:
    written = {DISRUPTION_COST: disruption, POD_DELETION_COST: deletion}
    costly = pod(node="n1", annotations={key: text for key, text in written.items() if text is not None})
    assert costs.eviction_cost(costly) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("expire_after", "age", "share"),
    [
        ("Never", timedelta(days=900), 1.0),
        ("720h", timedelta(0), 1.0),
        ("720h", timedelta(hours=180), 0.75),
        ("720h", timedelta(hours=720), 0.0),
        ("720h", timedelta(hours=900), 0.0),
        ("720h", timedelta(hours=-1), 1.0),
        ("0s", timedelta(0), 0.0),
    ],
)
def test_a_node_near_its_end_costs_little_to_disrupt(expire_after: str, age: timedelta, share: float) -> None:
    claim = node_claim(expire_after=expire_after, created=NOW - age)
    assert costs.lifetime_remaining(claim, NOW) == pytest.approx(share)


def test_the_lifetime_cost_counts_every_pod_on_the_node() -> None:
    claim = node_claim(expire_after="100h", created=NOW - timedelta(hours=50))
    held = [priced(), priced(owner="DaemonSet"), priced(owner="Node"), priced(deleted=NOW)]
    assert costs.lifetime_cost(sum(map(costs.eviction_cost, held)), claim, NOW) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("held", "cost"),
    [
        ([], 1.0),
        ([priced()], 2.0),
        ([priced(), priced(priority=2**25)], 4.0),
        ([priced("-2147483647"), priced()], 2.0),
    ],
)
def test_the_reschedule_cost_is_one_and_the_cost_of_pods_that_move(held: list[Pod], cost: float) -> None:
    assert costs.reschedule_cost(map(costs.eviction_cost, held)) == pytest.approx(cost)


def test_of_two_nodes_of_one_price_the_emptier_saves_more_for_the_trouble() -> None:
    busy, quiet = ([priced()] * count for count in (4, 1))
    ratios = [costs.savings_ratio(0.2, costs.reschedule_cost(map(costs.eviction_cost, held))) for held in (busy, quiet)]
    assert ratios == pytest.approx([0.04, 0.1])
    assert costs.savings_ratio(None, 2.0) == 0.0


@pytest.mark.parametrize(
    ("price_of_a", "order"),
    [(0.40, ["b", "a", "c"]), (0.80, ["a", "b", "c"])],
)
def test_candidates_come_in_the_order_of_what_they_save_for_the_trouble(price_of_a: float, order: list[str]) -> None:
    """As Karpenter orders them since 1.14; by the number of pods alone the price would not matter."""
    nodes = {"a": (price_of_a, 3), "b": (0.30, 1), "c": (0.90, 11)}
    ratios = {
        name: costs.savings_ratio(price, costs.reschedule_cost(costs.eviction_cost(priced()) for _ in range(pods)))
        for name, (price, pods) in nodes.items()
    }
    assert sorted(ratios, key=lambda name: -ratios[name]) == order


def test_a_deletion_cost_that_karpool_wrote_says_nothing_of_an_eviction() -> None:
    own = pod(node="n1", annotations={POD_DELETION_COST: str(2**27), OWN_DELETION_COST: str(2**27)})
    theirs = pod(node="n1", annotations={POD_DELETION_COST: str(2**27), OWN_DELETION_COST: "-3"})
    assert costs.eviction_cost(own) == pytest.approx(1.0)
    assert costs.eviction_cost(theirs) == pytest.approx(2.0)
    assert costs.eviction_cost(theirs, by_deletion_cost=False) == pytest.approx(1.0)
