"""Ruin and recreate: take some machines away, find new places for what was on them, and keep what is better."""

import math
from typing import NamedTuple

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.kernels.random import below, uniform
from karpool.optimization.kernels.recreate import Scratch, recreate
from karpool.optimization.kernels.state import CLOSED, Fixed, State, close_new, come_back, go, take, undo
from karpool.packing.kernels import compiled, inner
from karpool.packing.kernels.borrowed import borrowed

_COME_BACK = 0.1
"""How many moves bring a node back, and how many of the others gather pods for one new machine."""
_GATHER = 0.2
_MOST_RUINED = 3
_MOST_DISTURBED = 5
_TRIES = 20
_ALONG = 0.5
"""How often a machine goes when it loses guests to a node that comes back; how often more is ruined then."""
_MORE = 0.5
_SKIPPED = 0.3
_MOST_OF_ONE = 0.9
"""Of machines whose pods are gathered: how many are left out, and the largest share that one may fill."""


class Best(NamedTuple):
    """The cheapest fleet that was seen."""

    kept: Array
    kind: Array
    guest_group: Array
    guest_count: Array
    guests: Array
    cost: Array
    """(1,)"""


@inner
def empty_machine(fixed: Fixed, state: State, machine: int) -> None:
    """All guests of a machine wait again."""
    while state.guests[machine] > 0:
        take(fixed, state, state.guest_group[machine, 0], machine)


@inner
def is_used(fixed: Fixed, state: State, machine: int) -> bool:
    """Whether a machine is part of the fleet."""
    return state.kept[machine] != 0 if machine < len(fixed.node_price) else state.kind[machine] != CLOSED


@inner
def can_be_ruined(fixed: Fixed, state: State, machine: int) -> bool:
    """Whether a machine of the fleet may be taken away."""
    if not is_used(fixed, state, machine):
        return False
    if machine >= len(fixed.node_price):
        return True
    pool = fixed.node_pool[machine]
    return fixed.searchable[machine] != 0 and (pool < 0 or state.pool_gone[pool] < fixed.most_gone[pool])


@inner
def rebuilds(fixed: Fixed, state: State, used: int) -> bool:
    """Whether a new machine is what a node that goes is already, and no cheaper."""
    nodes = len(fixed.node_price)
    for machine in range(nodes, used):
        kind = state.kind[machine]
        if kind == CLOSED:
            continue
        for node in range(nodes):
            if (
                state.kept[node] == 0
                and fixed.node_machine[node] == fixed.kind_machine[kind]
                and fixed.launch_price[kind] >= fixed.node_price[node]
            ):
                return True
    return False


@inner
def loss(fixed: Fixed, state: State, machine: int) -> float:
    """By how much a machine costs more than what is on it is worth."""
    if machine < len(fixed.node_price):
        worth, price = fixed.node_value[machine], fixed.node_price[machine] - fixed.node_weight[machine]
    else:
        worth, price = 0.0, fixed.kind_price[state.kind[machine]]
    for slot in range(state.guests[machine]):
        worth += state.guest_count[machine, slot] * fixed.value[state.guest_group[machine, slot]]
    return price - worth


@inner
def enter(scratch: Scratch, machines: int, machine: int, move: int) -> int:
    """A machine comes into the arena, if it is not there."""
    if scratch.stamp[machine] != move:
        scratch.stamp[machine] = move
        scratch.arena[machines] = machine
        return machines + 1
    return machines


@inner
def choose_arena(fixed: Fixed, state: State, scratch: Scratch, random: Array, move: int, used: int, most: int) -> int:
    """The machines that take part in a move: all of a small fleet, some of a large one."""
    machines = 0
    if used <= most:
        for machine in range(used):
            if is_used(fixed, state, machine):
                machines = enter(scratch, machines, machine, move)
        return machines
    for _ in range(3 * most):
        machine = below(random, used)
        if is_used(fixed, state, machine):
            machines = enter(scratch, machines, machine, move)
            if machines == most:
                break
    return machines


