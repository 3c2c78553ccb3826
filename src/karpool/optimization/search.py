"""A search for the cheapest fleet that holds the same pods: ruin and recreate, seeded and counted in moves."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.kernels.recreate import Scratch
from karpool.optimization.kernels.resume import resume
from karpool.optimization.kernels.ruin import Best, improve, start_anew
from karpool.optimization.kernels.state import CLOSED, Fixed, State
from karpool.optimization.partition import Part, parts_of
from karpool.optimization.problem import FleetProblem
from karpool.optimization.side_by_side import Wanted, side_by_side

_SLOTS: Final = 128
"""How many groups of guests a machine can have."""
_CHUNK: Final = 500
_LEAST_SHARE: Final = 1e-3
"""Of a usual price, and of a machine: what everything counts at least."""
_LEAST_MOVES: Final = 500
"""Of a part."""
_ARENA: Final = 128
"""How many machines take part in a move."""
_HOT: Final = 0.05
"""How much worse a fleet may be at first to be accepted now and then, as a share of the usual price of a machine."""
_WARM: Final = 0.01
"""The same where all nodes go at once."""
_COOLING: Final = 40.0
_COLD: Final = 1e-9
"""So cold that nothing worse is accepted."""
_COPIES_WITHOUT_RULE: Final = 1 << 20

Watch = Callable[[int, float], bool]
"""Told after each part of the work how many moves were made, and the price of the best fleet; whether to go on."""


@dataclass(frozen=True, slots=True)
class TargetMachine:
    """A new machine of a target, or a node that stays: its number, and how many guests of each group it gets."""

    number: int
    guests: dict[int, int]


@dataclass(frozen=True, slots=True)
class TargetFleet:
    """Which nodes go, which kinds of machines come, and where guests sit."""

    gone: tuple[int, ...]
    hosts: tuple[TargetMachine, ...]
    """Nodes of today that stay and get guests."""
    new: tuple[TargetMachine, ...]
    """New machines, each with the number of its kind."""
    price: float
    """$/h of all machines."""
    cost: float
    """The price, and what evictions and launches count: a launch is as much trouble as the eviction of a plain pod."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A fleet that somebody would like to have."""

    going: Array
    """(going,) int64: nodes that a search may take away."""
    kinds: Array
    """(new,) int64: the kind of each new machine."""
    guests: Array
    """(entries, 3) int64: a node, or the number of nodes + n for new machine n; a group; how many of its pods."""


def search(
    problem: FleetProblem,
    *,
    eviction_price: float,
    seed: int,
    moves: int,
    usable: Array | None = None,
    most_gone: Array | None = None,
    anew: bool = False,
    watch: Watch | None = None,
) -> TargetFleet:
    """The cheapest fleet that so many moves find.

    `usable`: (signatures, kinds) narrows what may be bought; `most_gone`: (pools,) how many nodes of each may go, if
    all go at once; `anew`: begin with a fleet in which everything is placed anew, instead of today's.
    """
    fixed = _fixed(problem, eviction_price, problem.suits_kind if usable is None else usable, most_gone)
    state = _state(problem)
    best, scratch = _best(state), _scratch(problem, state)
    random = np.array([_scrambled(seed)], dtype=np.uint64)
    if problem.nodes.searchable.any():
        prices = problem.nodes.price[problem.nodes.searchable]
        heat = _HOT if most_gone is None else _WARM
        hot = max(heat * float(np.median(prices)), 1e-6)
        if anew:
            start_anew(fixed, state, best, scratch, random)
        for first in range(0, moves, _CHUNK):
            last = min(first + _CHUNK, moves)
            improve(fixed, state, best, scratch, random, first, last, moves, hot, hot / _COOLING, _ARENA)
            if watch is not None and not watch(last, _price(problem, best)):
                break

    return _target(problem, best)


