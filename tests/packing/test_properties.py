"""What holds for the engine on any cluster: nobody's rules are broken, and nobody is refused for nothing."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed
from tests.checker import Placement, State, could_place, narrowed, state_of, template_of, violations, with_pod_bound
from tests.examples import examples
from tests.packing import placing, twin
from tests.packing.test_agreement import comparable, movers
from tests.strategies import Cluster, clusters

from karpool.cluster.pairing import join
from karpool.model.pod import Pod


@st.composite
def trials(draw: st.DrawFn, *, choosy: bool = False) -> tuple[Cluster, set[str]]:
    """A cluster, and nodes that would be gone."""
    cluster = draw(clusters(in_motion=True, choosy=choosy))
    names = sorted(state.name for state in join(cluster.objects.nodes, cluster.objects.node_claims))
    return cluster, draw(st.sets(st.sampled_from(names), max_size=3))


def before(cluster: Cluster, gone: set[str], moving: list[Pod]) -> State:
    """The cluster as the checker sees it without the pods that look for a place."""
    keys = {pod.key for pod in moving}
    staying = tuple(pod for pod in cluster.objects.pods if pod.key not in keys)
    return state_of(changed(cluster.objects, pods=staying), gone=gone, types=cluster.catalog.types)


def followed(cluster: Cluster, gone: set[str]) -> tuple[State, list[Placement], list[Pod]]:
    """The state before, the placements in their order, and who was left over; the twin tells the engine's order."""
    moving = movers(cluster, gone)
    asked: dict[str, Any] = {"pods": moving, "gone": gone}
    answer, steps = twin.follow(cluster.objects, cluster.catalog, **asked)
    assert comparable(placing.place(cluster.objects, cluster.catalog, **asked)) == comparable(answer)
    state = before(cluster, gone, moving)
    placements = [Placement(successor(step.pod), machine_at(step, cluster, state)) for step in steps]
    return state, placements, [pod for pod in moving if pod.key in answer.unplaced]


def successor(pod: Pod) -> Pod:
    """Who runs in the new place: for a pod that is about to end, the one that comes after it."""
    return changed(pod, metadata=changed(pod.metadata, deletion_timestamp=None))


def machine_at(step: twin.Step, cluster: Cluster, state: State) -> Any:
    """The machine of a step as it looks with the pod on it."""
    if isinstance(step.place, str):
        return state.machines[step.place]
    pool = next(pool for pool in cluster.objects.node_pools if pool.name == step.pool)
    template = template_of(pool, cluster.catalog.types, name=f"new node {step.place}")
    assert template is not None
    return narrowed(template, step.requirements, step.types)


@examples(60)
@given(trials(choosy=True))
def test_no_placement_breaks_a_rule(trial: tuple[Cluster, set[str]]) -> None:
    state, placements, _ = followed(*trial)
    assert violations(state, placements) == []


@examples(60)
@given(trials())
def test_a_pod_is_refused_only_where_no_place_is_legal(trial: tuple[Cluster, set[str]]) -> None:
    state, placements, refused = followed(*trial)
    for placement in placements:
        state = with_pod_bound(state, placement)
    assert {pod.key: could_place(pod, state) for pod in refused} == {pod.key: [] for pod in refused}
