"""A scan of many sets says no only where a closer look says no, and rests on the same things."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.disruption.following import context, moody
from tests.examples import examples
from tests.packing.test_what_ifs import columns
from tests.strategies import Cluster

from karpool.disruption.candidates.candidate import Candidate, price_of
from karpool.disruption.command import Command
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.evaluate import Evaluator, footprint_of
from karpool.disruption.methods.search import Proposal
from karpool.disruption.refusal_cache import Footprint, classes_with_room
from karpool.disruption.settings import DisruptionSettings
from karpool.packing.scan import Scan


def looks(held: DecisionContext, chance: Random, most: int = 1) -> list[tuple[Scan, list[list[Candidate]]]]:
    """A scan of every node alone, and one of several sets, each with the sets that it judges."""
    evaluator = Evaluator(held)
    every = [held.candidate(row) for row in held.rows()]
    made = [(evaluator.scan_single(every), [[candidate] for candidate in every])]
    if every:
        listed = chance.sample(every, len(every))
        sets = [listed[: chance.randint(1, len(every))] for _ in range(2)]
        sets += [chance.sample(every, chance.randint(1, len(every))) for _ in range(2)]
        made.append((evaluator.scan_sets([Proposal(members, most) for members in sets]), sets))
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
            rests = rests.union(outcome.footprint)
            assert footprint_of(look, number + 1) == rests


@examples(30)
@given(moody(in_motion=True), st.randoms(use_true_random=False), st.integers(2, 4))
def test_several_new_nodes_are_cheaper_together_and_no_such_set_is_passed_over(
    given_: tuple[Cluster, DisruptionSettings], chance: Random, most: int
) -> None:
    held = context(*given_)
    evaluator = Evaluator(held)
    for scan, sets in looks(held, chance, most)[1:]:
        promising = set(scan.promising())
        for number, candidates in enumerate(sets):
            outcome = evaluator.consolidate(candidates, most)
            assert number in promising or outcome.reason is not None
            if outcome.command is not None:
                assert len(outcome.command.replacements) <= most
                assert worst_price(held, outcome.command) < price_of(candidates)


def worst_price(held: DecisionContext, command: Command) -> float:
    """What the new nodes of a command cost together if each is launched where its types are most expensive."""
    names = held.engine.tables.pools.types.names.tolist()
    return sum(
        max(float(held.engine.worst_prices(new.requirements)[names.index(name)]) for name in new.instance_types)
        for new in command.replacements
    )


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
        assert classes_with_room(held.snapshot, rows).tolist() == expected
