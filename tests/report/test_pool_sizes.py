"""What pools of fixed size do about their size, beside a plan."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as changed
from tests.disruption.scenarios import CATALOG, REFERENCE, NodeWithPods, Scenario, node, pool_of

from karpool.disruption.settings import DisruptionSettings
from karpool.report.plans.assemble import plan_document
from karpool.report.plans.document import PoolSizePart
from karpool.report.plans.plan_words import plan_words, size_words
from karpool.report.plans.pool_sizes import pool_size_parts

MEDIUM = ("node.kubernetes.io/instance-type", "In", "medium")


def parts(
    nodes: list[NodeWithPods], replicas: int, settings: DisruptionSettings = REFERENCE, **rest: Any
) -> tuple[PoolSizePart, ...]:
    pool = pool_of("fix", requirements=[MEDIUM], replicas=replicas, **rest)
    case = Scenario("sizes", nodes=nodes, pools=[pool], settings=settings)
    return pool_size_parts(case.plan(None), case.objects, CATALOG, settings, ())


def fixed(name: str, pods: int = 0) -> NodeWithPods:
    return node(name, pods=pods, pool="fix")


NODES = [fixed("a", 1), fixed("b", 1), fixed("c")]


def test_a_pool_that_has_too_many_loses_the_empty_one() -> None:
    (part,) = parts(NODES, 2)
    assert (part.loses, part.gets, part.price_per_hour) == (("c",), 0, pytest.approx(-0.2))
    assert size_words(part) == "Beside the plan, NodePool fix loses c by itself: -0.20 $/h."


def test_a_pool_that_has_too_few_gets_more_within_its_limit() -> None:
    (part,) = parts(NODES, 5)
    assert (part.loses, part.gets, part.price_per_hour) == ((), 2, pytest.approx(0.4))
    (part,) = parts(NODES, 5, limits={"nodes": 4})
    assert (part.gets, part.price_per_hour) == (1, pytest.approx(0.2))
    assert size_words(part) == "Beside the plan, NodePool fix gets 1 more by itself: +0.20 $/h."


def test_a_pool_at_its_limit_gets_no_more_and_its_nodes_say_so() -> None:
    assert parts(NODES, 5, limits={"nodes": 3}) == ()
    pool = pool_of("fix", requirements=[MEDIUM], replicas=5, limits={"nodes": 3})
    made = Scenario("limit", nodes=NODES, pools=[pool], settings=REFERENCE).plan(None)
    assert "its limit of nodes allows no more" in " ".join(str(reason.message) for reason in made.fates[0].reasons)


def test_a_pool_of_the_right_size_and_one_that_nobody_keeps_do_nothing() -> None:
    assert parts(NODES, 3) == ()
    assert parts(NODES, 2, replace(REFERENCE, static_capacity=False)) == ()


def test_a_plan_without_steps_says_what_its_pools_do() -> None:
    case = Scenario("sizes", nodes=NODES, pools=[pool_of("fix", requirements=[MEDIUM], replicas=2)], settings=REFERENCE)
    document = changed(plan_document(case.plan(None)), pool_sizes=parts(NODES, 2))
    assert "NodePool fix loses c by itself" in " ".join(plan_words(document))
