"""What-ifs leave no trace, and none of them changes the answer of another."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.factories import affinity_to, node, pod
from tests.packing import placing
from tests.packing.scenarios import Scenario, pods
from tests.packing.test_agreement import comparable
from tests.strategies import Cluster, clusters

from karpool.cluster.snapshot import Snapshot
from karpool.packing.engine import Engine
from karpool.packing.layout import cluster_columns
from karpool.packing.result import PlacementResult

CLUSTERS = clusters(in_motion=True, choosy=True)


def engine_for(cluster: Cluster) -> Engine:
    return Engine(Snapshot(cluster.objects), cluster.catalog)


def columns(engine: Engine) -> dict[str, bytes]:
    """Every array of the snapshot, bit by bit."""
    return {
        name: engine.memory[name].tobytes() for name in sorted(cluster_columns(engine.snapshot, engine.tables.pools))
    }


def removed(engine: Engine, nodes: list[int]) -> PlacementResult:
    """What would become of the pods of some nodes."""
    snapshot = engine.snapshot
    rows = [row for node in nodes for row in snapshot.pods_on(node) if snapshot.pods.get(row).reschedulable]
    with engine.what_if() as trial:
        trial.remove(nodes)
        return trial.place(rows).result()


def sets_of_nodes(engine: Engine, chance: Random) -> list[list[int]]:
    """Every node alone, and a few of them together."""
    rows = sorted(engine.snapshot.nodes.rows.values())
    several = [chance.sample(rows, min(len(rows), chance.randint(2, 4))) for _ in range(4)]
    return [[row] for row in rows] + several


@examples(40)
@given(CLUSTERS, st.randoms(use_true_random=False))
def test_a_what_if_that_is_undone_leaves_every_array_as_it_was(cluster: Cluster, chance: Random) -> None:
    engine = engine_for(cluster)
    untouched = columns(engine)
    for nodes in sets_of_nodes(engine, chance):
        removed(engine, nodes)
        assert columns(engine) == untouched


@pytest.mark.slow
@examples(40)
@given(CLUSTERS, st.randoms(use_true_random=False))
def test_the_order_of_what_ifs_does_not_matter(cluster: Cluster, chance: Random) -> None:
    engine = engine_for(cluster)
    asked = sets_of_nodes(engine, chance)
    first: dict[int, Any] = {number: comparable(removed(engine, nodes)) for number, nodes in enumerate(asked)}
    again = [*range(len(asked)), *range(len(asked))]
    chance.shuffle(again)
    for number in again:
        assert comparable(removed(engine, asked[number])) == first[number]
    for number, nodes in enumerate(asked[-2:], start=len(asked) - 2):
        assert comparable(removed(engine_for(cluster), nodes)) == first[number]


def test_what_a_second_run_of_a_what_if_finds_full_is_not_full_in_the_next() -> None:
    large, small = pod("large-1", cpu="3"), pod("small-1", cpu="2")
    scenario = Scenario(name="", pods=[large, small], nodes=[node("n1")], pools=[])
    engine = Engine(Snapshot(scenario.objects), scenario.catalog)
    rows = engine.snapshot.pods.rows
    with engine.what_if() as trial:
        assert trial.place([rows[large.key]]).unplaced == []
        assert trial.place([rows[small.key]]).unplaced == [rows[small.key]]
    with engine.what_if() as trial:
        assert trial.place([rows[small.key]]).unplaced == []


def test_a_class_with_more_candidates_than_are_listed_finds_the_last_of_them() -> None:
    crowd = [node(f"n{number:03}", cpu="1") for number in range(300)]
    alone = pods(300, cpu="700m", anti=[affinity_to({"app": "web"})])
    scenario = Scenario(name="", pods=alone, nodes=crowd, pools=[])
    answer = placing.place(scenario.objects, scenario.catalog, pods=alone)
    assert sorted(map(str, answer.placed.values())) == [entry.name for entry in crowd]


def test_an_exception_in_a_what_if_undoes_it_all_the_same() -> None:
    scenario = Scenario(name="", pods=[pod("web-1", node="n1")], nodes=[node("n1"), node("n2")])
    engine = Engine(Snapshot(scenario.objects), scenario.catalog)
    untouched = columns(engine)
    with pytest.raises(KeyError):
        fail_halfway(engine)
    assert columns(engine) == untouched


def fail_halfway(engine: Engine) -> None:
    with engine.what_if() as trial:
        trial.remove([0])
        trial.place([0])
        trial.remove([engine.snapshot.nodes.rows["nobody"]])