def resumed(
    problem: FleetProblem,
    wish: Wish,
    *,
    eviction_price: float,
    seed: int,
    moves: int,
    usable: Array | None = None,
    most_gone: Array | None = None,
) -> TargetFleet:
    """The fleet that a wish leads to now, and that a few moves find from there; today's if it leads nowhere.

    No other nodes go than those of the wish: this is no search.
    """
    chosen = np.zeros_like(problem.nodes.searchable)
    chosen[wish.going] = problem.nodes.searchable[wish.going]
    problem = replace(problem, nodes=replace(problem.nodes, searchable=chosen))
    fixed = _fixed(problem, eviction_price, problem.suits_kind if usable is None else usable, most_gone)
    state = _state(problem, len(wish.kinds))
    best, scratch = _best(state), _scratch(problem, state)
    random = np.array([_scrambled(seed)], dtype=np.uint64)
    if len(wish.going) and resume(fixed, state, best, scratch, random, wish.going, wish.kinds, wish.guests) and moves:
        improve(fixed, state, best, scratch, random, 0, moves, moves, _COLD, _COLD, _ARENA)
    return _target(problem, best)


def _best(state: State) -> Best:
    return Best(
        kept=state.kept.copy(),
        kind=state.kind.copy(),
        guest_group=state.guest_group.copy(),
        guest_count=state.guest_count.copy(),
        guests=state.guests.copy(),
        cost=state.cost.copy(),
    )


