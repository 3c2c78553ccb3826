import pytest
from tests.packing import placing, twin
from tests.packing.scenarios import Engine, Scenario
from tests.packing.scenarios_nodes import NODE_SCENARIOS
from tests.packing.scenarios_pools import POOL_SCENARIOS
from tests.packing.scenarios_topology import TOPOLOGY

ENGINES = [placing.place, twin.place]
SCENARIOS = [*POOL_SCENARIOS, *NODE_SCENARIOS, *TOPOLOGY]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.__module__.rpartition(".")[2])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_pods_find_the_places_they_should(scenario: Scenario, engine: Engine) -> None:
    scenario.verify(scenario.ask(engine))


def test_every_scenario_has_a_name_of_its_own() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
