"""A fleet while it is searched: nodes that stay, new machines, where guests sit; every step can be undone.

Machines are numbered: first today's nodes, then places for new ones. Guests are pods of nodes that have gone; pods of
a group are interchangeable, so that a machine only counts its guests by group.
"""

from typing import NamedTuple

from karpool.cluster.arrays import Array
from karpool.optimization.problem import APART, SPREAD
from karpool.packing.kernels import inlined, inner

PUT, TAKE, GO, COME_BACK, OPEN, CLOSE, RETYPE = range(7)
CLOSED = -1


class Fixed(NamedTuple):
    """What does not change during a search."""

    requests: Array
    size: Array
    """(groups, resources) float64: requests as shares of a usual machine."""
    unit: Array
    """(resources,) float64: one usual machine."""
    signature: Array
    exempt: Array
    value: Array
    """(groups,) $/h that a good place for one pod is worth."""
    copies: Array
    """(groups,) the most that fit on one machine by the group's own rules about hosts."""
    node_price: Array
    searchable: Array
    takes: Array
    shape: Array
    node_domain: Array
    node_pool: Array
    node_capacity: Array
    node_machine: Array
    node_value: Array
    """(nodes,) the value of its own pods."""
    node_weight: Array
    """(nodes,) $/h that the evictions cost if the node goes."""
    pods_start: Array
    pods_group: Array
    pods_count: Array
    kind_price: Array
    """(kinds,) what a new machine counts, with the trouble of its launch."""
    launch_price: Array
    """(kinds,) $/h alone."""
    room: Array
    kind_domain: Array
    kind_pool: Array
    kind_capacity: Array
    kind_machine: Array
    kind_usable: Array
    """(signatures, kinds): whether pods of a signature may use the kind in this search."""
    kinds_start: Array
    """By signature: the kinds that its pods may use."""
    kinds_listed: Array
    suits_shape: Array
    caps_start: Array
    caps_row: Array
    caps_most: Array
    host_start: Array
    host_row: Array
    owned_start: Array
    owned_rule: Array
    counts_start: Array
    counts_rule: Array
    rule_key: Array
    rule_mode: Array
    rule_skew: Array
    rule_least_domains: Array
    rule_eligible: Array
    most_gone: Array
    """(pools,) how many nodes of each pool may go."""
    at_once: Array
    """(1,) whether all nodes that go do so together, so that no new machine may be what one of them is already."""


class State(NamedTuple):
    """What changes."""

    kept: Array
    """(nodes,) whether a node of today stays."""
    kind: Array
    """(machines,) the kind of a new machine; CLOSED for places that are not used and for today's nodes."""
    free: Array
    """(machines, resources)."""
    on_host: Array
    """(machines, host rows)."""
    in_domain: Array
    """(rules, domains)."""
    guest_group: Array
    """(machines, slots)."""
    guest_count: Array
    """(machines, slots)."""
    guests: Array
    """(machines,) how many slots are used."""
    waiting: Array
    """(groups,) pods that have no place."""
    waiting_in_rule: Array
    """(rules,) how many of them each rule counts."""
    pool_left: Array
    """(pools, resources) float64."""
    pool_gone: Array
    """(pools,) how many nodes have gone."""
    log: Array
    """(steps, 3)."""
    steps: Array
    """(1,) how many steps the log has."""
    cost: Array
    """(1,) $/h of all machines, and of the evictions."""


@inlined
def note(state: State, step: int, first: int, second: int) -> None:
    """Remember a step, so that it can be undone; the log is long enough for any move."""
    at = state.steps[0]
    state.log[at, 0] = step
    state.log[at, 1] = first
    state.log[at, 2] = second
    state.steps[0] = at + 1


@inlined
def domain_of(fixed: Fixed, state: State, machine: int, key: int) -> int:
    """The domain of a machine."""
    if machine < len(fixed.node_price):
        return fixed.node_domain[machine, key]
    return fixed.kind_domain[state.kind[machine], key]


@inlined
def count_in_domains(fixed: Fixed, state: State, group: int, machine: int, change: int) -> None:
    """Count pods of a group on a machine in all rules that count them."""
    for at in range(fixed.counts_start[group], fixed.counts_start[group + 1]):
        rule = fixed.counts_rule[at]
        domain = domain_of(fixed, state, machine, fixed.rule_key[rule])
        if domain >= 0:
            state.in_domain[rule, domain] += change


@inlined
def wait(fixed: Fixed, state: State, group: int, change: int) -> None:
    """Pods of a group wait for a place, or do not any more."""
    state.waiting[group] += change
    for at in range(fixed.counts_start[group], fixed.counts_start[group + 1]):
        state.waiting_in_rule[fixed.counts_rule[at]] += change