@inner
def worst_of_some(fixed: Fixed, state: State, scratch: Scratch, random: Array, machines: int) -> int:
    """A machine that may be taken away: the one with the highest loss of a few, -1 if there is none."""
    rounds = 1 + below(random, 5)
    chosen, most = -1, -np.inf
    for _ in range(_TRIES):
        machine = scratch.arena[below(random, machines)]
        if can_be_ruined(fixed, state, machine):
            lost = loss(fixed, state, machine)
            if lost > most:
                chosen, most = machine, lost
            rounds -= 1
            if rounds == 0:
                break
    return chosen


@inner
def ruin_machine(fixed: Fixed, state: State, machine: int) -> None:
    """Take a machine away; everything on it waits."""
    empty_machine(fixed, state, machine)
    if machine < len(fixed.node_price):
        go(fixed, state, machine)
    else:
        close_new(fixed, state, machine)


@inner
def bring_back(fixed: Fixed, state: State, scratch: Scratch, random: Array, machines: int, move: int, used: int) -> int:
    """Keep a node that had gone: pods like its own leave the places where they are guests. The size of the arena."""
    nodes = len(fixed.node_price)
    for _ in range(_TRIES):
        node = below(random, nodes)
        if state.kept[node] == 0:
            break
    else:
        return machines
    missing = 0
    first, last = fixed.pods_start[node], fixed.pods_start[node + 1]
    for at in range(first, last):
        scratch.needed[fixed.pods_group[at]] = fixed.pods_count[at]
        missing += fixed.pods_count[at]
    start = below(random, used)
    for step in range(used):
        if missing == 0:
            break
        machine = (start + step) % used
        touched = False
        slot = 0
        while slot < state.guests[machine]:
            group = state.guest_group[machine, slot]
            if scratch.needed[group] > 0:
                scratch.needed[group] -= 1
                missing -= 1
                before = state.guests[machine]
                take(fixed, state, group, machine)
                touched = True
                if state.guests[machine] < before:
                    continue
            else:
                slot += 1
        if touched and machines < len(scratch.arena):
            machines = enter(scratch, machines, machine, move)
            if can_be_ruined(fixed, state, machine) and uniform(random) < _ALONG:
                ruin_machine(fixed, state, machine)
    for at in range(first, last):
        scratch.needed[fixed.pods_group[at]] = 0
    if missing > 0:  # pods that are not counted as guests: nothing to come back to
        return machines
    come_back(fixed, state, node)
    return enter(scratch, machines, node, move)


@inner
def load(fixed: Fixed, state: State, machine: int, kind: int) -> float:
    """The share of a new machine of a kind that the pods of another would take; 0 if they may not use it."""
    total = 0.0
    resources = state.free.shape[1]
    entries = state.guests[machine]
    own = 0
    if machine < len(fixed.node_price):
        own = fixed.pods_start[machine + 1] - fixed.pods_start[machine]
    for resource in range(resources):
        asked = 0
        for at in range(own + entries):
            if at < own:
                place = fixed.pods_start[machine] + at
                group, count = fixed.pods_group[place], fixed.pods_count[place]
            else:
                group, count = state.guest_group[machine, at - own], state.guest_count[machine, at - own]
            if resource == 0 and fixed.kind_usable[fixed.signature[group], kind] == 0:
                return 0.0
            asked += count * fixed.requests[group, resource]
        if asked > 0:
            total = max(total, asked / max(fixed.room[kind, resource], 1))
    return total


@inner
def gather(fixed: Fixed, state: State, scratch: Scratch, random: Array, machines: int) -> None:
    """Take machines away whose pods together would fill one new machine of some kind."""
    if machines == 0 or len(fixed.kind_price) == 0:
        return
    kind = below(random, len(fixed.kind_price))
    wanted = 0.7 + 0.8 * uniform(random)
    start = below(random, machines)
    for step in range(machines):
        machine = scratch.arena[(start + step) % machines]
        if not can_be_ruined(fixed, state, machine) or uniform(random) < _SKIPPED:
            continue
        share = load(fixed, state, machine, kind)
        if 0.0 < share <= _MOST_OF_ONE:
            ruin_machine(fixed, state, machine)
            wanted -= share
            if wanted <= 0.0:
                break


