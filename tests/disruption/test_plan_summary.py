from tests.disruption.scenarios import Scenario, node

from karpool.disruption.command import Cause, Command, Method, Move
from karpool.disruption.fleet_search.plan_summary import CurvePoint, curve_of


def command(saved: float, *moves: Move, ended: tuple[str, ...] = ()) -> Command:
    return Command(Method.SINGLE_NODE, Cause.UNDERUTILIZED, ("n",), moves=moves, price=saved, ended=ended)


def test_a_curve_counts_pods_that_run_and_are_evicted() -> None:
    moves = (
        Move("a/runs", "n", "m"),
        Move("a/pending", None, "m"),
        Move("a/leaves-anyway", "n", "m", leaving=True),
        Move("a/runs-too", "n", 0),
    )
    points = curve_of(1.0, [command(0.25), command(0.5, *moves, ended=("a/pinned",))])
    assert points == (CurvePoint(0, 1.0), CurvePoint(0, 0.75), CurvePoint(3, 0.25))


def test_the_curve_of_a_plan_ends_at_its_price() -> None:
    nodes = [node(name, "huge", pods=[{"cpu": 1}]) for name in "abc"]
    made = Scenario("curve", nodes=nodes).plan(None)
    assert [point.evictions for point in made.curve] == [0, 3]
    assert made.curve[0].price == made.before.price
    assert round(made.curve[-1].price, 9) == round(made.after.price, 9)
    assert made.lower_bound is None
