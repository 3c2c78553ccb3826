"""Which settings are hopeless, and which are on the front."""

from tests.tables import row, table

from karpool.sweep.points import Point, hopeless, waiting_share, with_front
from karpool.sweep.trial import TrialResult
from karpool.virtual.statistics import Estimate


def point(number: int, cost: float, evictions: float, *, waiting: float = 0.0, stopped: bool = False) -> Point:
    estimates = {"cost": Estimate(cost, None, None), "evictions": Estimate(evictions, None, None)}
    return Point(number, (("consolidateAfter", f"{number}m"),), 1, estimates, waiting, stopped=stopped)


def on_front(*points: Point) -> list[int]:
    return [judged.number for judged in with_front(points) if judged.on_front]


def test_the_front_has_what_no_other_beats() -> None:
    assert on_front(point(1, 10, 50), point(2, 12, 20), point(3, 12, 30), point(4, 15, 5), point(5, 16, 5)) == [1, 2, 4]


def test_of_equal_settings_the_first_is_on_the_front() -> None:
    assert on_front(point(1, 10, 5), point(2, 10, 5)) == [1]


def test_savings_from_pods_without_nodes_are_none() -> None:
    points = with_front([point(1, 10, 5), point(2, 3, 0, waiting=0.2)])
    assert [(judged.on_front, judged.waits) for judged in points] == [(True, False), (False, True)]


def test_what_was_stopped_is_not_on_the_front_even_where_its_few_seeds_were_lucky() -> None:
    assert on_front(point(1, 10, 5), point(2, 9, 4, stopped=True)) == [1]


@table(
    row("dearer on every seed", cost=[11.0, 12.1, 12.9], evictions=[5, 6, 7], lost=True),
    row("more evictions on every seed", cost=[10.0, 11.0, 12.0], evictions=[15, 16, 18], lost=True),
    row("dearer, and fewer evictions", cost=[11.0, 12.0, 13.0], evictions=[1, 2, 3], lost=False),
    row("the same", cost=[10.0, 11.0, 12.0], evictions=[5, 6, 7], lost=False),
    row("dearer on some seeds only", cost=[14.0, 9.0, 12.5], evictions=[5, 6, 7], lost=False),
    row("one seed says nothing", cost=[20.0], evictions=[50], lost=False),
)
def test_a_setting_is_hopeless_if_another_is_certainly_better(
    cost: list[float], evictions: list[float], *, lost: bool
) -> None:
    other = {"cost": [10.0, 11.0, 12.0], "evictions": [5.0, 6.0, 7.0]}
    assert hopeless({"cost": cost, "evictions": evictions}, [other]) is lost


def test_pods_that_wait_are_measured_by_the_time_of_all_pods() -> None:
    result = TrialResult(
        cost=1.0,
        evictions=0,
        pending_pod_seconds=360.0,
        nodes_launched=1,
        node_hours=1.0,
        pods_at_end=10,
        pending_pods_at_end=0,
        unpriced_node_hours=0.0,
        seconds=3600.0,
    )
    assert waiting_share([[result], [result]]) == 0.01
