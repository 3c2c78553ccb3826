"""When the steps of a plan could begin under rates: as early as each limit allows, one after the other."""

from datetime import datetime

from tests.disruption.brakes.test_rates import entry, limited, pool_with, scenario
from tests.disruption.scenarios import NOW, ago, node, pool_of

from karpool.disruption.brakes.ledger import COUNTED
from karpool.disruption.brakes.pace import Pace
from karpool.disruption.brakes.rates import NO_RATES, rates_left
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.model.objects import Objects


def begins(*steps: tuple[int, dict[str, int]], objects: Objects, **rates: int) -> list[datetime | None]:
    pace = Pace(rates_left(objects, BrakeSettings(**rates), NOW))
    return [pace.begin(nodes, pods) for nodes, pods in steps]


def test_steps_begin_as_what_went_before_them_is_an_hour_old() -> None:
    objects = Objects(node_pools=(pool_with(entry(at=ago(minutes=50), nodes=1)),))
    released = ago(minutes=50) + COUNTED
    assert begins((1, {}), (1, {}), (2, {}), (1, {}), objects=objects, most_nodes_per_hour=2) == [
        NOW,
        released,
        released + COUNTED,
        released + 2 * COUNTED,
    ]


def test_the_strictest_limit_counts_and_no_step_overtakes_another() -> None:
    objects = Objects(node_pools=(pool_of(),), namespaces=(limited("shop", "2"),))
    assert begins(
        (1, {"shop": 2}), (1, {"shop": 1}), (1, {"batch": 1}), objects=objects, most_evictions_per_hour=100
    ) == [NOW, NOW + COUNTED, NOW + COUNTED]


def test_without_rates_there_is_nothing_to_say() -> None:
    assert Pace(NO_RATES).begin(1, {}) is None


def test_what_never_fits_begins_at_no_time() -> None:
    assert begins((3, {}), objects=Objects(node_pools=(pool_of(),)), most_nodes_per_hour=2) == [None]


def test_a_plan_tells_of_each_step_when_it_can_begin() -> None:
    nodes = [node(f"n{number}") for number in range(3)]
    made = scenario(*nodes, pools=(pool_of(),), most_nodes_per_hour=1).plan(most_steps=None)
    assert [(step.command.nodes, step.begins) for step in made.steps] == [
        ((f"n{number}",), NOW + number * COUNTED) for number in range(3)
    ]
    assert [step.begins for step in scenario(*nodes, pools=(pool_of(),)).plan(most_steps=None).steps] == [None]
