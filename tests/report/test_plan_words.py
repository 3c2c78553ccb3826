from msgspec.structs import replace
from tests.report import samples
from tests.tables import row, table

from karpool.report.plans.document import CurvePart, PlanDocument, Savings
from karpool.report.plans.forecast_document import ForecastCounts, ForecastPart
from karpool.report.plans.plan_words import (
    bound_words,
    curve_words,
    forecast_words,
    nothing_words,
    plan_words,
    price_row,
    unpriced_words,
)


def with_curve(*points: tuple[int, float | None]) -> PlanDocument:
    """A plan whose curve goes through these pairs of evictions and prices."""
    plan, _ = samples.small()
    curve = [
        CurvePart(step=at, evictions=evictions, price_per_hour=price) for at, (evictions, price) in enumerate(points)
    ]
    return replace(plan, curve=tuple(curve))


@table(
    row(points=[(0, 10.0), (4, 8.0), (8, 6.0)], words="The first 4 of 8 evictions (step 1) bring 50 % of the savings."),
    row(
        points=[(0, 10.0), (0, 9.0), (3, 7.0), (9, 6.0)],
        words="The first 3 of 9 evictions (steps 1 to 2) bring 75 % of the savings.",
    ),
    row(
        points=[(0, 10.0), (3, 7.0), (3, 6.5), (9, 6.0)],
        words="The first 3 of 9 evictions (steps 1 to 2) bring 88 % of the savings.",
    ),
    row(points=[(0, 10.0), (8, 6.0)], words=""),
    row(points=[(0, 10.0), (0, 6.0)], words=""),
    row(points=[(0, 10.0), (4, 11.0), (8, 12.0)], words=""),
    row(points=[(0, 10.0)], words=""),
    row(points=[(0, None), (4, None), (8, None)], words=""),
    row(points=[], words=""),
)
def test_half_of_the_evictions_save(points: list[tuple[int, float | None]], words: str) -> None:
    assert curve_words(with_curve(*points)) == words


def test_what_half_saves_of_an_unknown_saving_is_not_said() -> None:
    plan = with_curve((0, 10.0), (4, 8.0), (8, 6.0))
    assert curve_words(replace(plan, savings=Savings(price_per_hour=None, percent=None))) == ""


def test_who_can_name_prices_is_told_where_some_are_unknown() -> None:
    plan, _ = samples.small()
    assert unpriced_words(plan) == (
        "1 node of unknown price not counted; --catalog FILE or --price names prices of types."
    )
    known = replace(plan, before=replace(plan.before, unpriced_nodes=0), after=replace(plan.after, unpriced_nodes=0))
    assert unpriced_words(known) == ""


def test_what_is_known_of_a_saving_is_told_even_if_the_rest_is_not() -> None:
    plan, _ = samples.small()
    partial = replace(
        plan,
        before=replace(plan.before, price_per_hour=0.676, unpriced_nodes=3),
        after=replace(plan.after, price_per_hour=0.1897, unpriced_nodes=1),
        savings=Savings(price_per_hour=None, percent=None, known_per_hour=0.4863),
    )
    said = ("0.6760 $/h + ?", "0.1897 $/h + ?", "0.4863 $/h + ? (? %)", "355 $/month + ?")
    assert price_row(partial) == said
    unknown = replace(partial, savings=Savings(price_per_hour=None, percent=None))
    assert price_row(unknown)[2:] == ("? $/h (? %)", "? $/month")


def test_of_no_nodes_nobody_says_why_they_stay() -> None:
    plan, _ = samples.small()
    assert "why each node stays" in nothing_words(plan)
    empty = replace(plan, nodes=(), unschedulable=())
    assert nothing_words(empty) == "There are no nodes, so there is nothing to plan."


def test_a_plan_that_ends_at_the_bound_says_so() -> None:
    bound = replace(samples.least(), distance_percent=0.04, blockers=())
    assert bound_words(bound) == "This is the least possible (2.00 $/h)."


def test_a_bound_of_nothing_has_no_distance() -> None:
    bound = replace(samples.least(), price_per_hour=0.0, distance_percent=None)
    assert bound_words(bound) == "The least possible is 0.00 $/h."


def test_blockers_that_cost_next_to_nothing_are_not_named() -> None:
    cheap = tuple(replace(blocker, price_per_hour=0.001) for blocker in samples.least().blockers)
    assert bound_words(replace(samples.least(), blockers=cheap)) == "Within 2.1 % of the least possible (2.00 $/h)."


def test_without_a_bound_nothing_is_said_of_one() -> None:
    assert plan_words(with_curve((0, 1.0))) == ()


def counts(price: float | None, evictions: int | None, launches: int | None) -> ForecastCounts:
    return ForecastCounts(price_per_hour=price, evictions=evictions, launches=launches)


def test_what_is_expected_stands_beside_what_is_planned() -> None:
    part = ForecastPart(
        scheduler="LeastAllocated", foreseen=False, planned=counts(29.24, 809, 56), expected=counts(31.25, 1929, 1)
    )
    chosen = "Once kube-scheduler chooses places (LeastAllocated)"
    words = "about 31.25 $/h, 1,929 evictions, 1 launch; the plan has 29.24 $/h, 809 and 56."
    assert forecast_words(part) == f"{chosen}: {words}"
    unpriced = replace(part, planned=counts(None, 1, 0), expected=counts(None, 1, 0))
    assert forecast_words(unpriced) == f"{chosen}: about ? $/h, 1 eviction, 0 launches; the plan has ? $/h, 1 and 0."


def test_what_nobody_asked_for_or_can_be_chosen_is_not_forecast() -> None:
    assert forecast_words(None) == ""
    nothing = counts(1.0, 0, 0)
    assert (
        forecast_words(ForecastPart(scheduler="MostAllocated", foreseen=True, planned=nothing, expected=nothing)) == ""
    )