@inlined
def move_in(fixed: Fixed, state: State, group: int, machine: int, change: int) -> None:
    """Guests of a group come to a machine, or leave it."""
    slot = 0
    while slot < state.guests[machine] and state.guest_group[machine, slot] != group:
        slot += 1
    if slot == state.guests[machine]:
        state.guest_group[machine, slot] = group
        state.guest_count[machine, slot] = 0
        state.guests[machine] += 1
    state.guest_count[machine, slot] += change
    if state.guest_count[machine, slot] == 0:
        last = state.guests[machine] - 1
        state.guest_group[machine, slot] = state.guest_group[machine, last]
        state.guest_count[machine, slot] = state.guest_count[machine, last]
        state.guests[machine] = last
    for resource in range(fixed.requests.shape[1]):
        state.free[machine, resource] -= change * fixed.requests[group, resource]
    for at in range(fixed.host_start[group], fixed.host_start[group + 1]):
        state.on_host[machine, fixed.host_row[at]] += change
    count_in_domains(fixed, state, group, machine, change)
    wait(fixed, state, group, -change)


@inlined
def put(fixed: Fixed, state: State, group: int, machine: int) -> None:
    """One waiting pod becomes a guest."""
    move_in(fixed, state, group, machine, 1)
    note(state, PUT, group, machine)


@inlined
def take(fixed: Fixed, state: State, group: int, machine: int) -> None:
    """One guest waits again."""
    move_in(fixed, state, group, machine, -1)
    note(state, TAKE, group, machine)


@inner
def leave_or_return(fixed: Fixed, state: State, node: int, change: int) -> None:
    """A node of today goes (1) with its pods waiting, or comes back (-1) with them; guests are not its concern."""
    state.kept[node] = 0 if change > 0 else 1
    state.cost[0] += change * (fixed.node_weight[node] - fixed.node_price[node])
    for at in range(fixed.pods_start[node], fixed.pods_start[node + 1]):
        group, count = fixed.pods_group[at], fixed.pods_count[at]
        wait(fixed, state, group, change * count)
        count_in_domains(fixed, state, group, node, -change * count)
    pool = fixed.node_pool[node]
    if pool >= 0:
        state.pool_gone[pool] += change
        for resource in range(state.pool_left.shape[1]):
            state.pool_left[pool, resource] += change * fixed.node_capacity[node, resource]


@inner
def go(fixed: Fixed, state: State, node: int) -> None:
    """A node goes; its own pods wait."""
    leave_or_return(fixed, state, node, 1)
    note(state, GO, node, 0)


@inner
def come_back(fixed: Fixed, state: State, node: int) -> None:
    """A node that has gone is kept after all; its own pods are among those that wait."""
    leave_or_return(fixed, state, node, -1)
    note(state, COME_BACK, node, 0)


@inner
def open_or_close(fixed: Fixed, state: State, machine: int, kind: int, change: int) -> None:
    """A new machine comes (1) or is given up (-1)."""
    state.kind[machine] = kind if change > 0 else CLOSED
    state.cost[0] += change * fixed.kind_price[kind]
    pool = fixed.kind_pool[kind]
    for resource in range(state.pool_left.shape[1]):
        state.free[machine, resource] = fixed.room[kind, resource]
        state.pool_left[pool, resource] -= change * fixed.kind_capacity[kind, resource]


@inner
def open_new(fixed: Fixed, state: State, machine: int, kind: int) -> None:
    """A new machine of a kind, without guests."""
    open_or_close(fixed, state, machine, kind, 1)
    note(state, OPEN, machine, kind)


@inner
def close_new(fixed: Fixed, state: State, machine: int) -> None:
    """A new machine without guests is given up."""
    kind = state.kind[machine]
    open_or_close(fixed, state, machine, kind, -1)
    note(state, CLOSE, machine, kind)


@inner
def exchange(fixed: Fixed, state: State, machine: int, kind: int) -> None:
    """A new machine becomes one of another kind, with the same guests."""
    before = state.kind[machine]
    for slot in range(state.guests[machine]):
        group = state.guest_group[machine, slot]
        count_in_domains(fixed, state, group, machine, -state.guest_count[machine, slot])
    state.kind[machine] = kind
    for slot in range(state.guests[machine]):
        count_in_domains(fixed, state, state.guest_group[machine, slot], machine, state.guest_count[machine, slot])
    state.cost[0] += fixed.kind_price[kind] - fixed.kind_price[before]
    old, new = fixed.kind_pool[before], fixed.kind_pool[kind]
    for resource in range(state.pool_left.shape[1]):
        state.free[machine, resource] += fixed.room[kind, resource] - fixed.room[before, resource]
        state.pool_left[old, resource] += fixed.kind_capacity[before, resource]
        state.pool_left[new, resource] -= fixed.kind_capacity[kind, resource]


