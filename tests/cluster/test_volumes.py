"""Where a volume says that it is."""

import pytest
from msgspec.structs import replace
from tests.factories import Z1, Z2, Z3, node_term, pod, pv, pvc

from karpool.cluster.changes import volume_changed
from karpool.cluster.volumes import VolumeIndex
from karpool.model.labels import ZONE
from karpool.model.objects import Objects
from karpool.model.storage import PersistentVolume

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


def labelled(volume: PersistentVolume, **labels: str) -> PersistentVolume:
    return replace(volume, metadata=replace(volume.metadata, labels=labels))


def zones(volume: PersistentVolume) -> list[str]:
    """The zones in which a pod with the volume may be; none named: any."""
    index = VolumeIndex(Objects(persistent_volumes=(volume,), persistent_volume_claims=(pvc("c", volume="v"),)))
    found = index.needs(pod("a", claims=["c"])).alternatives
    return sorted({zone for place in found for zone in place[ZONE].values})


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, []),
        ({ZONE: Z1}, [Z1]),
        ({OLD_ZONE: Z1}, [Z1]),
        ({ZONE: f"{Z1}__{Z2}"}, [Z1, Z2]),
        ({"team": "shop"}, []),
    ],
)
def test_labels_say_where_a_volume_of_an_old_driver_is(labels: dict[str, str], expected: list[str]) -> None:
    assert zones(labelled(pv("v"), **labels)) == expected


def test_labels_and_affinity_hold_together() -> None:
    volume = pv("v", terms=[node_term((ZONE, "In", Z2, Z3))])
    assert zones(labelled(volume, **{ZONE: f"{Z1}__{Z2}"})) == [Z2]


def test_a_volume_whose_labels_change_is_looked_at_again() -> None:
    assert volume_changed(pv("v"), labelled(pv("v"), **{ZONE: Z1}))
    assert not volume_changed(pv("v"), pv("v"))
