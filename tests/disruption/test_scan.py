"""A scan of many sets says no only where a closer look says no, and rests on the same things."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.disruption.test_properties import context, moody
from tests.examples import examples
from tests.packing.test_what_ifs import columns
from tests.strategies import Cluster

from karpool.disruption.context import Candidate, DecisionContext
from karpool.disruption.evaluate import Evaluator, Footprint, footprint_of
from karpool.disruption.settings import DisruptionSettings
from karpool.disruption.single_node_refusals import entering
from karpool.packing.scan import Scan


def looks(held: DecisionContext, chance: Random) -> list[tuple[Scan, list[list[Candidate]]]]:
    """A scan of every node alone, and one of several prefixes of a list, each with the sets that it looks at."""
    evaluator = Evaluator(held)
    every = [held.candidate(row) for row in held.rows()]
    made = [(evaluator.scan(every), [[one] for one in every])]
    if every:
        listed = chance.sample(every, len(every))
        lengths = sorted({chance.randint(1, len(every)) for _ in range(4)}, reverse=True)
        made.append((evaluator.scan_prefixes(listed, lengths), [listed[:length] for length in lengths]))
    return made


@examples(30)
@given(moody(in_motion=True), st.randoms(use_true_random=False))
def test_a_set_that_is_passed_over_is_refused_when_looked_at_closely(
    given_: tuple[Cluster, DisruptionSettings], chance: Random
) -> None:
    held = context(*given_)
    evaluator = Evaluator(held)
    for look, sets in looks(held, chance):
        promising = set(look.promising())
        rests = Footprint(frozenset(), frozenset(), frozenset(), opened=False)
        for number, candidates in enumerate(sets):
            outcome = evaluator.consolidate(candidates)
            assert number in promising or outcome.reason is not None
            rests = Footprint(
                rests.nodes | outcome.footprint.nodes,
                rests.groups | outcome.footprint.groups,
                rests.classes | outcome.footprint.classes,
                rests.opened or outcome.footprint.opened,
            )
            assert footprint_of(look, number + 1) == rests


@examples(30)
@given(moody(in_motion=True), st.randoms(use_true_random=False))
def test_a_scan_leaves_every_array_as_it_was(given_: tuple[Cluster, DisruptionSettings], chance: Random) -> None:
    held = context(*given_)
    held.engine.refresh()
    untouched = columns(held.engine)
    for look, _ in looks(held, chance):
        list(look.promising())
    assert columns(held.engine) == untouched


@examples(30)
@given(moody(in_motion=True), st.randoms(use_true_random=False))
def test_a_look_in_between_changes_nothing(given_: tuple[Cluster, DisruptionSettings], chance: Random) -> None:
    held = context(*given_)
    evaluator, seed = Evaluator(held), chance.random()
    for (quiet, _), (look, sets) in zip(looks(held, Random(seed)), looks(held, Random(seed)), strict=True):
        undisturbed = list(quiet.promising())
        disturbed = []
        for number in look.promising():
            evaluator.consolidate(sets[number])
            disturbed.append(number)
        assert disturbed == undisturbed


def naively(held: DecisionContext, row: int, number: int) -> bool:
    """Whether a node has room for a pod of a class at some level of its wishes."""
    classes, nodes, width = held.snapshot.classes, held.snapshot.nodes, len(held.snapshot.resources)
    while number >= 0:
        suited = held.snapshot.shapes.suits[classes.signature[number], nodes.shape[row]]
        if suited and (classes.requests[number, :width] <= nodes.free[row, :width]).all():
            return True
        number = int(classes.next[number])
    return False


@examples(30)
@given(moody(in_motion=True))
def test_a_class_enters_where_a_node_has_room_for_some_of_its_levels(
    given_: tuple[Cluster, DisruptionSettings],
) -> None:
    held = context(*given_)
    for rows in ([], held.rows()[:1], held.rows()):
        expected = [any(naively(held, row, number) for row in rows) for number in range(held.snapshot.classes.size)]
        assert entering(held, rows).tolist() == expected
