"""What no plan can go below, for clusters as they are, and what blockers cost."""

import io
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from tests.disruption.following import context, moody
from tests.disruption.scenarios import CATALOG, NOW, NodeWithPods, cluster, node, pool_of
from tests.disruption.test_scenarios_replace import reserved
from tests.examples import examples
from tests.factories import pdb, pod
from tests.strategies import Cluster

from karpool.catalog.sources import SAMPLE, open_catalog
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.fleet_search.lower_bound import SolverError, bound_of
from karpool.disruption.fleet_search.plan_summary import LowerBound
from karpool.disruption.plan import Planner, context_of
from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import DO_NOT_DISRUPT, ON_DEMAND, RESERVED
from karpool.model.reading.loading import load
from karpool.packing.options import Options

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
PINNED = {"cpu": 1, "annotations": {DO_NOT_DISRUPT: "true"}}


def bound(nodes: list[NodeWithPods], **others: Any) -> LowerBound:
    objects = cluster(nodes, **{"pools": [pool_of()], **others})
    made = context_of(objects, CATALOG, now=NOW, settings=DisruptionSettings(), options=Options())
    return bound_of(DecisionPass(made))


@examples(30)
@given(moody(in_motion=True))
def test_no_plan_ends_below_the_bound(given_: tuple[Cluster, DisruptionSettings]) -> None:
    made = Planner(context(*given_)).plan(bound=True)
    assert made.lower_bound is not None
    assert made.lower_bound.price <= made.after.price + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_no_plan_for_forty_nodes_ends_below_the_bound(generated: Any, seed: int) -> None:
    made = Planner(context(generated(40, seed), DisruptionSettings(effort=0, ignore_budgets=True))).plan(bound=True)
    assert made.lower_bound is not None
    assert 0 < made.lower_bound.price <= made.after.price


def test_a_node_that_must_stay_is_in_the_bound_with_its_price() -> None:
    assert bound([node("a", "huge", pods=[PINNED])]).price == pytest.approx(3.2)


def test_a_blocker_costs_what_the_bound_would_be_lower_without_it() -> None:
    found = bound([node("a", "huge", pods=[PINNED]), node("b", "huge", pods=[{"cpu": 1}])])
    (blocker,) = found.blockers
    assert (blocker.code, blocker.nodes) == ("PodDoNotDisrupt", 1)
    # Two CPUs cost 0.1 $/h, and the smallest node that holds both pods 0.2.
    assert 0.1 <= found.price - blocker.price <= 0.2


def test_a_node_that_several_blockers_keep_is_freed_by_none_of_them_alone() -> None:
    keeps = pdb("keeps", {"app": "a"}, allowed=0)
    kept = node("a", "huge", pods=[PINNED, pod("a-1", node="a", labels={"app": "a"})])
    found = bound([kept, node("b", "large", pods=[{"cpu": 3}])], pod_disruption_budgets=(keeps,))
    assert found.blockers == ()


def test_budgets_that_let_nothing_go_are_a_blocker() -> None:
    found = bound([node("a", "huge", pods=[{"cpu": 1}])], pools=[pool_of(budgets=["0"])])
    assert [(blocker.code, blocker.nodes) for blocker in found.blockers] == [("BudgetExhausted", 1)]


def test_nodes_that_nobody_manages_cost_what_they_cost() -> None:
    found = bound([node("a", "huge", pods=[{"cpu": 1}], managed=False)])
    assert (found.price, found.blockers) == (pytest.approx(3.2), ())


def test_without_a_solution_a_plan_has_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> LowerBound:
        raise SolverError

    monkeypatch.setattr("karpool.disruption.fleet_search.lower_bound.bound_of", fail)
    made = context_of(
        cluster([node("a")], pools=[pool_of()]), CATALOG, now=NOW, settings=DisruptionSettings(), options=Options()
    )
    assert Planner(made).plan(bound=True).lower_bound is None


def test_reservations_that_are_left_are_in_the_bound() -> None:
    """Two pods that could each have a node for nothing, if there were two reservations; there is one."""
    nodes = [node(name, "old", pods=[{"cpu": 3}], catalog=reserved(1)) for name in "ab"]
    objects = cluster(nodes, pools=[pool_of("default", ON_DEMAND, RESERVED)])
    made = context_of(objects, reserved(1), now=NOW, settings=DisruptionSettings(), options=Options())
    planned = Planner(made).plan(bound=True)
    assert planned.lower_bound is not None
    assert 0.1 < planned.lower_bound.price <= planned.after.price == pytest.approx(0.3)


def test_nodes_that_attach_volumes_without_limit_do_not_stop_the_proof() -> None:
    """The example cluster has such nodes."""
    objects = load([str(EXAMPLES)], stdin=io.BytesIO()).objects
    made = context_of(objects, open_catalog(SAMPLE), now=NOW, settings=DisruptionSettings(), options=Options())
    found = Planner(made).plan(0, bound=True).lower_bound
    assert found is not None
    assert found.price > 0
