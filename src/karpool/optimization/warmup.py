"""Compile all kernels before they are needed: those of the engine, and those of the search on a very small fleet."""

import numpy as np

from karpool.optimization.problem import (
    FleetProblem,
    Groups,
    HostRules,
    Kinds,
    Lists,
    Nodes,
    Pools,
    SpreadRules,
)
from karpool.optimization.search import Wish, resumed, search
from karpool.packing import warmup


def warm_up() -> None:
    """Run every kernel once; the compiled code stays on disk."""
    warmup.warm_up()
    search(_fleet(), eviction_price=0.0, seed=0, moves=10, anew=True)
    one, none = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    # A wish by which nothing goes is answered without the kernel.
    wish = Wish(going=one, kinds=none, guests=np.zeros((0, 3), dtype=np.int64))
    resumed(_fleet(), wish, eviction_price=0.0, seed=0, moves=0)


def _fleet() -> FleetProblem:
    """One node with one pod, and one kind of new node that is cheaper."""
    whole, small, none = np.int64, np.int32, Lists(np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int32))
    one = Lists(np.array([0, 1], dtype=np.int64), np.zeros(1, dtype=np.int32))
    yes = np.ones(1, dtype=np.bool_)
    suits = np.ones((1, 1), dtype=np.uint8)
    zero = np.zeros(1, dtype=small)
    return FleetProblem(
        groups=Groups(
            requests=np.ones((1, 1), dtype=whole),
            signature=zero,
            loose_signature=zero,
            weight=np.ones(1),
            exempt=yes,
            modelled=yes,
        ),
        nodes=Nodes(
            price=np.ones(1),
            movable=yes,
            searchable=yes,
            takes=np.full(1, 2, dtype=np.int8),
            free=np.ones((1, 1), dtype=whole),
            shape=zero,
            domain=np.zeros((1, 1), dtype=small),
            pool=zero,
            capacity=np.full((1, 1), 2, dtype=whole),
            spot=~yes,
            machine=zero,
            pods=one,
            pod_count=np.ones(1, dtype=small),
        ),
        kinds=Kinds(
            price=np.full(1, 0.5),
            worst=np.full(1, 0.5),
            room=np.ones((1, 1), dtype=whole),
            domain=np.zeros((1, 1), dtype=small),
            pool=zero,
            capacity=np.ones((1, 1), dtype=whole),
            spot=~yes,
            machine=zero,
            most=np.full(1, np.inf),
            rank=zero,
        ),
        hosts=HostRules(
            caps=none,
            most=np.zeros(0, dtype=small),
            required=np.zeros(0, dtype=np.bool_),
            counts=none,
            present=np.zeros((0, 1), dtype=small),
        ),
        spreads=SpreadRules(
            owned=none,
            counts=none,
            key=np.zeros(0, dtype=small),
            mode=np.zeros(0, dtype=np.int8),
            skew=np.zeros(0, dtype=small),
            least_domains=np.zeros(0, dtype=small),
            present=np.zeros((0, 1), dtype=small),
            eligible=np.zeros((0, 1), dtype=np.bool_),
            steady=np.zeros(0, dtype=np.bool_),
        ),
        pools=Pools(allowance=np.ones(1, dtype=whole), left=np.full((1, 1), np.inf)),
        suits_shape=suits,
        suits_kind=suits,
    )
