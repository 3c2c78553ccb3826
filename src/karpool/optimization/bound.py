"""A lower bound: what any fleet costs at least that commands can reach from here.

Any fleet means: nodes that may not go stay, with what is free on them; nodes that may go stay with all of their pods,
or go; what is new is of one of the kinds; and every pod of a node that went has room on a machine that suits it. A
linear programme finds the duals. What counts is not its accuracy, but the `Proof` made of them, which anybody can
check.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.items import Items
from karpool.optimization.partition import Part, parts_of
from karpool.optimization.problem import FleetProblem
from karpool.optimization.proof import Proof, Worth, repaired, total
from karpool.optimization.relaxation import Duals, Relaxation

BRANCHES: Final = 200
_MOST_NODES: Final = 300
_MOST_COLUMNS: Final = 800


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
    """A price that no fleet is below, how it was found, and the proof of the linear programme.

    With whole machines (`method` is MIP) the price is higher than what the proof shows, and rests on the solver.
    """

    price: float
    method: str
    proof: Proof
    launches: Launches


def lower_bound(problem: FleetProblem, *, branches: int = BRANCHES) -> Bound:
    """The price that no sequence of commands can bring a fleet below.

    Small parts of small fleets are solved with whole machines, too; `branches` limits how far, 0 leaves that out.
    """
    if not branches or len(problem.nodes.price) > _MOST_NODES:
        return _bound(problem, 0)
    parts = parts_of(problem)
    return _joined(problem, parts, [_bound(part.problem, branches) for part in parts])


def _bound(problem: FleetProblem, branches: int) -> Bound:
    """The bound of one part."""
    items = Items.of(problem)
    if not items.count.any():
        return _nothing_to_move(problem, items)
    relaxation = Relaxation(problem, items)
    duals = relaxation.solve()
    worth, rates, gain = repaired(problem, items, relaxation.kinds, duals.worth, duals.kind_rates)
    free = relaxation.nodes.worth(items, worth.value, worth.premium, duals.node_rates)
    price = total(problem, items, worth, free, gain)
    proof = worth.proof(problem, items, rates, duals.node_rates)
    found = Bound(price, "LP", proof, _launches(problem, items, duals))
    whole = relaxation.whole(branches, _MOST_COLUMNS) if branches else None
    return found if whole is None or whole <= price else replace(found, price=whole, method="MIP")


def _joined(problem: FleetProblem, parts: Sequence[Part], bounds: Sequence[Bound]) -> Bound:
    """The bound of a fleet from those of its parts."""
    proof = Proof(
        value=np.zeros(len(problem.groups.signature)),
        premium=np.zeros(problem.spreads.present.shape),
        kind_rates=np.zeros(problem.kinds.room.shape),
        node_rates=np.zeros(problem.nodes.free.shape),
    )
    kinds = np.zeros(len(problem.kinds.price))
    for part, bound in zip(parts, bounds, strict=True):
        proof.value[part.groups] = bound.proof.value
        proof.premium[part.rules] = bound.proof.premium
        proof.kind_rates[part.kinds] = bound.proof.kind_rates
        proof.node_rates[part.nodes] = bound.proof.node_rates
        kinds[part.kinds] = bound.launches.kinds
    pairs = [(part, bound.launches) for part, bound in zip(parts, bounds, strict=True)]
    launches = Launches(
        kinds=kinds,
        group=np.concatenate([part.groups[launched.group] for part, launched in pairs]),
        kind=np.concatenate([part.kinds[launched.kind] for part, launched in pairs]),
        pods=np.concatenate([launched.pods for _, launched in pairs]),
    )
    method = "MIP" if any(bound.method == "MIP" for bound in bounds) else "LP"
    return Bound(sum(bound.price for bound in bounds), method, proof, launches)


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
