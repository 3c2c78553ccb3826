"""Finding places for waiting pods: first in the room that there is, then on new machines."""

from typing import NamedTuple

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.kernels.random import uniform
from karpool.optimization.kernels.state import (
    CLOSED,
    Fixed,
    State,
    accepts,
    close_new,
    open_new,
    put,
    retype,
    suits,
)
from karpool.optimization.problem import SPREAD
from karpool.packing.kernels import inlined, inner

_BLINK = 0.02
"""How often a good place is overlooked, so that not every recreation is the same."""
_KINDS_TRIED = 24.0
_MUCH = 4.0
"""Beyond so many usual machines, more room makes no difference."""
_NOISE = 0.2
"""How much less than it is a kind may seem worth."""
_ONE_FOR_ALL = 0.2
"""How often one new machine for everything is tried first."""


class Scratch(NamedTuple):
    """Room to work in."""

    order: Array
    """(groups,) waiting groups in the order in which they are placed."""
    rank: Array
    """(groups,) float64."""
    weights: Array
    """(resources,) float64: what counts how much, drawn for each move."""
    scale: Array
    """(resources,) the same for one unit of a resource."""
    arena: Array
    """(machines,) the machines that take part in a move."""
    stamp: Array
    """(machines,) the move in which a machine last came into the arena."""
    left: Array
    """(resources,) what is left of a machine that is only thought of."""
    asked: Array
    """(resources,) what all waiting pods ask for together."""
    blocked: Array
    """(kinds,) whether a kind has turned out to be of no use in this move."""
    needed: Array
    """(groups,) how many pods a node that comes back misses."""


@inlined
def order_waiting(fixed: Fixed, state: State, scratch: Scratch, random: Array) -> int:
    """The waiting groups, large and valuable ones first, by randomly weighted size."""
    for resource in range(len(scratch.weights)):
        scratch.weights[resource] = 0.2 + uniform(random)
        scratch.scale[resource] = scratch.weights[resource] / fixed.unit[resource]
    power = 2.0 * uniform(random)
    count = 0
    for group in range(len(state.waiting)):
        if state.waiting[group] > 0:
            size = 1e-9
            for resource in range(len(scratch.weights)):
                size += scratch.weights[resource] * fixed.size[group, resource]
            scratch.order[count] = group
            scratch.rank[count] = -size * (1e-9 + fixed.value[group] / size) ** power
            count += 1
    sorted_places = np.argsort(scratch.rank[:count])
    ordered = scratch.order[:count][sorted_places]
    scratch.order[:count] = ordered
    return count


@inlined
def still_waiting(state: State, scratch: Scratch, count: int) -> int:
    """Leave out groups that all have a place, in the same order; how many are left."""
    kept = 0
    for at in range(count):
        group = scratch.order[at]
        if state.waiting[group] > 0:
            scratch.order[kept] = group
            kept += 1
    return kept


@inlined
def fill(fixed: Fixed, state: State, group: int, machine: int) -> int:
    """As many waiting pods of a group as a machine accepts; how many came."""
    came = 0
    while state.waiting[group] > 0 and accepts(fixed, state, group, machine):
        put(fixed, state, group, machine)
        came += 1
    return came


@inlined
def has_room(fixed: Fixed, state: State, group: int, machine: int) -> bool:
    """Whether one more pod of a group fits into what is free."""
    for resource in range(state.free.shape[1]):
        if state.free[machine, resource] < fixed.requests[group, resource] and fixed.requests[group, resource] > 0:
            return False
    return True


@inlined
def best_fit(fixed: Fixed, state: State, scratch: Scratch, random: Array, group: int, machines: int) -> int:
    """The machine of the arena that would have the least room left, -1 if none accepts a pod."""
    best, least = -1, np.inf
    for at in range(machines):
        machine = scratch.arena[at]
        if not has_room(fixed, state, group, machine):
            continue
        left = 0.0
        for resource in range(len(scratch.weights)):
            left += min(scratch.scale[resource] * state.free[machine, resource], _MUCH)
        if left >= least or not suits(fixed, state, group, machine):
            continue
        if accepts(fixed, state, group, machine) and uniform(random) >= _BLINK:
            best, least = machine, left
    return best


