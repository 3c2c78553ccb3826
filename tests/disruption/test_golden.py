"""Cases that users wrote down, with the prices of us-east-1."""

from typing import Any

import pytest
from tests.disruption.scenarios import NodeWithPods, Scenario, node
from tests.factories import node_pool, pod

from karpool.catalog.instance_types import Catalog
from karpool.catalog.sample import sample_types
from karpool.model.labels import CAPACITY_TYPE, ON_DEMAND
from karpool.model.nodepool import NodePool

AWS = Catalog(sample_types())
FAMILY = "karpenter.k8s.aws/instance-family"


def pool(name: str = "default", *families: str, **rest: Any) -> NodePool:
    rules = [(CAPACITY_TYPE, "In", ON_DEMAND), *([(FAMILY, "In", *families)] if families else [])]
    return node_pool(name, requirements=rules, **rest)


def aws(name: str, type_: str, pods: Any, **rest: Any) -> NodeWithPods:
    return node(name, type_, pods=pods, catalog=AWS, zone="us-east-1a", **rest)


def test_two_nodes_full_of_memory_become_one_of_another_family() -> None:
    nodes = [aws(name, "c5a.xlarge", [{"cpu": "500m", "memory": "2Gi"}] * 3) for name in "ab"]
    scenario = Scenario(
        "2 to 1",
        nodes=nodes,
        pools=[pool("default", "c5a", "m6a")],
        catalog=AWS,
        removes="a b",
        method="Multi",
        launches="m6a.xlarge",
    )
    scenario.verify()
    made = scenario.plan()
    assert made.before.price == pytest.approx(0.3080)
    assert made.after.price == pytest.approx(0.1728)


def test_two_nodes_of_a_dedicated_pool_among_ten_become_one() -> None:
    """Every pool has its taint and its two nodes; only those of one pool are worth combining."""
    names = [f"team-{number}" for number in range(10)]
    pools = [pool(name, "m7g", "r7g", taints=[f"team={name}"]) for name in names]
    nodes = []
    for name in names:
        asked = {"cpu": "7", "memory": "26Gi"} if name != "team-4" else {"cpu": "3500m", "memory": "26Gi"}
        for letter in "ab":
            held = [{**asked, "tolerations": [f"team={name}"]}]
            nodes.append(aws(f"{name}-{letter}", "m7g.2xlarge", held, pool=name, taints=[f"team={name}"]))
    scenario = Scenario(
        "dedicated",
        nodes=nodes,
        pools=pools,
        catalog=AWS,
        removes="team-4-a team-4-b",
        method="Multi",
        launches="r7g.2xlarge",
    )
    scenario.verify()
    command = scenario.plan().steps[0].command
    assert (command.price, command.replacements[0].price) == (pytest.approx(0.6528), pytest.approx(0.4284))


def equal_price(fee: float) -> Scenario:
    """Two nodes whose pods fit on one of twice the size and twice the price."""
    catalog = Catalog(AWS.types, node_fee=fee)
    nodes = [aws(name, "c6a.2xlarge", [{"cpu": "3500m", "memory": "6Gi"}] * 2) for name in "ab"]
    return Scenario("equal price", nodes=nodes, pools=[pool("default", "c6a")], catalog=catalog)


def test_fewer_nodes_at_the_same_list_price_are_no_saving() -> None:
    made = equal_price(0.0).plan()
    assert not made.steps
    assert "NotCheaper" in {reason.code for fate in made.fates for reason in fate.reasons}


def test_with_a_fee_for_every_node_fewer_nodes_are_a_saving() -> None:
    made = equal_price(0.03).plan()
    assert made.steps[0].command.nodes == ("a", "b")
    assert made.steps[0].command.replacements[0].instance_types[0] == "c6a.4xlarge"
    assert made.before.price - made.after.price == pytest.approx(0.03)


def test_when_all_nodes_are_nearly_empty_one_stays_for_all() -> None:
    nodes = [aws(f"n{number}", "m5.xlarge", [{"cpu": "800m", "memory": "3Gi"}]) for number in range(4)]
    made = Scenario("20%", nodes=nodes, pools=[pool("default", "m5")], catalog=AWS).plan(None)
    assert made.after.nodes == 1
    assert made.after.price == pytest.approx(0.192)


def test_a_full_node_is_not_replaced_by_its_like() -> None:
    nodes = [aws("a", "m6a.8xlarge", [{"cpu": "7", "memory": "28Gi"}] * 4)]
    Scenario("90%", nodes=nodes, pools=[pool("default", "m6a")], catalog=AWS, reasons={"a": "NotCheaper"},
          messages={"a": "m6a.8xlarge"}).verify()  # fmt: skip


@pytest.mark.parametrize(
    "waiting", [{"cpu": 999}, {"selector": {"disk": "none"}}, {"requests": {"example.com/fpga": 1}}]
)
def test_an_unrelated_pending_pod_blocks_nothing(waiting: dict[str, Any]) -> None:
    nodes = [aws("a", "m5.xlarge", 1), aws("b", "m5.xlarge", 1)]
    with_it = Scenario("pending", nodes=nodes, pools=[pool()], catalog=AWS, pods=[pod("w-0", pending=True, **waiting)])
    without = Scenario("no pending", nodes=nodes, pools=[pool()], catalog=AWS)
    assert with_it.plan().steps == without.plan().steps != ()
    assert [key for key, _ in with_it.plan().unschedulable] == ["default/w-0"]
