"""Going on with a target: what was to go goes, what was to come comes, and pods are placed again."""

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.kernels.recreate import Scratch, recreate, shrink
from karpool.optimization.kernels.ruin import Best, is_used, remember
from karpool.optimization.kernels.state import (
    CLOSED,
    Fixed,
    State,
    accepts,
    close_new,
    go,
    open_new,
    put,
    suits,
    undo,
)
from karpool.packing.kernels import compiled, inner
from karpool.packing.kernels.borrowed import borrowed


@inner
def open_all(fixed: Fixed, state: State, kinds: Array) -> None:
    """Open new machines of kinds, in the first places for new machines, as far as limits allow."""
    nodes = len(fixed.node_price)
    for number in range(min(len(kinds), len(state.kind) - nodes)):
        pool = fixed.kind_pool[kinds[number]]
        allowed = True
        for resource in range(state.pool_left.shape[1]):
            if fixed.kind_capacity[kinds[number], resource] > state.pool_left[pool, resource]:
                allowed = False
        if allowed:
            open_new(fixed, state, nodes + number, kinds[number])


@compiled
def resume(
    fixed: Fixed,
    state: State,
    best: Best,
    scratch: Scratch,
    random: Array,
    going: Array,
    kinds: Array,
    guests: Array,
) -> bool:
    """Make a target of the nodes that go and the kinds that come; whether everything has a place then.

    `guests`: (entries, 3) a machine, a group, and how many of its pods are to come there if they can; the others go
    where there is room, or on further new machines. The best fleet is the one that this leads to, whatever it costs.
    """
    fixed, state, best, scratch = borrowed(fixed), borrowed(state), borrowed(best), borrowed(scratch)
    random = borrowed(random)
    nodes = len(fixed.node_price)
    for at in range(len(going)):
        go(fixed, state, going[at])
    open_all(fixed, state, kinds)
    for at in range(len(guests)):
        machine, group, count = guests[at, 0], guests[at, 1], guests[at, 2]
        if machine < len(state.kind) and suits(fixed, state, group, machine):
            while count > 0 and state.waiting[group] > 0 and accepts(fixed, state, group, machine):
                put(fixed, state, group, machine)
                count -= 1
    machines = 0
    for machine in range(len(state.kind)):
        if is_used(fixed, state, machine):
            scratch.arena[machines] = machine
            machines += 1
    done = recreate(fixed, state, scratch, random, machines)
    if not done:
        undo(fixed, state, 0)
        return False
    for machine in range(nodes, len(state.kind)):
        if state.kind[machine] != CLOSED:
            if state.guests[machine] == 0:
                close_new(fixed, state, machine)
            else:
                shrink(fixed, state, machine)
    state.steps[0] = 0
    best.cost[0] = np.inf
    remember(state, best)
    return True
