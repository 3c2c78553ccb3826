"""The loops of a plain scheduler find what a look at one node after the other finds."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

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

    def score(node: int) -> float:
        shares = [taken[node, column] / max(room[node, column], 1) for column in (0, 1)]
        used = round(sum(shares) / 2, 6)
        return (used if packs else -used) - 3 * int(avoided[node])

    open_ = [node for node in order.tolist() if mask[node]]
    expected = max(open_, key=score, default=NOBODY)
    assert best(order, mask, taken, room, avoided, packs) == expected
