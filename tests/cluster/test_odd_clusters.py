"""Clusters as they are after accidents: stale claims, many volumes, and arrays that are too short."""

import numpy as np
import pytest
from msgspec.structs import replace
from tests.factories import Z1, Z2, Z3, claim_for, default_catalog, node, node_term, pod, pv, pvc

from karpool.cluster.pairing import join
from karpool.cluster.snapshot import Snapshot
from karpool.cluster.volumes import VolumeIndex
from karpool.model.labels import ZONE
from karpool.model.objects import Objects
from karpool.packing.engine import Engine
from karpool.packing.kernels.memory import LayoutError


def test_a_stale_claim_does_not_hide_the_node_whose_name_it_still_has() -> None:
    machine = node("n1")
    mine = claim_for(machine)
    stale = replace(
        mine,
        metadata=replace(mine.metadata, name="old", uid="old"),
        status=replace(mine.status, provider_id="fake://gone"),
    )
    for claims in ([stale, mine], [mine, stale]):
        states = join([machine], claims)
        assert [state.name for state in states] == ["n1", "old"]
        assert states[0].claim == mine


def test_two_claims_without_nodes_never_share_a_name() -> None:
    mine = claim_for(node("n1"))
    twin = replace(mine, metadata=replace(mine.metadata, name="n1-b"), status=replace(mine.status, provider_id="x://b"))
    names = [state.name for state in join([], [mine, twin])]
    assert len(set(names)) == 2


def test_many_volumes_with_many_places_each_are_no_explosion() -> None:
    count = 40
    volumes = tuple(
        pv(f"v{at}", terms=[node_term((ZONE, "In", zone)) for zone in (Z1, Z2, Z3)], driver="d") for at in range(count)
    )
    claims = tuple(pvc(f"c{at}", volume=f"v{at}", phase="Bound") for at in range(count))
    index = VolumeIndex(Objects(persistent_volumes=volumes, persistent_volume_claims=claims))
    needs = index.needs(pod("db-1", claims=[f"c{at}" for at in range(count)]))
    assert {tuple(places[ZONE].values) for places in needs.alternatives} == {(Z1,), (Z2,), (Z3,)}


def test_pods_that_differ_only_in_their_own_claims_are_one_class() -> None:
    volumes = tuple(pv(f"v{at}", zones=[Z1], driver="d") for at in range(20))
    claims = tuple(pvc(f"c{at}", volume=f"v{at}", phase="Bound") for at in range(20))
    pods = tuple(pod(f"db-{at}", claims=[f"c{at}"], pending=True) for at in range(20))
    snapshot = Snapshot(Objects(pods=pods, persistent_volumes=volumes, persistent_volume_claims=claims))
    assert snapshot.classes.size == 1


def test_an_array_of_closed_nodes_that_is_too_short_is_refused() -> None:
    cluster = Objects(nodes=tuple(node(f"n{at}") for at in range(40)), pods=(pod("web-1", pending=True),))
    engine = Engine(Snapshot(cluster), default_catalog())
    with engine.what_if() as trial, pytest.raises(LayoutError):
        trial.place([0], closed=np.ones(1, dtype=np.uint8))
