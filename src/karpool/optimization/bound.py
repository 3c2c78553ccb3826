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

from karpool.optimization.items import Items
from karpool.optimization.partition import Part, parts_of
from karpool.optimization.problem import FleetProblem
from karpool.optimization.proof import PodWorth, Proof, repaired, total
from karpool.optimization.relaxation import Relaxation

BRANCHES: Final = 200
_MOST_NODES: Final = 300
_MOST_COLUMNS: Final = 800


@dataclass(frozen=True, slots=True)
class PriceBound:
    """A price that no fleet is below, how it was found, and the proof of the linear programme.

    With whole machines (`method` is MIP) the price is higher than what the proof shows, and rests on the solver.
    """

    price: float
    method: str
    proof: Proof


def lower_bound(problem: FleetProblem, *, branches: int = BRANCHES) -> PriceBound:
    """The price that no sequence of commands can bring a fleet below.

    Small parts of small fleets are solved with whole machines, too; `branches` limits how far, 0 leaves that out.
    """
    if not branches or len(problem.nodes.price) > _MOST_NODES:
        return _bound(problem, 0)
    parts = parts_of(problem)
    return _joined(problem, parts, [_bound(part.problem, branches) for part in parts])


def _bound(problem: FleetProblem, branches: int) -> PriceBound:
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
    found = PriceBound(price, "LP", proof)
    whole = relaxation.whole(branches, _MOST_COLUMNS) if branches else None
    return found if whole is None or whole <= price else replace(found, price=whole, method="MIP")


def _joined(problem: FleetProblem, parts: Sequence[Part], bounds: Sequence[PriceBound]) -> PriceBound:
    """The bound of a fleet from those of its parts."""
    proof = Proof(
        value=np.zeros(len(problem.groups.signature)),
        premium=np.zeros(problem.spreads.present.shape),
        kind_rates=np.zeros(problem.kinds.room.shape),
        node_rates=np.zeros(problem.nodes.free.shape),
    )
    for part, bound in zip(parts, bounds, strict=True):
        proof.value[part.groups] = bound.proof.value
        proof.premium[part.rules] = bound.proof.premium
        proof.kind_rates[part.kinds] = bound.proof.kind_rates
        proof.node_rates[part.nodes] = bound.proof.node_rates
    method = "MIP" if any(bound.method == "MIP" for bound in bounds) else "LP"
    return PriceBound(sum(bound.price for bound in bounds), method, proof)


def _nothing_to_move(problem: FleetProblem, items: Items) -> PriceBound:
    """Only empty nodes may go, if any."""
    nothing = PodWorth(np.zeros(len(items.count)), np.zeros(items.spreading.least.shape))
    rates = np.zeros(problem.nodes.free.shape)
    zero = nothing.proof(problem, items, np.zeros(problem.kinds.room.shape), rates)
    price = total(problem, items, nothing, np.zeros(len(rates)), -problem.kinds.price)
    return PriceBound(price, "LP", zero)
