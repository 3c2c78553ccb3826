"""The loops of a plain scheduler find what a look at one node after the other finds."""

from math import floor, log
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import row, table

from karpool.packing.kernels.fullness import NOBODY, best, mask_nodes_with_room

MOST = 8


@given(st.randoms(use_true_random=False))
def test_nodes_with_room_are_found(chance: Random) -> None:
    nodes, shapes, resources = chance.randint(0, 12), 3, chance.randint(1, 4)
    usable = np.array([chance.randrange(2) for _ in range(nodes + 4)], dtype=np.uint8)
    suited = np.array([chance.randrange(2) for _ in range(shapes)], dtype=np.uint8)
    shape = np.array([chance.randrange(shapes) for _ in range(nodes + 4)], dtype=np.int32)
    free = np.array([[chance.randint(-1, MOST) for _ in range(resources)] for _ in range(nodes + 4)], dtype=np.int64)
    wanted = np.array([chance.randint(0, MOST // 2) for _ in range(resources)], dtype=np.int64)
    mask = np.zeros(nodes, dtype=np.bool_)
    expected = [
        bool(usable[node] and suited[shape[node]] and all(free[node, at] >= wanted[at] for at in range(resources)))
        for node in range(nodes)
    ]
    assert mask_nodes_with_room(usable, suited, shape, free, wanted, mask) == any(expected)
    assert mask.tolist() == expected


@given(st.randoms(use_true_random=False), st.booleans())
def test_the_best_node_is_found(chance: Random, packs: bool) -> None:  # noqa: FBT001 - hypothesis gives it
    nodes = chance.randint(0, 12)
    order = np.array(chance.sample(range(nodes), nodes), dtype=np.int32)
    mask = np.array([chance.random() < 0.7 for _ in range(nodes)], dtype=np.bool_)
    room = np.array([[chance.randint(0, MOST) for _ in range(3)] for _ in range(nodes)], dtype=np.int64).reshape(-1, 3)
    taken = np.array([[chance.randint(0, MOST) for _ in range(3)] for _ in range(nodes)], dtype=np.int64).reshape(-1, 3)

    avoided = np.array([chance.random() < 0.3 for _ in range(nodes)], dtype=np.uint8)
    zone = np.array([chance.randint(-1, 2) for _ in range(nodes)], dtype=np.int32)
    wanted = np.array([chance.randint(0, MOST // 2) for _ in range(3)], dtype=np.int64)
    alike = np.array([chance.randint(0, 3) for _ in range(nodes if chance.random() < 0.7 else 0)], dtype=np.int64)
    open_ = [node for node in order.tolist() if mask[node]]

    def shares(node: int, more: int) -> list[float]:
        asked = ((taken[node, at] + more * wanted[at], room[node, at]) for at in (0, 1))
        return [min(1.0, float(used) / max(float(whole), 1)) for used, whole in asked]

    def fit(node: int) -> int:
        whole = [(int(room[node, at]), min(int(room[node, at]), int(taken[node, at] + wanted[at]))) for at in (0, 1)]
        return sum(100 * (used if packs else size - used) // size for size, used in whole if size) // 2

    def evenness(node: int) -> int:
        even = [int((1 - abs(cpu - memory) / 2) * 100) for cpu, memory in (shares(node, 0), shares(node, 1))]
        return 50 + (50 + even[1] - even[0]) // 2 if wanted[0] or wanted[1] else 0

    def crowd(node: int) -> int:
        zones = {int(zone[other]) for other in open_} - {-1}
        found = alike[node] * log(len(open_) + 2) + 2
        if zone[node] >= 0:
            found += sum(alike[other] for other in range(nodes) if zone[other] == zone[node]) * log(len(zones) + 2) + 4
        return floor(found + 0.5)

    def score(node: int) -> int:
        crowds = [crowd(other) for other in open_] if len(alike) else [0]
        spread = 100 * (max(crowds) + min(crowds) - crowd(node)) // max(crowds) if max(crowds) else 0
        return fit(node) + evenness(node) + 2 * spread - 300 * int(avoided[node])

    expected = max(open_, key=score, default=NOBODY)
    assert best(order, mask, taken, room, avoided, zone, wanted, alike, packs) == expected


EVEN = (1, 1)


@table(
    row("the emptier node", taken=[(4, 4), (2, 2)], wanted=EVEN, alike=(), zone=(0, 0), expected=1),
    row("the first of equals", taken=[(2, 2), (2, 2)], wanted=EVEN, alike=(), zone=(0, 0), expected=0),
    row("more even use", taken=[(1, 3), (3, 1)], wanted=(2, 0), alike=(), zone=(0, 0), expected=0),
    row("fewer pods of the workload", taken=[(0, 0), (4, 4)], wanted=EVEN, alike=(2, 0), zone=(0, 0), expected=1),
    row("fewer in the zone", taken=[(0, 0)] * 3, wanted=EVEN, alike=(0, 2, 0), zone=(0, 0, 1), expected=2),
)
def test_a_scheduler_likes(
    taken: list[tuple[int, int]], wanted: tuple[int, int], alike: tuple[int, ...], zone: tuple[int, ...], expected: int
) -> None:
    count = len(taken)
    chosen = best(
        np.arange(count, dtype=np.int32),
        np.ones(count, dtype=np.bool_),
        np.array(taken, dtype=np.int64),
        np.full((count, 2), 8, dtype=np.int64),
        np.zeros(count, dtype=np.uint8),
        np.array(zone, dtype=np.int32),
        np.array(wanted, dtype=np.int64),
        np.array(alike, dtype=np.int64),
        False,  # noqa: FBT003 - as in the kernel
    )
    assert chosen == expected
