"""Pods that are sent somewhere: the compiled engine and its plain twin agree, and no place breaks a rule."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checker import Placement, violations
from tests.examples import examples
from tests.packing import placing, twin
from tests.packing.test_agreement import comparable, questions
from tests.packing.test_properties import before, machine_at, successor
from tests.packing.twin import Wishes
from tests.strategies import ZONES, Cluster

from karpool.cluster.snapshot import Snapshot
from karpool.model.labels import CAPACITY_TYPE, ON_DEMAND, SPOT, ZONE
from karpool.model.requirements import Requirements
from karpool.packing.directions import DirectedNode
from karpool.packing.engine import Engine


@st.composite
def directed(draw: st.DrawFn) -> tuple[Cluster, dict[str, Any]]:
    """A cluster, what to ask about it, and where most of the pods are sent: to few places, so that they fill up."""
    cluster, asked = draw(questions())
    snapshot = Snapshot(cluster.objects, preferences=asked["options"].preferences)
    new_nodes = tuple(draw(st.lists(new_node(cluster), max_size=3)))
    choices = draw(st.lists(st.sampled_from(sorted(snapshot.nodes.rows)), min_size=1, max_size=3))
    places = st.sampled_from([*choices, *range(len(new_nodes))])
    wishes = {
        pod.key: draw(places) for pod in asked["pods"] if pod.key in snapshot.pods.rows and draw(st.integers(0, 5))
    }
    rows, pods = snapshot.pods.rows, snapshot.pods
    kinds = {
        key: (int(pods.class_of[rows[key]]), int(pods.labels_of[rows[key]]), key in asked["exempt"]) for key in wishes
    }
    return cluster, {**asked, "wishes": Wishes(new_nodes, wishes, kinds, every_level=draw(st.booleans()))}


def new_node(cluster: Cluster) -> st.SearchStrategy[DirectedNode]:
    """A new node of some pool, with its zone, its capacity type and its types settled, or not."""
    names = [entry.name for entry in cluster.catalog.types]
    settled = st.fixed_dictionaries(
        {}, optional={ZONE: st.sampled_from(ZONES), CAPACITY_TYPE: st.sampled_from((SPOT, ON_DEMAND))}
    )
    return st.builds(
        DirectedNode,
        pool=st.sampled_from([pool.name for pool in cluster.objects.node_pools]),
        requirements=settled.map(Requirements.of_labels),
        instance_types=st.none() | st.lists(st.sampled_from(names), unique=True).map(tuple),
    )


@pytest.mark.slow
@examples(120)
@given(directed())
def test_engine_and_twin_send_pods_to_the_same_places(question: tuple[Cluster, dict[str, Any]]) -> None:
    cluster, asked = question
    assert comparable(placing.place(cluster.objects, cluster.catalog, **asked)) == comparable(
        twin.place(cluster.objects, cluster.catalog, **asked)
    )


@pytest.mark.slow
@examples(60)
@given(directed())
def test_no_place_that_a_pod_is_sent_to_breaks_a_rule(question: tuple[Cluster, dict[str, Any]]) -> None:
    cluster, asked = question
    asked = {key: asked[key] for key in ("pods", "gone", "wishes")}
    answer, steps = twin.follow(cluster.objects, cluster.catalog, **asked)
    assert comparable(placing.place(cluster.objects, cluster.catalog, **asked)) == comparable(answer)
    state = before(cluster, asked["gone"], asked["pods"])
    placements = [Placement(successor(step.pod), machine_at(step, cluster, state)) for step in steps]
    assert violations(state, placements) == []


@pytest.mark.slow
@examples(40)
@given(directed())
def test_wishes_leave_nothing_behind(question: tuple[Cluster, dict[str, Any]]) -> None:
    """A what-if without directions gives the same answer before and after one that has some."""
    cluster, asked = question
    snapshot = Snapshot(cluster.objects)
    engine = Engine(snapshot, cluster.catalog)
    rows = [snapshot.pods.rows[pod.key] for pod in asked["pods"] if pod.key in snapshot.pods.rows]

    def answer(wishes: Wishes | None) -> object:
        with engine.what_if() as trial:
            trial.uncount(rows)
            directions = None if wishes is None else placing.directions_of(snapshot, wishes)
            return comparable(trial.place(rows, directions=directions).result())

    plain, sent = answer(None), answer(asked["wishes"])
    assert answer(None) == plain
    assert answer(asked["wishes"]) == sent
