"""Lower bounds of whole clusters: no plan ends below them."""

from dataclasses import replace

import pytest
from hypothesis import given
from tests.disruption.following import context, moody, planned
from tests.disruption.scenarios import CATALOG, NOW, Scenario, node, pool_of
from tests.examples import examples
from tests.factories import Z1, Z2, daemon_set, node_term
from tests.strategies import Cluster

from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.fleet import fleet_of
from karpool.disruption.fleet_bound import bounded_problem
from karpool.disruption.plan import context_of
from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import ZONE
from karpool.optimization.bound import lower_bound
from karpool.optimization.problem import FleetProblem
from karpool.optimization.verify import verify


def _problem(decision_pass: DecisionPass) -> FleetProblem:
    return bounded_problem(decision_pass, fleet_of(decision_pass))


def _of(scenario: Scenario) -> FleetProblem:
    made = context_of(scenario.objects, scenario.catalog, now=NOW, settings=scenario.settings, options=scenario.options)
    return _problem(DecisionPass(made))


@examples(30)
@given(moody(in_motion=True))
def test_no_plan_ends_below_the_bound(given_: tuple[Cluster, DisruptionSettings]) -> None:
    cluster, chosen = given_
    problem = _problem(DecisionPass(context(cluster, chosen)))
    bound = lower_bound(problem)
    assert bound.price <= verify(problem, bound.proof)
    for settings in (chosen, replace(chosen, spot_to_spot=True, spot_floor=1, eviction_price=0.0)):
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
