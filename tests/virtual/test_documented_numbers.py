"""The tables of docs/simulation.md are what the scenarios say, and the seeds' claims about weights hold.

Only tables of one seed; `scripts/simulation-numbers --check` looks at those of twenty, too.
"""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from karpool.cli.simulate import BUNDLED

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "simulation-numbers"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = spec_from_loader("simulation_numbers", SourceFileLoader("simulation_numbers", str(SCRIPT)))
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def policies(script: ModuleType, name: str) -> Any:
    return script.document(name)["policies"]


def test_every_scenario_has_a_table(script: ModuleType) -> None:
    page = script.PAGE.read_text()
    assert set(script.ROWS) == set(BUNDLED)
    for name in BUNDLED:
        assert f"### {name}\n" in page
        assert f"<!-- simulate {name} -->\n| |" in page


@pytest.mark.parametrize("name", BUNDLED)
def test_the_table_is_what_the_scenario_says(script: ModuleType, name: str) -> None:
    page = script.PAGE.read_text()
    assert script.rewritten(page, lambda arguments: arguments == name) == page


def test_a_number_that_is_wrong_is_found(script: ModuleType) -> None:
    page = script.PAGE.read_text().replace("| nodes at the end | 5 | 1 |", "| nodes at the end | 5 | 2 |")
    assert script.rewritten(page, lambda arguments: arguments == "fallback") == script.PAGE.read_text()


# -- what scenarios are there to show ----------------------------------------------------------------------------


def test_after_the_peak_a_threshold_of_half_keeps_every_node(script: ModuleType) -> None:
    runs = policies(script, "off-hours")
    assert runs["autoscaler"]["nodesAtEnd"] == 40
    assert runs["autoscaler"]["evictions"] == 0
    assert runs["compactor"]["nodesAtEnd"] == 24
    assert runs["karpool"]["nodesAtEnd"] == 24
    assert runs["karpool"]["podsAtEnd"] == runs["autoscaler"]["podsAtEnd"] == 120


def test_a_grace_period_means_fewer_evictions_and_longer_lives_and_has_its_price(script: ModuleType) -> None:
    runs = policies(script, "churn")
    quick, calm = runs["after-30s"], runs["grace-30m"]
    assert calm["evictions"] < quick["evictions"] * 0.6
    assert calm["nodesLaunched"] < quick["nodesLaunched"] / 2
    assert calm["cost"] > quick["cost"]


def test_a_recorded_day_is_given_back_and_a_grace_period_calms_it(script: ModuleType) -> None:
    runs = policies(script, "workday")
    recorded, again, calm = (runs[name] for name in ("recorded", "as-recorded", "grace-30m"))
    assert again["cost"] == pytest.approx(recorded["cost"], rel=0.05)
    assert again["evictions"] == pytest.approx(recorded["evictions"], rel=0.2)
    asked = [numbers["podsAtEnd"] + numbers["pendingPodsAtEnd"] for numbers in (again, recorded)]
    assert asked[0] == asked[1]
    assert calm["evictions"] < again["evictions"] / 3
    assert again["cost"] < calm["cost"] < again["cost"] * 1.3


def test_tenants_are_combined_by_groups_and_hardly_in_one_list(script: ModuleType) -> None:
    runs = policies(script, "tenants")
    assert runs["partitioned"]["nodesAtEnd"] <= 0.6 * runs["one-list"]["nodesAtEnd"]
    assert runs["partitioned"]["cost"] < runs["one-list"]["cost"]


def test_without_a_floor_spot_pods_move_more_and_cost_less(script: ModuleType) -> None:
    runs = policies(script, "spot")
    off, wide, narrow = (runs[name] for name in ("no-spot-to-spot", "floor-15", "floor-1"))
    assert off["evictions"] <= wide["evictions"] < narrow["evictions"]
    assert narrow["cost"] < wide["cost"] <= off["cost"]


def test_weights_fill_what_is_reserved_and_make_expensive_pools_expensive(script: ModuleType) -> None:
    runs = policies(script, "weights")
    assert runs["reserved-first"]["cost"] < 0.7 * runs["reserved-last"]["cost"]
    assert runs["large-first"]["cost"] > 5 * runs["reserved-last"]["cost"]


# -- what is claimed about weights -------------------------------------------------------------------------------


def test_a_default_architecture_is_for_all_who_do_not_ask_for_another(script: ModuleType) -> None:
    runs = policies(script, "weights-architecture")
    assert runs["amd64-first"]["pools"]["any"]["podsAtEnd"] == 6
    assert runs["amd64-first"]["pools"]["default"]["podsAtEnd"] == 20
    assert runs["any-first"]["pools"]["default"]["nodeHours"] == 0


def test_on_demand_first_keeps_interruptions_from_those_who_did_not_ask_for_spot(script: ModuleType) -> None:
    runs = policies(script, "weights-capacity")
    assert runs["on-demand-first"]["pools"]["on-demand"]["podsAtEnd"] == 12
    assert runs["spot-first"]["pools"]["on-demand"]["nodeHours"] == 0
    assert runs["on-demand-first"]["interruptions"] < runs["spot-first"]["interruptions"] / 4
    assert runs["on-demand-first"]["cost"] > runs["spot-first"]["cost"]


def test_preferred_machines_come_first_and_others_stand_in(script: ModuleType) -> None:
    runs = policies(script, "weights-gpu")
    assert runs["backup-first"]["pools"]["p3"]["nodeHours"] == 0
    kept = runs["p3-first-and-kept"]
    assert (kept["pools"]["p3"]["podsAtEnd"], kept["pools"]["backup"]["podsAtEnd"]) == (4, 4)
    assert kept["failedLaunches"] > 0
    for numbers in runs.values():
        assert numbers["pendingPodsAtEnd"] == 0
        assert max(numbers["series"]["pendingPods"]) <= 8


def test_after_a_failed_launch_consolidation_does_not_leave_preferred_machines(script: ModuleType) -> None:
    runs = policies(script, "weights-gpu")
    assert runs["p3-first"]["pools"]["p3"]["nodesAtEnd"] == 1
    assert runs["p3-first"]["evictions"] == 0


def test_a_tainted_pool_that_is_asked_first_gets_those_who_tolerate_it_and_no_others(script: ModuleType) -> None:
    runs = policies(script, "weights-taints")
    assert runs["tainted-first"]["pools"]["tainted"]["podsAtEnd"] == 8
    assert runs["tainted-first"]["pools"]["fallback"]["podsAtEnd"] == 15
    assert runs["fallback-first"]["pools"]["tainted"]["nodeHours"] == 0