@inner
def retype(fixed: Fixed, state: State, machine: int, kind: int) -> None:
    """Exchange a new machine, and remember what it was."""
    note(state, RETYPE, machine, state.kind[machine])
    exchange(fixed, state, machine, kind)


@inner
def undo(fixed: Fixed, state: State, down_to: int) -> None:
    """Take back the last steps, until so many are left."""
    while state.steps[0] > down_to:
        at = state.steps[0] - 1
        step, first, second = state.log[at, 0], state.log[at, 1], state.log[at, 2]
        if step == PUT:
            move_in(fixed, state, first, second, -1)
        elif step == TAKE:
            move_in(fixed, state, first, second, 1)
        elif step == GO:
            leave_or_return(fixed, state, first, -1)
        elif step == COME_BACK:
            leave_or_return(fixed, state, first, 1)
        elif step == OPEN:
            open_or_close(fixed, state, first, second, -1)
        elif step == CLOSE:
            open_or_close(fixed, state, first, second, 1)
        else:
            exchange(fixed, state, first, second)
        state.steps[0] = at


@inlined
def others_catch_up(fixed: Fixed, state: State, rule: int, domain: int, count: int, itself: int) -> bool:
    """Whether pods that still wait can fill the other domains, if one is to have so many."""
    highest = count
    for other in range(state.in_domain.shape[1]):
        if fixed.rule_eligible[rule, other]:
            highest = max(highest, state.in_domain[rule, other])
    missing = 0
    for other in range(state.in_domain.shape[1]):
        if fixed.rule_eligible[rule, other] and other != domain:
            missing += max(0, highest - fixed.rule_skew[rule] - state.in_domain[rule, other])
    return missing <= state.waiting_in_rule[rule] - itself


@inlined
def rules_allow(fixed: Fixed, state: State, group: int, machine: int) -> bool:
    """Whether the rules about topology domains let one more pod of a group come to a machine."""
    for at in range(fixed.owned_start[group], fixed.owned_start[group + 1]):
        rule = fixed.owned_rule[at]
        domain = domain_of(fixed, state, machine, fixed.rule_key[rule])
        if domain < 0:
            return False
        mode = fixed.rule_mode[rule]
        if mode == APART:
            if state.in_domain[rule, domain] > 0:
                return False
            continue
        least, most, eligible = 1 << 30, 0, 0
        for other in range(state.in_domain.shape[1]):
            count = state.in_domain[rule, other]
            most = max(most, count)
            if fixed.rule_eligible[rule, other]:
                eligible += 1
                least = min(least, count)
        if mode == SPREAD:
            if not fixed.rule_eligible[rule, domain]:
                return False
            if eligible < fixed.rule_least_domains[rule]:
                least = 0
            itself = 0
            for number in range(fixed.counts_start[group], fixed.counts_start[group + 1]):
                itself += fixed.counts_rule[number] == rule
            count = state.in_domain[rule, domain] + itself
            if count - least > fixed.rule_skew[rule] and not others_catch_up(fixed, state, rule, domain, count, itself):
                return False
        elif state.in_domain[rule, domain] == 0 and most > 0:
            return False
    return True


@inlined
def suits(fixed: Fixed, state: State, group: int, machine: int) -> bool:
    """Whether a machine is there for guests of a group, whatever room it has."""
    signature = fixed.signature[group]
    if machine >= len(fixed.node_price):
        kind = state.kind[machine]
        return kind != CLOSED and fixed.kind_usable[signature, kind] != 0
    if state.kept[machine] == 0 or fixed.takes[machine] == 0:
        return False
    if fixed.takes[machine] == 1 and not fixed.exempt[group]:
        return False
    return fixed.suits_shape[signature, fixed.shape[machine]] != 0


@inlined
def accepts(fixed: Fixed, state: State, group: int, machine: int) -> bool:
    """Whether one more pod of a group fits a machine that suits it."""
    for resource in range(fixed.requests.shape[1]):
        asked = fixed.requests[group, resource]
        if asked > 0 and state.free[machine, resource] < asked:
            return False
    if state.guests[machine] == state.guest_group.shape[1]:
        return False
    for at in range(fixed.caps_start[group], fixed.caps_start[group + 1]):
        if state.on_host[machine, fixed.caps_row[at]] > fixed.caps_most[at]:
            return False
    return rules_allow(fixed, state, group, machine)
