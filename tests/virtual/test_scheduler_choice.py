"""What is foreseen of a scheduler is what the scheduler of a virtual cluster does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.factories import claim_for, node, node_pool, pod
from tests.strategies import Cluster, clusters

from karpool.cluster.codes import EXPECTED, PRESENT
from karpool.cluster.nodes import StateNode
from karpool.cluster.snapshot import Snapshot
from karpool.model.objects import Objects
from karpool.packing.kernels.fullness import NOBODY
from karpool.packing.scheduler_choice import SchedulerChoice, favourite
from karpool.virtual.control_plane.feasible_nodes import feasible_nodes


def scheduled(snapshot: Snapshot, rows: list[int], gone: int, *, packs: bool) -> list[int]:
    """Where a scheduler puts pods one by one, as they leave a node that takes none any more."""
    nodes, places = snapshot.nodes, []
    for row in rows:
        snapshot.bindings.unbind(row)
        live = nodes.live[: len(nodes.states)]
        usable = ((live == PRESENT) | (live == EXPECTED)).astype(np.uint8)
        usable[gone] = 0
        mask = feasible_nodes(snapshot, row, usable)
        place = favourite(snapshot, row, mask, np.zeros_like(usable), packs=packs)
        places.append(place)
        if place != NOBODY:
            snapshot.move(row, nodes.get(place).name)
    return places


@pytest.mark.slow
@given(clusters(), st.booleans(), st.randoms(use_true_random=False))
def test_pods_come_where_the_scheduler_puts_them(cluster: Cluster, packs: bool, chance: "np.random.Generator") -> None:  # noqa: FBT001 - hypothesis gives it
    snapshot = Snapshot(cluster.objects)
    full = [row for row in snapshot.nodes.rows.values() if snapshot.nodes.pods[row]]
    if not full:
        return
    gone = chance.choice(full)
    pods = [
        row for row in snapshot.pods_on(gone) if snapshot.pods.get(row).reschedulable and snapshot.pods.counted[row]
    ]
    foreseen = SchedulerChoice(snapshot, pods, without=[gone]).places(pods, packs=packs)
    assert foreseen == scheduled(snapshot, pods, gone, packs=packs)


def three_nodes() -> Snapshot:
    """A node with a pod, a fuller one, and an empty one."""
    nodes = [node(name, cpu=4, memory="8Gi") for name in "abc"]
    pods = [pod("moves", node="a", cpu=1), pod("stays", node="b", cpu=2)]
    return Snapshot(Objects(nodes=tuple(nodes), pods=tuple(pods), node_pools=(node_pool(),)))


def place_of(snapshot: Snapshot, **rest: object) -> str:
    row, rows = snapshot.pods.rows["default/moves"], snapshot.nodes.rows
    choice = SchedulerChoice(snapshot, [row], without=[rows["a"]], **rest)  # type: ignore[arg-type]
    place = choice.places([row])[0]
    return "new" if place == choice.first_new else snapshot.nodes.get(place).name


def test_the_emptiest_node_is_chosen() -> None:
    assert place_of(three_nodes()) == "c"


def test_a_node_that_asks_pods_to_stay_away_is_chosen_last() -> None:
    snapshot = three_nodes()
    assert place_of(snapshot, avoided=[snapshot.nodes.rows["c"]]) == "b"


def test_a_node_that_is_to_come_is_among_the_choices() -> None:
    snapshot = three_nodes()
    snapshot.remove_node("c")
    coming = node("later", cpu=8, memory="16Gi")
    before = len(snapshot.nodes.rows)
    assert place_of(snapshot, new=[StateNode(coming, claim_for(coming))]) == "new"
    assert len(snapshot.nodes.rows) == before
