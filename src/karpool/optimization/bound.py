"""A lower bound: what any fleet costs at least that commands can reach from here.

Any fleet means: nodes that may not go stay, with what is free on them; nodes that may go stay with all of their pods,
or go; what is new is of one of the kinds; and every pod of a node that went has room on a machine that suits it. A
linear programme finds the duals. What counts is not its accuracy, but the `Proof` made of them, which anybody can
check.
"""

from dataclasses import dataclass

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.items import Items
from karpool.optimization.problem import FleetProblem
from karpool.optimization.proof import Proof, Worth, repaired, total
from karpool.optimization.relaxation import Duals, Relaxation


@dataclass(frozen=True, slots=True)
class Launches:
    """The fleet of the linear programme: a place to start a search from, with parts of nodes and of pods."""

    kinds: Array
    """(kinds,) how many of each kind."""
    group: Array
    """(entries,) pods of this group ..."""
    kind: Array
    """(entries,) ... on new nodes of this kind: ..."""
    pods: Array
    """(entries,) ... so many."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A price that no fleet is below, how it was found, and its proof."""

    price: float
    method: str
    proof: Proof
    launches: Launches


def lower_bound(problem: FleetProblem) -> Bound:
    """The price that no sequence of commands can bring a fleet below."""
    items = Items.of(problem)
    if not items.count.any():
        return _nothing_to_move(problem, items)
    relaxation = Relaxation(problem, items)
    duals = relaxation.solve()
    worth, rates, gain = repaired(problem, items, relaxation.kinds, duals.worth, duals.kind_rates)
    free = relaxation.nodes.worth(items, worth.value, worth.premium, duals.node_rates)
    price = total(problem, items, worth, free, gain)
    proof = worth.proof(problem, items, rates, duals.node_rates)
    return Bound(price, "LP", proof, _launches(problem, items, duals))


def _nothing_to_move(problem: FleetProblem, items: Items) -> Bound:
    """Only empty nodes may go, if any."""
    nothing = Worth(np.zeros(len(items.count)), np.zeros(items.spreading.least.shape))
    rates = np.zeros(problem.nodes.free.shape)
    zero = nothing.proof(problem, items, np.zeros(problem.kinds.room.shape), rates)
    empty = np.zeros(0, dtype=np.int64)
    nobody = Launches(np.zeros(len(problem.kinds.price)), empty, empty, np.zeros(0))
    price = total(problem, items, nothing, np.zeros(len(rates)), -problem.kinds.price)
    return Bound(price, "LP", zero, nobody)


def _launches(problem: FleetProblem, items: Items, duals: Duals) -> Launches:
    """The fleet of the programme by groups: the pods of an item are shared out by the number of each group."""
    demanded = problem.pods_of(np.flatnonzero(problem.nodes.movable))
    members = [np.flatnonzero((items.of_group == item) & (demanded > 0)) for item in range(len(items.count))]
    placed, kinds, pods = duals.placed
    lengths = [len(members[item]) for item in placed.tolist()]
    group = np.concatenate([members[item] for item in placed.tolist()]) if lengths else placed
    share = demanded[group] / np.repeat(items.count[placed], lengths)
    return Launches(duals.launched, group, np.repeat(kinds, lengths), np.repeat(pods, lengths) * share)
