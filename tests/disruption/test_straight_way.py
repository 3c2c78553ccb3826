"""Plans without detours: a pod moves once, and what a step launches no later step removes."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Final

import pytest
from tests.disruption.following import Follower, context
from tests.disruption.scenarios import NOW, Scenario, node
from tests.disruption.test_golden_search import FREE, SEARCH, machine
from tests.factories import node_pool
from tests.strategies import Cluster

from karpool.catalog.instance_types import Catalog
from karpool.catalog.sources import SAMPLE, open_catalog
from karpool.disruption.context import DecisionContext
from karpool.disruption.fleet_search.straight_way import has_detours
from karpool.disruption.plan import Plan, Planner, context_of, plan
from karpool.disruption.settings import GLOBAL, DisruptionSettings
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND
from karpool.model.objects import Objects
from karpool.model.reading.loading import load
from karpool.packing.options import Options

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
NOON: Final = datetime(2026, 11, 15, 12, tzinfo=UTC)


def detours(made: Plan) -> bool:
    return has_detours((step.command, step.replacement_names) for step in made.steps)


def evictions(made: Plan) -> Counter[str]:
    return Counter(pod for step in made.steps for pod in step.command.evicted)


def example() -> Objects:
    return load([str(EXAMPLES)], stdin=BytesIO()).objects


def both(objects: Objects, catalog: Catalog, settings: DisruptionSettings, now: datetime = NOW) -> tuple[Plan, Plan]:
    """The plan as the search finds it step by step, and the one that is tried without detours."""

    def made() -> DecisionContext:
        return context_of(objects, catalog, now=now, settings=settings, options=Options())

    return Planner(made()).plan(), Planner(made(), afresh=made).plan()


def test_the_plan_of_the_example_takes_back_nothing_that_it_launched() -> None:
    made = plan(example(), open_catalog(SAMPLE), now=NOON, settings=DisruptionSettings(search=GLOBAL))
    assert not detours(made)
    assert max(evictions(made).values()) == 1


def test_pods_go_to_a_lighter_pool_at_once_if_that_is_where_they_end() -> None:
    """The heavy pool saves something, the light one more: pods do not visit the first on their way to the second."""
    catalog = Catalog(
        (machine("dear", 8, "32Gi", 0.8), machine("heavy", 8, "32Gi", 0.5), machine("light", 8, "32Gi", 0.2))
    )
    pools = [
        node_pool(name, weight=weight, requirements=[(CAPACITY_TYPE, "In", ON_DEMAND), (INSTANCE_TYPE, "In", *types)])
        for name, weight, types in (("default", 50, ("dear", "heavy")), ("light", 1, ("light",)))
    ]
    nodes = [node(name, "dear", pods=[{"cpu": 6}], catalog=catalog) for name in "abc"]
    scenario = Scenario("weights", nodes=nodes, pools=pools, catalog=catalog, settings=FREE)
    winding, straight = both(scenario.objects, catalog, FREE)
    assert detours(winding)
    assert evictions(winding).total() == 6
    assert evictions(straight).total() == 3
    assert {new.pool for step in straight.steps for new in step.command.replacements} == {"light"}
    assert [winding.after.price, straight.after.price] == pytest.approx([0.6, 0.6])
    cluster = Cluster(scenario.objects, catalog)
    follower = Follower(cluster, context(cluster, FREE))
    assert [problem for step in straight.steps for problem in follower.follow(step)] == []


def test_a_plan_that_is_made_without_effort_is_left_as_it_is() -> None:
    objects, catalog = example(), open_catalog(SAMPLE)
    winding, straight = both(objects, catalog, replace(SEARCH, effort=0), NOON)
    assert winding.steps == straight.steps
