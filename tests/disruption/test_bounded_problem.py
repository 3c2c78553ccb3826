"""Lower bounds of whole clusters: no plan ends below them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tests.disruption.following import context, moody, planned
from tests.disruption.scenarios import CATALOG, NOW, Scenario, node, pool_of
from tests.examples import examples
from tests.factories import Z1, Z2, Z3, affinity_to, daemon_set, instance_type, node_term, spread
from tests.strategies import Cluster

from karpool.catalog.instance_types import Catalog
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.fleet_search.bounded_problem import bounded_problem
from karpool.disruption.fleet_search.fleet import fleet_of
from karpool.disruption.plan import context_of
from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import DO_NOT_DISRUPT, ON_DEMAND, ZONE
from karpool.optimization.bound import lower_bound
from karpool.optimization.problem import FleetProblem
from karpool.optimization.proof import InvalidProofError
from karpool.optimization.verify import verify


def _problem(decision_pass: DecisionPass) -> FleetProblem:
    return bounded_problem(decision_pass, fleet_of(decision_pass))


def _of(scenario: Scenario) -> FleetProblem:
    made = context_of(scenario.objects, scenario.catalog, now=NOW, settings=scenario.settings, options=scenario.options)
    return _problem(DecisionPass(made))


@pytest.mark.slow
@examples(30)
@given(moody(in_motion=True))
def test_no_plan_ends_below_the_bound(given_: tuple[Cluster, DisruptionSettings]) -> None:
    cluster, chosen = given_
    problem = _problem(DecisionPass(context(cluster, chosen)))
    bound = lower_bound(problem)
    assert lower_bound(problem, branches=0).price <= verify(problem, bound.proof) + 1e-6
    eager = replace(chosen, spot_to_spot=True, spot_floor=1, eviction_price=0.0)
    for settings in (chosen, eager, replace(eager, search="global", effort=1)):
        assert bound.price <= planned(cluster, settings).after.price + 1e-9


def test_pods_may_go_wherever_one_of_their_alternatives_lets_them() -> None:
    either = {"terms": [node_term((ZONE, "In", Z1)), node_term((ZONE, "In", Z2))]}
    only_z1 = pool_of("default", requirements=[(ZONE, "In", Z1)])
    for zone in (Z1, Z2):
        scenario = Scenario("", nodes=[node("a", "huge", zone=zone, pods=[either])], pools=[only_z1])
        # A tiny node in zone 1 has room for the pod.
        assert lower_bound(_of(scenario)).price == pytest.approx(0.05)


def test_room_of_a_daemon_that_may_not_come_counts_as_room() -> None:
    here = daemon_set("here", cpu="1", selector={ZONE: Z1})
    anywhere = Scenario("", nodes=[node("a", "huge", pods=1)], daemons=[here])
    problem = _of(anywhere)
    medium = problem.kinds.room[problem.kinds.machine == [entry.name for entry in CATALOG.types].index("medium")]
    assert {int(room[0]) for room in medium} == {2900, 3900}


def _zonal(**rest: Any) -> Scenario:
    """Three pods of an application, one in each zone; nodes of 1 CPU cost 0.1 $/h, and 0.4 in zone 3."""
    offers = [(ON_DEMAND, Z1, 0.1), (ON_DEMAND, Z2, 0.1), (ON_DEMAND, Z3, 0.4)]
    small = instance_type("small", "1100m", "4Gi", offers=offers)
    large = instance_type("large", 16, "64Gi", offers=[(kind, zone, 9.0) for kind, zone, _ in offers])
    catalog = Catalog((small, large))
    pod = {"cpu": "1", "memory": "1Gi", "labels": {"app": "web"}, **rest}
    nodes = [
        node(f"n{zone}", "large", zone=zone, catalog=catalog, pods=[{"name": f"web-{zone}", **pod}])
        for zone in (Z1, Z2, Z3)
    ]
    return Scenario("", nodes=nodes, catalog=catalog)


def test_pods_that_are_spread_need_a_machine_in_the_dear_zone_too() -> None:
    assert lower_bound(_of(_zonal())).price == pytest.approx(0.3)
    assert lower_bound(_of(_zonal(spread=[spread({"app": "web"})]))).price == pytest.approx(0.6)


def test_spread_that_is_only_wished_for_does_not_count() -> None:
    wished = _zonal(spread=[spread({"app": "web"}, when="ScheduleAnyway")])
    assert lower_bound(_of(wished)).price == pytest.approx(0.3)


def test_with_a_larger_skew_fewer_pods_need_the_dear_zone() -> None:
    # Of three pods, two may be in either of the cheap zones.
    assert lower_bound(_of(_zonal(spread=[spread({"app": "web"}, max_skew=2)]))).price == pytest.approx(0.3)


def test_premiums_of_a_rule_that_cannot_be_relied_on_prove_nothing() -> None:
    problem = _of(_zonal(spread=[spread({"app": "web"})]))
    bound = lower_bound(problem)
    assert bound.price <= verify(problem, bound.proof)
    shaky = replace(problem, spreads=replace(problem.spreads, steady=np.zeros(1, dtype=np.bool_)))
    with pytest.raises(InvalidProofError, match="nobody knows how many pods"):
        verify(shaky, bound.proof)


def test_a_pod_that_counts_in_a_rule_and_does_not_obey_it_makes_it_shaky() -> None:
    scenario = _zonal(spread=[spread({"app": "web"})])
    other = node("other", "large", zone=Z1, catalog=scenario.catalog, pods=[{"name": "free", "labels": {"app": "web"}}])
    problem = _of(replace(scenario, nodes=[*scenario.nodes, other]))
    assert not problem.spreads.steady.any()


def test_pods_stay_where_others_are_that_they_belong_to_and_that_never_move() -> None:
    near = [affinity_to({"app": "web"}, key=ZONE)]
    pod = {"cpu": "1", "memory": "1Gi", "labels": {"app": "web"}, "near": near}
    for pinned, price in ((True, 9.0 + 0.4), (False, 0.2)):
        scenario = _zonal()
        kept = {"name": "kept", "annotations": {DO_NOT_DISRUPT: "true"} if pinned else {}, **pod}
        nodes = [
            node("a", "large", zone=Z3, catalog=scenario.catalog, pods=[kept, *(_filler() if pinned else ())]),
            node("b", "large", zone=Z3, catalog=scenario.catalog, pods=[{"name": "moves", **pod}]),
        ]
        problem = _of(replace(scenario, nodes=nodes))
        bound = lower_bound(problem, branches=0)
        assert bound.price == pytest.approx(price)
        assert bound.price <= verify(problem, bound.proof)


def _filler() -> list[dict[str, Any]]:
    """A pod that takes the rest of a large node."""
    return [{"name": "filler", "cpu": "14500m", "memory": "1Gi", "annotations": {DO_NOT_DISRUPT: "true"}}]
