"""Cases in which sets that are no prefixes, or several new nodes, end cheaper: what a global search has to find."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.disruption.following import Follower, context
from tests.disruption.scenarios import CATALOG, POOL, ZONES, NodeWithPods, Scenario, node, pool_of
from tests.factories import instance_type, node_pool
from tests.strategies import Cluster

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.catalog.sample import sample_types
from karpool.disruption.command import Command
from karpool.disruption.plan import Plan
from karpool.disruption.settings import GLOBAL, DisruptionSettings, Weights
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, MINIMUM_SAVINGS, ON_DEMAND, RESERVED
from karpool.model.nodepool import NodePool

AWS: Final = Catalog(sample_types())
FAMILY: Final = "karpenter.k8s.aws/instance-family"
SEARCH: Final = DisruptionSettings(search=GLOBAL, effort=1)
FREE: Final = replace(SEARCH, eviction_price=0.0)


def pool(key: str, *values: str, **rest: Any) -> NodePool:
    return node_pool("default", requirements=[(CAPACITY_TYPE, "In", ON_DEMAND), (key, "In", *values)], **rest)


def aws(name: str, type_: str, pods: Any, **rest: Any) -> NodeWithPods:
    return node(name, type_, pods=pods, catalog=AWS, zone="us-east-1a", **rest)


def machine(name: str, cpu: int, memory: str, price: float) -> InstanceType:
    return instance_type(name, cpu, memory, price=price, spot_price=price / 2, zones=ZONES)


def found(
    nodes: Sequence[NodeWithPods],
    *,
    pools: Sequence[NodePool] = (POOL,),
    catalog: Catalog = CATALOG,
    settings: DisruptionSettings = SEARCH,
) -> Plan:
    """A whole plan, every command of which the independent checker has accepted."""
    scenario = Scenario("search", nodes=nodes, pools=pools, catalog=catalog, settings=settings)
    made = scenario.plan(None)
    cluster = Cluster(scenario.objects, catalog)
    follower = Follower(cluster, context(cluster, settings))
    assert [problem for step in made.steps for problem in follower.follow(step)] == []
    assert made.after.pods == made.before.pods
    return made


def only_command(made: Plan) -> Command:
    (step,) = made.steps
    return step.command


def launched(made: Plan) -> list[str]:
    """The first type of every replacement of a plan."""
    return sorted(new.instance_types[0] for step in made.steps for new in step.command.replacements)


def codes(made: Plan) -> set[str]:
    return {reason.code for fate in made.fates for reason in fate.reasons}


# -- what users wrote down -------------------------------------------------------------------------------------------


def test_a_large_node_and_a_tiny_one_become_two_of_medium_size() -> None:
    large = aws("large", "t3a.xlarge", [{"cpu": "1500m", "memory": "2500Mi"}] * 2)
    tiny = aws("tiny", "t3a.micro", [{"cpu": "100m", "memory": "200Mi"}])
    made = found([large, tiny], pools=[pool(FAMILY, "t3a")], catalog=AWS)
    assert launched(made) == ["t3a.medium", "t3a.medium"]
    assert [made.before.price, made.after.price] == pytest.approx([0.1598, 0.0752])


def three_to_two(settings: DisruptionSettings, **annotations: str) -> Plan:
    """Three nodes full of memory, and types of the same CPUs with four times as much: two of them cost 1 % less."""
    nodes = [aws(name, "c7i.24xlarge", [{"cpu": 6, "memory": "17Gi"}] * 10) for name in "abc"]
    allowed = pool(INSTANCE_TYPE, "c7i.24xlarge", "r7i.24xlarge", annotations=annotations)
    return found(nodes, pools=[allowed], catalog=AWS, settings=settings)


def test_three_nodes_full_of_memory_become_two() -> None:
    made = three_to_two(FREE)
    assert only_command(made).nodes == ("a", "b", "c")
    assert launched(made) == ["r7i.24xlarge", "r7i.24xlarge"]
    assert [made.before.price, made.after.price] == pytest.approx([12.852, 12.701], abs=0.0005)


@pytest.mark.parametrize("threshold", ["5%", "0.2"])
def test_three_to_two_that_is_not_worth_it_is_refused_by_a_savings_threshold(threshold: str) -> None:
    made = three_to_two(FREE, **{MINIMUM_SAVINGS: threshold})
    assert not made.steps


def test_three_to_two_that_is_not_worth_it_is_refused_by_the_price_of_its_evictions() -> None:
    """Thirty pods would move for 0.151 $/h: half a cent for each of them."""
    made = three_to_two(replace(SEARCH, eviction_price=0.006))
    assert not made.steps


# -- several nodes for several ---------------------------------------------------------------------------------------

STEPS: Final = Catalog(tuple(machine(f"cpu-{cpu}", cpu, f"{4 * cpu}Gi", 0.05 * cpu) for cpu in (8, 16, 32)))


def test_pods_that_waste_a_quarter_of_every_node_share_larger_ones() -> None:
    """Six of eight CPUs are used everywhere. Five pods fit on a node of 32 CPUs: no four of these nodes can save."""
    nodes = [node(f"n{number:02}", "cpu-8", pods=[{"cpu": 6, "memory": "8Gi"}], catalog=STEPS) for number in range(24)]
    made = found(nodes, catalog=STEPS)
    assert [made.before.price, made.after.price] == pytest.approx([9.6, 8.0])


def test_six_nodes_become_two_where_neither_pairs_nor_one_for_all_exist() -> None:
    catalog = Catalog((machine("four", 4, "16Gi", 0.2), machine("twelve", 12, "48Gi", 0.5)))
    pods = [{"cpu": "3500m", "memory": "1Gi"}]
    nodes = [node(f"n{number}", "four", pods=pods, catalog=catalog) for number in range(6)]
    made = found(nodes, catalog=catalog)
    assert launched(made) == ["twelve", "twelve"]
    assert made.after.price == pytest.approx(1.0)


def test_three_nodes_become_two_of_another_type_in_one_command() -> None:
    catalog = Catalog((machine("lean", 8, "16Gi", 0.3), machine("rich", 8, "64Gi", 0.4)))
    nodes = [node(name, "lean", pods=[{"cpu": "1200m", "memory": "3900Mi"}] * 4, catalog=catalog) for name in "abc"]
    made = found(nodes, catalog=catalog)
    assert only_command(made).nodes == ("a", "b", "c")
    assert launched(made) == ["rich", "rich"]
    assert [made.before.price, made.after.price] == pytest.approx([0.9, 0.8])


def test_one_node_becomes_two_smaller_ones() -> None:
    """Sizes between which there is nothing: nine CPUs need the dear large type, or two small ones."""
    catalog = Catalog((machine("five", 5, "20Gi", 0.2), machine("sixteen", 16, "64Gi", 0.8)))
    nodes = [node("a", "sixteen", pods=[{"cpu": "4500m", "memory": "8Gi"}] * 2, catalog=catalog)]
    made = found(nodes, catalog=catalog)
    assert launched(made) == ["five", "five"]
    assert made.after.price == pytest.approx(0.4)


def test_several_nodes_that_would_cost_the_same_are_not_launched() -> None:
    catalog = Catalog((machine("five", 5, "20Gi", 0.4), machine("sixteen", 16, "64Gi", 0.8)))
    nodes = [node("a", "sixteen", pods=[{"cpu": "4500m", "memory": "8Gi"}] * 2, catalog=catalog)]
    made = found(nodes, catalog=catalog)
    assert not made.steps


# -- fees and reservations -------------------------------------------------------------------------------------------


def small_nodes(fee: float) -> Plan:
    """Sixteen small nodes whose pods fit on one that has the list price of all of them."""
    catalog = Catalog(AWS.types, node_fee=fee)
    nodes = [aws(f"n{number:02}", "c6a.large", [{"cpu": "900m", "memory": "1Gi"}] * 2) for number in range(16)]
    return found(nodes, pools=[pool(FAMILY, "c6a")], catalog=catalog)


def test_a_fee_for_every_node_turns_sixteen_small_nodes_into_one() -> None:
    made = small_nodes(0.03)
    assert made.after.nodes == 1
    assert launched(made)[-1] == "c6a.8xlarge"
    assert [made.before.price, made.after.price] == pytest.approx([1.704, 1.254])


def test_without_a_fee_sixteen_small_nodes_stay() -> None:
    assert not small_nodes(0.0).steps


def test_room_that_is_paid_for_is_filled_before_anything_is_bought() -> None:
    """Both nodes together could become one that costs half; alone, the second needs no new node at all."""
    pods = [{"cpu": "3500m", "memory": "4Gi"}]
    nodes = [aws("paid", "m5.4xlarge", pods, capacity_type=RESERVED), aws("dear", "m5.4xlarge", pods)]
    pools = [node_pool("default", requirements=[(CAPACITY_TYPE, "In", RESERVED, ON_DEMAND), (FAMILY, "In", "m5")])]
    made = found(nodes, pools=pools, catalog=AWS)
    assert only_command(made).nodes == ("dear",)
    assert not launched(made)
    assert [made.before.price, made.after.price] == pytest.approx([0.768, 0.0])


# -- weights ---------------------------------------------------------------------------------------------------------


def weighed(small_price: float, weights: Weights) -> Plan:
    """A node that is too large for its three pods; the heavy pool has only types that hold one of them."""
    catalog = Catalog(
        (machine("small", 2, "8Gi", small_price), machine("medium", 8, "32Gi", 0.4), machine("large", 16, "64Gi", 0.8))
    )
    pools = [
        pool_of("heavy", requirements=[(INSTANCE_TYPE, "In", "small")], weight=100),
        pool_of("light", requirements=[(INSTANCE_TYPE, "In", "medium", "large")]),
    ]
    nodes = [node("a", "large", pods=[{"cpu": "1800m", "memory": "2Gi"}] * 3, catalog=catalog, pool="light")]
    return found(nodes, pools=pools, catalog=catalog, settings=replace(SEARCH, weights=weights))


def test_where_the_heavy_pool_saves_nothing_the_light_one_takes_the_pods() -> None:
    made = weighed(0.3, Weights.PREFER)
    assert [(new.pool, new.instance_types[0]) for new in only_command(made).replacements] == [("light", "medium")]
    assert made.after.price == pytest.approx(0.4)


def test_strict_weights_leave_a_node_that_the_heavy_pool_cannot_replace_for_less() -> None:
    made = weighed(0.3, Weights.STRICT)
    assert not made.steps
    assert made.fates[0].reasons


def test_with_strict_weights_the_heavy_pool_takes_the_pods_where_that_saves_anything() -> None:
    made = weighed(0.2, Weights.STRICT)
    assert [new.pool for new in only_command(made).replacements] == ["heavy"] * 3
    assert made.after.price == pytest.approx(0.6)


@pytest.mark.parametrize("weights", Weights)
def test_a_lighter_pool_is_open_to_pods_that_no_node_of_the_heavy_one_can_hold(weights: Weights) -> None:
    catalog = Catalog((machine("tiny", 2, "8Gi", 0.1), machine("c8", 8, "32Gi", 0.4), machine("c32", 32, "128Gi", 1.6)))
    heavy = pool_of("heavy", requirements=[(INSTANCE_TYPE, "In", "tiny")], weight=100)
    light = pool_of("light", requirements=[(INSTANCE_TYPE, "In", "c8", "c32")], budgets=["100%"])
    nodes = [
        node(f"n{number:02}", "c8", pods=[{"cpu": 6, "memory": "1Gi"}], catalog=catalog, pool="light")
        for number in range(24)
    ]
    made = found(nodes, pools=[heavy, light], catalog=catalog, settings=replace(FREE, weights=weights))
    assert made.after.price == pytest.approx(8.0)
