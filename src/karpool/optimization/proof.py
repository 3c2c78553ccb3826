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
from karpool.optimization.items import Items, Machines, in_domain
from karpool.optimization.problem import FleetProblem

_ROUNDING: Final = 1e-12


class InvalidProofError(ValueError):
    """Duals that prove nothing: a kind is worth more than it costs, or a number makes no sense."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Duals of a fleet problem."""

    value: Array
    """(groups,) what one pod is worth, in $/h."""
    premium: Array
    """(spread rules, domains) what pods that obey the rule are worth more in a domain; less, if below 0."""
    kind_rates: Array
    """(kinds, resources) what each kind charges for a unit of its room."""
    node_rates: Array
    """(nodes, resources) what each of today's nodes charges for a unit of its free room."""


@dataclass(frozen=True, slots=True)
class PodWorth:
    """What pods are worth, by item and by used spread rule."""

    value: Array
    premium: Array

    def proof(self, problem: FleetProblem, items: Items, kind_rates: Array, node_rates: Array) -> Proof:
        """The same by group and by rule, with what machines charge."""
        premium = np.zeros(problem.spreads.present.shape)
        premium[items.spreading.rules] = self.premium
        return Proof(self.value[items.of_group], premium, kind_rates, node_rates)


def total(problem: FleetProblem, items: Items, worth: PodWorth, free: Array, gain: Array) -> float:
    """The price that values prove; `free`: what free room on nodes is worth; `gain`: kinds, above their price."""
    nodes = problem.nodes
    fixed = ~nodes.movable
    own = _own_value(problem, items, worth)
    kept = np.maximum(0.0, own + free - nodes.price)[nodes.movable]
    limited = np.isfinite(problem.kinds.most)
    bought = problem.kinds.most[limited] @ np.maximum(0.0, gain[limited])
    spreading, premium = items.spreading, worth.premium
    spread = np.where(premium > 0, spreading.least, spreading.most) * premium
    paid, needed = nodes.price[fixed].sum(), items.count @ worth.value
    # Sums of floats are a hair off, and a bound must not be above what its proof shows in exact numbers.
    hair = _ROUNDING * (paid + needed + free.sum() + np.abs(own).sum() + bought + np.abs(spread).sum())
    return float(paid + needed + spread.sum() - free[fixed].sum() - kept.sum() - bought - hair)


def _own_value(problem: FleetProblem, items: Items, worth: PodWorth) -> Array:
    """(nodes,) what the pods of each node that may go are worth together."""
    nodes = problem.nodes
    item = items.of_group[nodes.pods.items]
    each = worth.value[item]
    spread = np.flatnonzero(items.rule[item] >= 0)
    if len(spread):
        of_entry = np.repeat(np.arange(len(nodes.price)), np.diff(nodes.pods.start))[spread]
        rule = items.rule[item[spread]]
        each[spread] += in_domain(worth.premium)[rule, nodes.domain[of_entry, items.spreading.key[rule]]]
    return np.diff(np.concatenate(([0.0], np.cumsum(each * nodes.pod_count)))[nodes.pods.start])


def repaired(
    problem: FleetProblem, items: Items, kinds: Machines, worth: PodWorth, rates: Array
) -> tuple[PodWorth, Array, Array]:
    """Values and rates lowered so little that no kind is worth more than it costs; and what each is worth above it."""
    value, premium, rates = worth.value.copy(), worth.premium.copy(), np.maximum(0.0, rates)
    limit = problem.kinds.price * (1.0 - _ROUNDING)
    found = kinds.worth(items, value, premium, rates)
    for kind in np.flatnonzero(np.isinf(problem.kinds.most) & (found > limit)).tolist():
        now = float(kinds.part(np.array([kind])).worth(items, value, premium, rates[[kind]])[0])
        if now > limit[kind]:
            share = limit[kind] / now
            there = np.flatnonzero(kinds.most[kind] > 0)
            rules = np.unique(items.rule[there])
            # Items that share a rule share its premiums.
            value[np.union1d(there, np.flatnonzero(np.isin(items.rule, rules[rules >= 0])))] *= share
            premium[rules[rules >= 0]] *= share
            rates[kind] *= share
    gain = kinds.worth(items, value, premium, rates) - problem.kinds.price
    return PodWorth(value, premium), rates, gain
