"""A scan of many sets says no only where a closer look says no, and rests on the same things."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.disruption.test_properties import CALM, moody, situation
from tests.packing.test_what_ifs import columns
from tests.strategies import Cluster

from karpool.disruption.alone import entering
from karpool.disruption.evaluate import Evaluator, footprint_of
from karpool.disruption.settings import Settings
from karpool.disruption.situation import Situation, Standing


def sets_of(held: Situation, chance: Random) -> list[list[Standing]]:
    """Every node alone, and a few of them together."""
    every = [held.standing(row) for row in held.rows()]
    several = [chance.sample(every, min(len(every), chance.randint(2, 4))) for _ in range(4)] if every else []
    return [[one] for one in every] + several


@CALM
@given(moody(in_motion=True), st.randoms(use_true_random=False))
def test_a_set_that_is_passed_over_is_refused_when_looked_at_closely(
    given_: tuple[Cluster, Settings], chance: Random
) -> None:
    held = situation(*given_)
    evaluator, sets = Evaluator(held), sets_of(held, chance)
    look = evaluator.scan(sets)
    promising = set(look.promising())
    for number, standings in enumerate(sets):
        outcome = evaluator.consolidate(standings)
        assert number in promising or outcome.reason is not None
        assert footprint_of(look, number) == outcome.footprint


@CALM
@given(moody(in_motion=True), st.randoms(use_true_random=False))
def test_a_scan_leaves_every_array_as_it_was(given_: tuple[Cluster, Settings], chance: Random) -> None:
    held = situation(*given_)
    held.engine.refresh()
    untouched = columns(held.engine)
    list(Evaluator(held).scan(sets_of(held, chance)).promising())
    assert columns(held.engine) == untouched


@CALM
@given(moody(in_motion=True), st.randoms(use_true_random=False))
def test_a_look_in_between_changes_nothing(given_: tuple[Cluster, Settings], chance: Random) -> None:
    held = situation(*given_)
    evaluator, sets = Evaluator(held), sets_of(held, chance)
    undisturbed = list(evaluator.scan(sets).promising())
    disturbed = []
    for number in evaluator.scan(sets).promising():
        evaluator.consolidate(sets[number])
        disturbed.append(number)
    assert disturbed == undisturbed


def naively(held: Situation, row: int, number: int) -> bool:
    """Whether a node has room for a pod of a class at some level of its wishes."""
    classes, nodes, width = held.snapshot.classes, held.snapshot.nodes, len(held.snapshot.resources)
    while number >= 0:
        suited = held.snapshot.shapes.suits[classes.signature[number], nodes.shape[row]]
        if suited and (classes.requests[number, :width] <= nodes.free[row, :width]).all():
            return True
        number = int(classes.next[number])
    return False


@CALM
@given(moody(in_motion=True))
def test_a_class_enters_where_a_node_has_room_for_some_of_its_levels(given_: tuple[Cluster, Settings]) -> None:
    held = situation(*given_)
    for rows in ([], held.rows()[:1], held.rows()):
        expected = [any(naively(held, row, number) for row in rows) for number in range(held.snapshot.classes.size)]
        assert entering(held, rows).tolist() == expected
