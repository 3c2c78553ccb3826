"""The compiled engine and its plain twin give the same answer on every cluster."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.examples import examples
from tests.factories import csi_node
from tests.factories.unreadable import unreadable
from tests.packing import placing, twin
from tests.strategies import Cluster, clusters

from karpool.cluster.constraints import Preferences
from karpool.cluster.pairing import join
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.packing.options import MinValues, Options
from karpool.packing.result import PlacementResult


def comparable(answer: PlacementResult) -> object:
    nodes = [
        (n.pool, n.requirements, n.instance_types, frozenset(n.pods), n.reservations, n.min_values_relaxed)
        for n in answer.new_nodes
    ]
    return dict(answer.placed), nodes, sorted(answer.unplaced)


def movers(cluster: Cluster, gone: set[str]) -> list[Pod]:
    """Pods that wait, pods of nodes that would be gone, and pods of nodes that are on their way out."""
    states = join(cluster.objects.nodes, cluster.objects.node_claims)
    left = gone | {state.name for state in states if state.deleting}
    return [pod for pod in cluster.objects.pods if pod.reschedulable and (not pod.bound or pod.spec.node_name in left)]


@st.composite
def questions(draw: st.DrawFn) -> tuple[Cluster, dict[str, Any]]:
    """A cluster and what to ask about it."""
    cluster = draw(clusters(in_motion=True, choosy=True))
    names = sorted(state.name for state in join(cluster.objects.nodes, cluster.objects.node_claims))
    gone = draw(st.sets(st.sampled_from(names), max_size=3))
    pods = movers(cluster, gone)
    options = Options(
        preferences=draw(st.sampled_from(Preferences)),
        min_values=draw(st.sampled_from(MinValues)),
        seed=draw(st.integers(0, 2)),
        reserved_capacity=draw(st.integers(0, 4)) < 4,
    )
    asked = {
        "pods": pods,
        "gone": gone,
        "closed": draw(st.sets(st.sampled_from(names), max_size=3)),
        "exempt": {pod.key for pod in pods[:: draw(st.integers(1, 3))]},
        "options": options,
        "existing_only": draw(st.integers(0, 5)) == 5,
        "reserved_strict": draw(st.booleans()),
    }
    return cluster, asked


@examples(120)
@given(questions())
def test_engine_and_twin_agree(question: tuple[Cluster, dict[str, Any]]) -> None:
    cluster, asked = question
    assert comparable(placing.place(cluster.objects, cluster.catalog, **asked)) == comparable(
        twin.place(cluster.objects, cluster.catalog, **asked)
    )


def sealed(cluster: Cluster, names: set[str]) -> Objects:
    """The cluster with nodes of which nobody can read what they attach."""
    known = {entry.name: entry for entry in cluster.objects.csi_nodes}
    lost = tuple(unreadable(known.get(name, csi_node(name))) for name in sorted(names))
    return replace(cluster.objects, csi_nodes=(*(entry for name, entry in known.items() if name not in names), *lost))


@pytest.mark.slow
@examples(60)
@given(questions(), st.data())
def test_a_sealed_node_takes_no_pod_and_is_there_all_the_same(
    question: tuple[Cluster, dict[str, Any]], data: st.DataObject
) -> None:
    """To the twin such a node is closed, and nobody is exempt."""
    cluster, asked = question
    states = join(cluster.objects.nodes, cluster.objects.node_claims)
    up = sorted(state.name for state in states if state.initialized)
    names = data.draw(st.sets(st.sampled_from(up), max_size=3)) if up else set()
    engine = placing.place(sealed(cluster, names), cluster.catalog, **{**asked, "closed": (), "exempt": ()})
    plain = twin.place(cluster.objects, cluster.catalog, **{**asked, "closed": names, "exempt": ()})
    assert comparable(engine) == comparable(plain)