@inner
def ruin(fixed: Fixed, state: State, scratch: Scratch, random: Array, machines: int) -> None:
    """Take some machines away, and the guests of others."""
    if machines == 0:
        return
    number = 1 + below(random, _MOST_RUINED)
    for _ in range(number):
        machine = worst_of_some(fixed, state, scratch, random, machines)
        if machine >= 0:
            ruin_machine(fixed, state, machine)
    disturbed = below(random, _MOST_DISTURBED)
    for _ in range(disturbed):
        machine = scratch.arena[below(random, machines)]
        if is_used(fixed, state, machine):
            empty_machine(fixed, state, machine)


@inner
def high_water(fixed: Fixed, state: State, used: int) -> int:
    """One more than the highest number of a machine that is used."""
    while used < len(state.kind) and state.kind[used] != CLOSED:
        used += 1
    while used > len(fixed.node_price) and state.kind[used - 1] == CLOSED:
        used -= 1
    return used


@inner
def remember(state: State, best: Best) -> None:
    """The fleet as it is now is the best."""
    best.kept[:] = state.kept
    best.kind[:] = state.kind
    best.guest_group[:] = state.guest_group
    best.guest_count[:] = state.guest_count
    best.guests[:] = state.guests
    best.cost[0] = state.cost[0]


@compiled
def start_anew(fixed: Fixed, state: State, best: Best, scratch: Scratch, random: Array) -> bool:
    """Take all machines away that may be, and find places for everything; whether that was possible."""
    fixed, state, best, scratch = borrowed(fixed), borrowed(state), borrowed(best), borrowed(scratch)
    random = borrowed(random)
    machines = len(fixed.node_price)
    for machine in range(machines):
        if can_be_ruined(fixed, state, machine):
            ruin_machine(fixed, state, machine)
        scratch.arena[machine] = machine
    done = recreate(fixed, state, scratch, random, machines)
    if done and state.cost[0] < best.cost[0] - 1e-9:
        remember(state, best)
    if not done:
        undo(fixed, state, 0)
    state.steps[0] = 0
    return done


@compiled
def improve(
    fixed: Fixed,
    state: State,
    best: Best,
    scratch: Scratch,
    random: Array,
    first: int,
    last: int,
    total: int,
    hot: float,
    cold: float,
    most: int,
) -> None:
    """Moves `first` to `last` of `total`, while it gets colder: worse fleets are accepted less and less.

    At most so many machines take part in a move.
    """
    fixed, state, best, scratch = borrowed(fixed), borrowed(state), borrowed(best), borrowed(scratch)
    random = borrowed(random)
    machines = len(state.kind)
    used = high_water(fixed, state, machines)
    patience = machines // 50
    copied = first - patience
    for move in range(first, last):
        heat = hot * (cold / hot) ** (move / max(total - 1, 1))
        before = state.cost[0]
        state.steps[0] = 0
        arena = choose_arena(fixed, state, scratch, random, move, used, most)
        if uniform(random) < _COME_BACK:
            arena = bring_back(fixed, state, scratch, random, arena, move, used)
            if uniform(random) < _MORE:
                ruin(fixed, state, scratch, random, arena)
        elif uniform(random) < _GATHER:
            gather(fixed, state, scratch, random, arena)
        else:
            ruin(fixed, state, scratch, random, arena)
        done = recreate(fixed, state, scratch, random, arena)
        if done and fixed.at_once[0] != 0:
            done = not rebuilds(fixed, state, len(state.kind))
        worse = state.cost[0] - before
        if not done or (worse > 0.0 and uniform(random) >= math.exp(-worse / heat)):
            undo(fixed, state, 0)
            state.cost[0] = before
            continue
        used = high_water(fixed, state, used)
        if state.cost[0] < best.cost[0] - 1e-9 and move >= copied + patience:
            remember(state, best)
            copied = move
    if state.cost[0] < best.cost[0] - 1e-9:
        remember(state, best)
