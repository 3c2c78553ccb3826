"""What holds for sets of nodes whose pods are sent to places of somebody's choice, on any cluster."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.disruption.following import context, moody
from tests.disruption.test_scan import worst_price
from tests.examples import examples
from tests.packing.test_what_ifs import columns
from tests.strategies import ZONES, Cluster

from karpool.disruption.candidates.candidate import Candidate, price_of
from karpool.disruption.command import Command
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.evaluate import Evaluator
from karpool.disruption.settings import GLOBAL, DisruptionSettings
from karpool.model.labels import CAPACITY_TYPE, ON_DEMAND, SPOT, ZONE
from karpool.model.requirements import Requirements
from karpool.packing.directions import DirectedNode, Directions

ANY_NUMBER = 100
SETTLED = {ZONE: ZONES, CAPACITY_TYPE: (SPOT, ON_DEMAND)}


def new_node(held: DecisionContext, chance: Random) -> DirectedNode:
    """A node of some pool, with zone, capacity type and types settled, or not."""
    labels = {key: chance.choice(values) for key, values in SETTLED.items() if chance.random() < 0.5}
    names = [entry.name for entry in held.catalog.types]
    types = None if chance.random() < 0.5 else tuple(chance.sample(names, chance.randint(1, len(names))))
    return DirectedNode(chance.choice(sorted(held.policies.pools)), Requirements.of_labels(labels), types)


def directions(held: DecisionContext, candidates: list[Candidate], chance: Random) -> Directions:
    """Most pods of some nodes sent to a few nodes and new ones."""
    new_nodes = tuple(new_node(held, chance) for _ in range(chance.randint(1, 4)))
    leaving = {node.row for node in candidates}
    rows = [row for row in held.rows() if row not in leaving]
    places = [*chance.sample(rows, min(2, len(rows))), *(-2 - number for number in range(len(new_nodes)))]
    pods = [row for node in candidates for row in node.pods]
    return Directions(new_nodes, {row: chance.choice(places) for row in pods if chance.random() < 0.9})


def judged(held: DecisionContext, chance: Random) -> list[tuple[list[Candidate], Command]]:
    """Sets of nodes that can go as somebody wishes, and their commands."""
    evaluator = Evaluator(held)
    every = [held.candidate(row) for row in held.rows()]
    found = []
    for _ in range(4):
        candidates = chance.sample(every, min(len(every), chance.randint(1, 4)))
        wishes = directions(held, candidates, chance)
        command = evaluator.consolidate(candidates, ANY_NUMBER, directions=wishes).command
        if command is not None:
            found.append((candidates, command))
    return found


@pytest.mark.slow
@examples(60)
@given(moody(in_motion=True), st.randoms(use_true_random=False))
def test_new_nodes_are_cheaper_together_than_what_goes(
    given_: tuple[Cluster, DisruptionSettings], chance: Random
) -> None:
    held = context(*given_)
    untouched = columns(held.engine)
    for candidates, command in judged(held, chance):
        if command.replacements:
            assert worst_price(held, command) < price_of(candidates)
        assert {move.pod for move in command.moves} == {
            held.snapshot.pods.get(row).key for node in candidates for row in node.pods
        }
    assert columns(held.engine) == untouched


@pytest.mark.slow
@examples(60)
@given(moody(in_motion=True), st.randoms(use_true_random=False))
def test_a_command_judged_again_at_once_is_the_same(given_: tuple[Cluster, DisruptionSettings], chance: Random) -> None:
    cluster, settings = given_
    held = context(cluster, replace(settings, search=GLOBAL))
    for candidates, command in judged(held, chance):
        again = Evaluator(held).revalidate(command, candidates)
        assert isinstance(again, Command), again
        assert replace(again, moves=command.moves) == command
        assert places(held, again) == places(held, command)


def places(held: DecisionContext, command: Command) -> Counter[tuple[int, int, bool, str | int]]:
    """How many pods that are alike go where; which of them does not matter."""
    pods = held.snapshot.pods
    rows = [(pods.rows[move.pod], move.target) for move in command.moves]
    return Counter(
        (int(pods.class_of[row]), int(pods.labels_of[row]), held.exempt(pods.get(row)), target) for row, target in rows
    )
