"""A proof that no fleet is cheaper: what each pod is worth at least, and what each machine charges for its room.

Whatever pods are on a machine, they are worth no more than `rates` for all of its room, and beyond that what copies of
each item are worth above what they pay. If that is no more than the price of the machine, for every kind that can be
bought, then all pods together are worth no more than the price of all machines that hold them. Room on nodes that stay
is already paid for, so what it can hold is taken off; so is what a node that may go is worth above its price.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.items import Items, Machines, nodes_as_machines
from karpool.optimization.problem import FleetProblem

_ROUNDING: Final = 1e-12


class InvalidProofError(ValueError):
    """Duals that prove nothing: a kind is worth more than it costs, or a number makes no sense."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Duals of a fleet problem."""

    value: Array
    """(groups,) what one pod is worth, in $/h."""
    kind_rates: Array
    """(kinds, resources) what each kind charges for a unit of its room."""
    node_rates: Array
    """(nodes, resources) what each of today's nodes charges for a unit of its free room."""


def total(problem: FleetProblem, items: Items, value: Array, node_rates: Array, gain: Array) -> float:
    """The price that values and rates prove; `gain`: what kinds are worth above their price."""
    nodes = problem.nodes
    free = nodes_as_machines(problem, items).worth(items, value, node_rates)
    fixed = ~nodes.movable
    own = own_value(problem, value[items.of_group])
    kept = np.maximum(0.0, own + free - nodes.price)[nodes.movable]
    limited = np.isfinite(problem.kinds.most)
    bought = problem.kinds.most[limited] @ np.maximum(0.0, gain[limited])
    paid, needed = nodes.price[fixed].sum(), items.count @ value
    # Sums of floats are a hair off, and a bound must not be above what its proof shows in exact numbers.
    hair = _ROUNDING * (paid + needed + free.sum() + own.sum() + bought)
    return float(paid + needed - free[fixed].sum() - kept.sum() - bought - hair)


def own_value(problem: FleetProblem, value: Array) -> Array:
    """(nodes,) what the pods of each node that may go are worth together."""
    pods = problem.nodes.pods
    each = value[pods.items] * problem.nodes.pod_count
    return np.diff(np.concatenate(([0.0], np.cumsum(each)))[pods.start])


def repaired(problem: FleetProblem, items: Items, kinds: Machines, value: Array, rates: Array) -> tuple[Array, Array]:
    """Values and rates of kinds lowered as little as it takes for no kind to be worth more than it costs."""
    value, rates = value.copy(), np.maximum(0.0, rates)
    worth = kinds.worth(items, value, rates)
    limit = problem.kinds.price * (1.0 - _ROUNDING)
    for kind in np.flatnonzero(np.isinf(problem.kinds.most) & (worth > limit)).tolist():
        now = float(kinds.part(np.array([kind])).worth(items, value, rates[[kind]])[0])
        if now > limit[kind]:
            share = limit[kind] / now
            value[kinds.most[kind] > 0] *= share
            rates[kind] *= share
    return value, rates
