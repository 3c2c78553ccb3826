"""Where a volume says that it is."""

import pytest
from msgspec.structs import replace
from tests.factories import Z1, Z2, Z3, host_path_volume, local_volume, node, node_term, pod, pv, pvc

from karpool.cluster.changes import volume_changed
from karpool.cluster.snapshot import Snapshot
from karpool.cluster.volumes import VolumeIndex
from karpool.live.redaction import redacted
from karpool.model.labels import HOSTNAME, ZONE
from karpool.model.objects import Objects
from karpool.model.pod import DiskOfCloud, Volume
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


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        (host_path_volume("v"), {"a"}),
        (labelled(host_path_volume("v"), **{ZONE: Z1}), {"a"}),
        (local_volume("v", None), {"a"}),
        (local_volume("v", "b"), {"b"}),
        (pv("v"), None),
    ],
)
def test_a_directory_that_does_not_say_of_which_host_is_on_that_of_its_pod(
    volume: PersistentVolume, expected: set[str] | None
) -> None:
    index = VolumeIndex(Objects(persistent_volumes=(volume,), persistent_volume_claims=(pvc("c", volume="v"),)))
    found = [place.get(HOSTNAME) for place in index.needs(pod("web-1", node="a", claims=["c"])).alternatives]
    assert [set(host.values) for host in found if host is not None] == ([] if expected is None else [expected])


def test_a_pod_keeps_to_the_host_on_which_it_finds_its_directory_only_once_it_is_there() -> None:
    waiting = pod("web-1", claims=["c"])
    snapshot = Snapshot(
        Objects(
            nodes=(node("a"), node("b")),
            pods=(waiting,),
            persistent_volumes=(host_path_volume("v"),),
            persistent_volume_claims=(pvc("c", volume="v"),),
        )
    )
    assert hosts_of(snapshot) == []
    for name in ("a", "b"):
        snapshot.put_pod(replace(waiting, spec=replace(waiting.spec, node_name=name)))
        assert hosts_of(snapshot) == [name]


def hosts_of(snapshot: Snapshot) -> list[str]:
    row = snapshot.pods.rows["default/web-1"]
    rules = snapshot.classes.constraints[int(snapshot.pods.class_of[row])]
    return [host for place in rules.volumes for host in place[HOSTNAME].values]


def test_a_redacted_disk_of_a_pod_still_counts_and_has_no_id() -> None:
    disk = Volume(name="d", aws_elastic_block_store=DiskOfCloud(volume_id="vol-secret"))
    (shown,) = redacted(Objects(pods=(pod(volumes=[disk]),))).pods
    assert "vol-secret" not in str(shown)
    (driver, _), *others = VolumeIndex(Objects()).needs(shown).attached
    assert (driver, others) == ("ebs.csi.aws.com", [])
