"""What those who watch a plan being made are told."""

from tests.disruption.scenarios import CATALOG, NOW, cluster, node, pool_of

from karpool.disruption.context import DecisionContext
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.plan import Planner, context_of
from karpool.disruption.settings import DisruptionSettings
from karpool.packing.options import Options

Told = list[tuple[str, int, int | None]]


def context() -> DecisionContext:
    objects = cluster([node("a", "huge", pods=[{"cpu": 1}]), node("b", "large", pods=[{"cpu": 6}])], pools=[pool_of()])
    return context_of(objects, CATALOG, now=NOW, settings=DisruptionSettings(effort=0), options=Options())


def planner(told: Told) -> Planner:
    return Planner(context(), lambda what, done, most: told.append((what, done, most)))


def test_a_plan_tells_its_phases() -> None:
    told: Told = []
    planner(told).plan(bound=True)
    phases = list(dict.fromkeys(what.partition(":")[0] for what, _, _ in told))
    assert phases[0] == "Proving the least possible price"
    assert {"Searching", "Planning steps", "Looking for step 2"} <= set(phases)
    assert phases[-1] == "Asking why nodes stay"


def test_a_search_tells_its_price_and_the_bound() -> None:
    told: Told = []
    made = planner(told)
    bound = made.plan(0, bound=True).lower_bound
    assert bound is not None
    DecisionPass(made.context, progress=made.report).searching(500, 2000, 1234.5)
    assert told[-1] == (f"Searching: 1,234.50 $/h, bound {bound.price:.2f} $/h", 500, 2000)


def test_a_search_without_a_bound_tells_its_price() -> None:
    told: Told = []
    made = planner(told)
    DecisionPass(made.context, progress=made.report).searching(500, 2000, 0.5)
    assert told == [("Searching: 0.50 $/h", 500, 2000)]


def test_nobody_needs_to_watch() -> None:
    told: Told = []
    watched, unwatched = planner(told).plan(), Planner(context()).plan()
    assert any(what.startswith("Searching: ") for what, _, _ in told)
    assert unwatched.steps
    assert [step.command.nodes for step in unwatched.steps] == [step.command.nodes for step in watched.steps]
