"""What nodes take of their pools' limits is what adding them up gives, also after they changed."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.disruption.scenarios import CATALOG, node, pool_of
from tests.examples import examples

from karpool.cluster.nodes import StateNode
from karpool.cluster.resources import CPU
from karpool.cluster.snapshot import Snapshot
from karpool.model.objects import Objects
from karpool.packing.engine import Engine

POOLS = ("free", "small", "large")
LIMITS = {"small": 20, "large": 50}


def made(chance: Random, name: str) -> StateNode:
    made = node(name, chance.choice(["small", "medium", "large"]), pool=chance.choice(POOLS))
    return StateNode(made.node, made.claim)


def cpus(states: list[StateNode], pool: str) -> int:
    return sum(state.capacity["cpu"].milli for state in states if state.pool == pool)


@examples(30)
@given(st.randoms(use_true_random=False))
def test_limits_follow_the_nodes(chance: Random) -> None:
    pools = [pool_of(name, limits={"cpu": str(LIMITS[name])} if name in LIMITS else None) for name in POOLS]
    snapshot = Snapshot(Objects(node_pools=tuple(pools)))
    engine = Engine(snapshot, CATALOG)
    numbers = {template.name: number for number, template in enumerate(engine.tables.pools.templates)}
    held: dict[str, StateNode] = {}
    for _ in range(40):
        name = f"n{chance.randrange(24)}"
        if name in held and chance.random() < 0.5:
            del held[name]
            snapshot.remove_node(name)
        else:
            held[name] = made(chance, name)
            snapshot.put_node(held[name])
    engine.refresh()
    gone = chance.sample(sorted(held), min(2, len(held)))
    rows = np.array([snapshot.nodes.rows[name] for name in gone], dtype=np.int64)
    without = engine.limits_without(rows, np.arange(len(rows)), len(rows))
    for pool, most in LIMITS.items():
        left = most * 1000 - cpus(list(held.values()), pool)
        assert engine.limits[numbers[pool], CPU] == left
        assert [limits[numbers[pool], CPU] for limits in without] == [left + cpus([held[name]], pool) for name in gone]


@pytest.mark.parametrize("limits", [None, {"cpu": "1000"}])
def test_many_nodes_may_be_taken_away_with_and_without_limits(limits: dict[str, str] | None) -> None:
    made = [node(f"n{number}", "small") for number in range(40)]
    nodes = tuple(entry.node for entry in made if entry.node is not None)
    claims = tuple(entry.claim for entry in made if entry.claim is not None)
    snapshot = Snapshot(Objects(nodes=nodes, node_claims=claims, node_pools=(pool_of(limits=limits),)))
    with Engine(snapshot, CATALOG).what_if() as trial:
        trial.remove([snapshot.nodes.rows["n39"]])
        assert trial.place([]).unplaced == []