@inlined
def leave_full_ones(fixed: Fixed, state: State, scratch: Scratch, count: int, machines: int) -> int:
    """Take machines out of the arena that have no room for any waiting pod; how many are left."""
    for resource in range(len(scratch.left)):
        scratch.left[resource] = fixed.requests[scratch.order[0], resource] if count > 0 else 0
        for at in range(1, count):
            scratch.left[resource] = min(scratch.left[resource], fixed.requests[scratch.order[at], resource])
    kept = 0
    for at in range(machines):
        machine = scratch.arena[at]
        fits = True
        for resource in range(len(scratch.left)):
            if scratch.left[resource] > 0 and state.free[machine, resource] < scratch.left[resource]:
                fits = False
                break
        if fits:
            scratch.arena[kept] = machine
            kept += 1
    return kept


@inlined
def use_room(fixed: Fixed, state: State, scratch: Scratch, random: Array, count: int, machines: int) -> None:
    """Place waiting pods where there is room."""
    machines = leave_full_ones(fixed, state, scratch, count, machines)
    for at in range(count):
        group = scratch.order[at]
        while state.waiting[group] > 0:
            machine = best_fit(fixed, state, scratch, random, group, machines)
            if machine < 0:
                break
            fill(fixed, state, group, machine)


@inlined
def share_of_domain(fixed: Fixed, state: State, group: int, kind: int) -> int:
    """How many pods of a group rules will let come to the domains of a kind, when all waiting pods are placed."""
    share = 1 << 30
    for at in range(fixed.owned_start[group], fixed.owned_start[group + 1]):
        rule = fixed.owned_rule[at]
        domain = fixed.kind_domain[kind, fixed.rule_key[rule]]
        if domain < 0:
            return 0
        if fixed.rule_mode[rule] == SPREAD:
            total, eligible = state.waiting_in_rule[rule], 0
            for other in range(state.in_domain.shape[1]):
                if fixed.rule_eligible[rule, other]:
                    total += state.in_domain[rule, other]
                    eligible += 1
            level = -(-total // max(eligible, 1)) + fixed.rule_skew[rule] - 1
            share = min(share, level - state.in_domain[rule, domain])
    return max(share, 0)


@inlined
def worth_per_dollar(fixed: Fixed, state: State, scratch: Scratch, count: int, kind: int) -> float:
    """The value of the waiting pods that a new machine of a kind would hold, for each $/h of its price."""
    pool = fixed.kind_pool[kind]
    resources = len(scratch.left)
    for resource in range(resources):
        if fixed.kind_capacity[kind, resource] > state.pool_left[pool, resource]:
            return 0.0
        scratch.left[resource] = fixed.room[kind, resource]
    worth = 0.0
    for at in range(count):
        group = scratch.order[at]
        if fixed.kind_usable[fixed.signature[group], kind] == 0:
            continue
        copies = min(state.waiting[group], fixed.copies[group])
        for resource in range(resources):
            asked = fixed.requests[group, resource]
            if asked > 0 and copies * asked > scratch.left[resource]:
                copies = scratch.left[resource] // asked
                if copies == 0:
                    break
        if copies > 0 and fixed.owned_start[group] < fixed.owned_start[group + 1]:
            copies = min(copies, share_of_domain(fixed, state, group, kind))
        if copies > 0:
            worth += copies * fixed.value[group]
            for resource in range(resources):
                scratch.left[resource] -= copies * fixed.requests[group, resource]
    return worth / max(fixed.kind_price[kind], 1e-6)


@inlined
def best_kind(fixed: Fixed, state: State, scratch: Scratch, random: Array, count: int) -> int:
    """The kind of new machine that gives most for its price, among those that the first waiting pods may use."""
    signature = fixed.signature[scratch.order[0]]
    first, last = fixed.kinds_start[signature], fixed.kinds_start[signature + 1]
    share = _KINDS_TRIED / max(last - first, 1)
    best, most = -1, 0.0
    for _ in range(2):
        for number in range(first, last):
            kind = fixed.kinds_listed[number]
            if scratch.blocked[kind] == 0 and uniform(random) < share:
                worth = worth_per_dollar(fixed, state, scratch, count, kind) * (1.0 - _NOISE * uniform(random))
                if worth > most:
                    best, most = kind, worth
        if best >= 0 or share >= 1.0:
            break
        share = 1.0
    return best


@inner
def free_place(fixed: Fixed, state: State) -> int:
    """A place for a new machine, -1 if all are used."""
    for machine in range(len(fixed.node_price), len(state.kind)):
        if state.kind[machine] == CLOSED:
            return machine
    return -1


@inlined
def holds_guests(fixed: Fixed, state: State, machine: int, kind: int) -> bool:
    """Whether a new machine could be of another kind, with the guests that it has."""
    before = state.kind[machine]
    pool = fixed.kind_pool[kind]
    for resource in range(state.free.shape[1]):
        used = fixed.room[before, resource] - state.free[machine, resource]
        if used > 0 and used > fixed.room[kind, resource]:
            return False
        left = state.pool_left[pool, resource]
        if fixed.kind_pool[before] == pool:
            left += fixed.kind_capacity[before, resource]
        if fixed.kind_capacity[kind, resource] > left:
            return False
    for slot in range(state.guests[machine]):
        group = state.guest_group[machine, slot]
        if fixed.kind_usable[fixed.signature[group], kind] == 0:
            return False
        # A rule about domains was looked at for the kind that the machine has.
        if fixed.owned_start[group] < fixed.owned_start[group + 1] or (
            fixed.counts_start[group] < fixed.counts_start[group + 1]
        ):
            for key in range(fixed.kind_domain.shape[1]):
                if fixed.kind_domain[kind, key] != fixed.kind_domain[before, key]:
                    return False
    return True


@inner
def shrink(fixed: Fixed, state: State, machine: int) -> None:
    """Make a new machine the cheapest kind that holds its guests."""
    best, price = -1, fixed.kind_price[state.kind[machine]] - 1e-9
    for kind in range(len(fixed.kind_price)):
        if fixed.kind_price[kind] < price and holds_guests(fixed, state, machine, kind):
            best, price = kind, fixed.kind_price[kind]
    if best >= 0:
        retype(fixed, state, machine, best)


@inlined
def one_for_all(fixed: Fixed, state: State, scratch: Scratch, count: int) -> int:
    """The cheapest kind that would hold all waiting pods, as far as their size goes; -1 if none does."""
    best, price = -1, np.inf
    scratch.asked[:] = 0
    for at in range(count):
        group = scratch.order[at]
        for resource in range(len(scratch.asked)):
            scratch.asked[resource] += state.waiting[group] * fixed.requests[group, resource]
    for kind in range(len(fixed.kind_price)):
        if fixed.kind_price[kind] >= price:
            continue
        fits = True
        for resource in range(len(scratch.asked)):
            if scratch.asked[resource] > fixed.room[kind, resource]:
                fits = False
                break
        if not fits:
            continue
        for at in range(count):
            if fixed.kind_usable[fixed.signature[scratch.order[at]], kind] == 0:
                fits = False
                break
        if fits and worth_per_dollar(fixed, state, scratch, count, kind) > 0.0:
            best, price = kind, fixed.kind_price[kind]
    return best


@inlined
def buy(fixed: Fixed, state: State, scratch: Scratch, random: Array, count: int) -> bool:
    """Place all waiting pods on new machines; whether that was possible."""
    scratch.blocked[:] = 0
    together = uniform(random) < _ONE_FOR_ALL
    while True:
        count = still_waiting(state, scratch, count)
        if count == 0:
            return True
        kind = one_for_all(fixed, state, scratch, count) if together else -1
        together = False
        if kind < 0:
            kind = best_kind(fixed, state, scratch, random, count)
        machine = free_place(fixed, state)
        if kind < 0 or machine < 0:
            return False
        open_new(fixed, state, machine, kind)
        came = 0
        for at in range(count):
            group = scratch.order[at]
            if suits(fixed, state, group, machine):
                came += fill(fixed, state, group, machine)
        if came == 0:
            close_new(fixed, state, machine)
            scratch.blocked[kind] = 1
        else:
            shrink(fixed, state, machine)


@inlined
def recreate(fixed: Fixed, state: State, scratch: Scratch, random: Array, machines: int) -> bool:
    """Find a place for everything that waits; whether everything has one."""
    count = order_waiting(fixed, state, scratch, random)
    use_room(fixed, state, scratch, random, count, machines)
    return buy(fixed, state, scratch, random, count)