def search_parts(
    problem: FleetProblem, *, eviction_price: float, seed: int, moves: int, usable: Array, anew: bool, watch: Watch
) -> TargetFleet:
    """The same, with parts that have nothing to do with each other searched apart, side by side where there are cores.

    Each part gets its share of the moves, so that a small one costs little.
    """
    parts = parts_of(problem)
    searched = [int(part.problem.nodes.searchable.sum()) for part in parts]
    shares = [max(_LEAST_MOVES, moves * nodes // max(1, sum(searched))) if nodes else 0 for nodes in searched]
    done = [0] * len(parts)
    prices = [part.problem.price for part in parts]

    def of_part(number: int, wanted: Wanted) -> TargetFleet:
        def watch_part(moved: int, price: float) -> bool:
            done[number], prices[number] = moved, price
            return wanted() and watch(moves * sum(done) // max(1, sum(shares)), sum(prices))

        part = parts[number]
        return search(
            part.problem,
            eviction_price=eviction_price,
            seed=seed + number,
            moves=shares[number],
            usable=np.ascontiguousarray(usable[:, part.kinds]),
            anew=anew,
            watch=watch_part,
        )

    targets = side_by_side(of_part, len(parts))
    return _joined(list(zip(parts, targets, strict=True)))


def _joined(found: list[tuple[Part, TargetFleet]]) -> TargetFleet:
    """The targets of all parts as one, with the numbers of the whole problem."""

    def machines(part: Part, some: tuple[TargetMachine, ...], numbers: Array) -> Iterator[TargetMachine]:
        for machine in some:
            guests = {int(part.groups[group]): count for group, count in machine.guests.items()}
            yield TargetMachine(int(numbers[machine.number]), guests)

    return TargetFleet(
        gone=tuple(sorted(int(part.nodes[node]) for part, target in found for node in target.gone)),
        hosts=tuple(host for part, target in found for host in machines(part, target.hosts, part.nodes)),
        new=tuple(new for part, target in found for new in machines(part, target.new, part.kinds)),
        price=sum(target.price for _, target in found),
        cost=sum(target.cost for _, target in found),
    )


def _scrambled(seed: int) -> int:
    """A seed as the start of the random numbers, never 0."""
    mixed = (seed + 0x9E3779B97F4A7C15) % 2**64
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
    return (mixed ^ (mixed >> 31)) or 1


def _least_values(problem: FleetProblem) -> Array:
    """What one pod of each group costs at least: its largest share of the best machine that it suits."""
    kinds, groups = problem.kinds, problem.groups
    values = np.full(len(groups.signature), np.inf)
    # What is free is worth something, too: without a value nothing would be bought for a pod.
    prices = np.maximum(kinds.price, _LEAST_SHARE * np.median(kinds.price) if len(kinds.price) else 0.0)
    for kind in range(len(kinds.price)):
        room = np.maximum(kinds.room[kind], 1)
        share = np.maximum((groups.requests / room).max(axis=1, initial=0.0), _LEAST_SHARE)
        suited = (problem.suits_kind[groups.signature, kind] != 0) & (share <= 1)
        values = np.where(suited, np.minimum(values, share * prices[kind]), values)
    return np.where(np.isfinite(values), values, 0.0)


def _fixed(problem: FleetProblem, eviction_price: float, usable: Array, most_gone: Array | None) -> Fixed:
    groups, nodes, kinds = problem.groups, problem.nodes, problem.kinds
    values = _least_values(problem)
    rows = np.repeat(np.arange(len(nodes.price)), np.diff(nodes.pods.start))
    weights = np.bincount(rows, groups.weight[nodes.pods.items] * nodes.pod_count, minlength=len(nodes.price))
    worth = np.bincount(rows, values[nodes.pods.items] * nodes.pod_count, minlength=len(nodes.price))
    unit = np.maximum(np.median(kinds.room, axis=0) if len(kinds.price) else nodes.free.max(axis=0, initial=1), 1.0)
    fixed = Fixed(
        requests=groups.requests,
        size=groups.requests / unit,
        unit=unit,
        signature=groups.signature,
        exempt=groups.exempt,
        value=values.astype(np.float64),
        copies=_copies(problem),
        node_price=nodes.price,
        searchable=nodes.searchable,
        takes=nodes.takes,
        shape=nodes.shape,
        node_domain=nodes.domain,
        node_pool=nodes.pool,
        node_capacity=nodes.capacity,
        node_machine=nodes.machine,
        node_value=worth.astype(np.float64),  # without a single pod bincount counts in whole numbers
        node_weight=eviction_price * weights,
        pods_start=nodes.pods.start,
        pods_group=nodes.pods.items,
        pods_count=nodes.pod_count,
        # Each launch is some trouble, too; without a price for it, many small machines are as good as a large one.
        kind_price=kinds.price + eviction_price,
        launch_price=kinds.price,
        room=kinds.room,
        kind_domain=kinds.domain,
        kind_pool=kinds.pool,
        kind_capacity=kinds.capacity,
        kind_machine=kinds.machine,
        kind_usable=usable,
        kinds_start=np.concatenate(([0], np.cumsum(np.count_nonzero(usable, axis=1)))),
        kinds_listed=np.nonzero(usable)[1].astype(np.int32),
        suits_shape=problem.suits_shape,
        caps_start=problem.hosts.caps.start,
        caps_row=problem.hosts.caps.items,
        caps_most=problem.hosts.most,
        host_start=problem.hosts.counts.start,
        host_row=problem.hosts.counts.items,
        owned_start=problem.spreads.owned.start,
        owned_rule=problem.spreads.owned.items,
        counts_start=problem.spreads.counts.start,
        counts_rule=problem.spreads.counts.items,
        rule_key=problem.spreads.key,
        rule_mode=problem.spreads.mode,
        rule_skew=problem.spreads.skew,
        rule_least_domains=problem.spreads.least_domains,
        rule_eligible=problem.spreads.eligible,
        most_gone=np.full(len(problem.pools.left), len(nodes.price)) if most_gone is None else most_gone,
        at_once=np.array([most_gone is not None]),
    )
    # One signature for the kernels, whatever the arrays were cut from.
    return Fixed(*(np.ascontiguousarray(array, dtype=_dtype(array)) for array in fixed))


def _dtype(array: Array) -> type[np.number[Any]]:
    """The type of an array as kernels are compiled for it."""
    if array.dtype.kind == "f":
        return np.float64
    whole: dict[int, type[np.number[Any]]] = {1: np.uint8, 4: np.int32, 8: np.int64}
    return whole[array.dtype.itemsize]


def _copies(problem: FleetProblem) -> Array:
    """How many pods of a group fit on one machine by the group's own rules about hosts."""
    hosts = problem.hosts
    copies = np.full(len(problem.groups.signature), _COPIES_WITHOUT_RULE, dtype=np.int64)
    for group in range(len(copies)):
        own = set(hosts.counts.row(group).tolist())
        for row, most in zip(hosts.caps.row(group).tolist(), _most(problem, group), strict=True):
            if row in own:
                copies[group] = min(copies[group], most + 1)
    return np.maximum(copies, 1)


def _most(problem: FleetProblem, group: int) -> list[int]:
    start = problem.hosts.caps.start
    values: list[int] = problem.hosts.most[start[group] : start[group + 1]].tolist()
    return values


def _state(problem: FleetProblem, coming: int = 0) -> State:
    nodes = problem.nodes
    count, resources = nodes.free.shape
    searchable = int(nodes.searchable.sum())
    machines = count + 2 * searchable + coming + 16
    groups = len(problem.groups.signature)
    slots = min(_SLOTS, groups + 1)
    free = np.zeros((machines, resources), dtype=np.int64)
    free[:count] = nodes.free
    on_host = np.zeros((machines, max(len(problem.hosts.present), 1)), dtype=np.int32)
    on_host[:count, : len(problem.hosts.present)] = problem.hosts.present.T
    pods = int(nodes.pod_count.sum())
    return State(
        kept=np.ones(count, dtype=np.uint8),
        kind=np.full(machines, CLOSED, dtype=np.int32),
        free=free,
        on_host=on_host,
        in_domain=np.array(problem.spreads.present, dtype=np.int32, order="C"),
        guest_group=np.zeros((machines, slots), dtype=np.int32),
        guest_count=np.zeros((machines, slots), dtype=np.int32),
        guests=np.zeros(machines, dtype=np.int32),
        waiting=np.zeros(groups, dtype=np.int64),
        waiting_in_rule=np.zeros(len(problem.spreads.key), dtype=np.int64),
        pool_left=np.array(problem.pools.left, dtype=np.float64, order="C"),
        pool_gone=np.zeros(len(problem.pools.left), dtype=np.int64),
        log=np.zeros((6 * pods + 6 * machines + 4 * len(problem.kinds.price) + 64, 3), dtype=np.int64),
        steps=np.zeros(1, dtype=np.int64),
        cost=np.array([problem.price]),
    )


def _scratch(problem: FleetProblem, state: State) -> Scratch:
    groups, machines, resources = len(state.waiting), len(state.kind), state.free.shape[1]
    return Scratch(
        order=np.zeros(groups, dtype=np.int32),
        rank=np.zeros(groups, dtype=np.float64),
        weights=np.zeros(resources, dtype=np.float64),
        scale=np.zeros(resources, dtype=np.float64),
        arena=np.zeros(machines, dtype=np.int32),
        stamp=np.full(machines, -1, dtype=np.int64),
        left=np.zeros(resources, dtype=np.int64),
        asked=np.zeros(resources, dtype=np.int64),
        blocked=np.zeros(len(problem.kinds.price), dtype=np.uint8),
        needed=np.zeros(groups, dtype=np.int32),
    )


def _price(problem: FleetProblem, best: Best) -> float:
    """$/h of all machines of a fleet."""
    gone = problem.nodes.price[best.kept == 0].sum()
    return float(problem.price - gone + problem.kinds.price[best.kind[best.kind != CLOSED]].sum())


def _target(problem: FleetProblem, best: Best) -> TargetFleet:
    count = len(problem.nodes.price)

    def guests(machine: int) -> dict[int, int]:
        used = int(best.guests[machine])
        groups, counts = best.guest_group[machine, :used].tolist(), best.guest_count[machine, :used].tolist()
        return dict(sorted(zip(groups, counts, strict=True)))

    gone = np.flatnonzero(best.kept == 0)
    new = [int(machine) for machine in np.flatnonzero(best.kind != CLOSED)]
    return TargetFleet(
        gone=tuple(gone.tolist()),
        hosts=tuple(TargetMachine(node, guests(node)) for node in np.flatnonzero(best.guests[:count]).tolist()),
        new=tuple(TargetMachine(int(best.kind[machine]), guests(machine)) for machine in new),
        price=_price(problem, best),
        cost=float(best.cost[0]),
    )
