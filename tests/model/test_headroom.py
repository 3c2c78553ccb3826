"""How much room a CapacityBuffer asks for, and with which pods."""

from typing import Any

import msgspec
import pytest
from tests.factories import pod
from tests.factories.buffers import capacity_buffer, deployment, pod_template

from karpool.model.capacity_buffer import CapacityBuffer
from karpool.model.headroom import MOST_PODS, headroom_of, with_headroom
from karpool.model.objects import Objects
from karpool.model.pod import EphemeralVolume, Volume
from karpool.model.reading.decoding import read_object
from karpool.model.reading.kinds import KINDS

CHUNK: dict[str, Any] = {"cpu": "1500m", "memory": None}


def of(buffer: CapacityBuffer, replicas: int | None = 25) -> tuple[int, str]:
    """How many pods a buffer asks for, and the reason of its condition."""
    (headroom,) = headroom_of(
        Objects(
            capacity_buffers=(buffer,),
            pod_templates=(pod_template(**CHUNK),),
            deployments=(deployment("web", replicas, **CHUNK),),
        )
    )
    return len(headroom.pods), headroom.reason


WEB = "Deployment/web"
SIZES = {
    "a share": (capacity_buffer(workload=WEB, percentage=20), 25, 5),
    "a share is rounded up": (capacity_buffer(workload=WEB, percentage=20), 26, 6),
    "a share is one at least": (capacity_buffer(workload=WEB, percentage=1), 3, 1),
    "one replica if nobody says how many": (capacity_buffer(workload=WEB, percentage=20), None, 1),
    "a share of none": (capacity_buffer(workload=WEB, percentage=20), 0, 0),
    "no share": (capacity_buffer(workload=WEB, percentage=0), 25, 0),
    "the larger is the share": (capacity_buffer("b", 3, workload=WEB, percentage=20), 25, 5),
    "the larger is the number": (capacity_buffer("b", 9, workload=WEB, percentage=20), 25, 9),
    "limits bind": (capacity_buffer("b", 3, workload=WEB, percentage=20, limits={"cpu": 4}), 25, 2),
    "limits that do not bind": (capacity_buffer("b", 3, template="chunk", limits={"cpu": 9}), 0, 3),
    "limits alone": (capacity_buffer(template="chunk", limits={"cpu": 7}), 0, 4),
    "limits of what no pod asks for": (capacity_buffer(template="chunk", limits={"memory": "1Gi"}), 0, 0),
    "limits of another thing": (capacity_buffer("b", 2, template="chunk", limits={"memory": 1}), 0, 2),
    "a template has no share": (capacity_buffer("b", 3, template="chunk", percentage=50), 25, 3),
    "never so many": (capacity_buffer("b", 10**9, template="chunk"), 25, MOST_PODS),
}


@pytest.mark.parametrize(("buffer", "replicas", "wanted"), SIZES.values(), ids=SIZES)
def test_a_buffer_asks_for(buffer: CapacityBuffer, replicas: int | None, wanted: int) -> None:
    assert of(buffer, replicas) == (wanted, "Resolved")


@pytest.mark.parametrize(
    ("buffer", "reason"),
    [
        (capacity_buffer("b", 1, template="gone"), "PodTemplateNotFound"),
        (capacity_buffer("b", 1, workload="Deployment/gone"), "ScalableRefNotFound"),
        (capacity_buffer("b", 1, workload="StatefulSet/web"), "ScalableRefNotFound"),
        (capacity_buffer("b", 1, workload="Job/web"), "ResolutionFailed"),
        (capacity_buffer("b", 1, workload="Deployment.example.com/web"), "ResolutionFailed"),
        (capacity_buffer("b", 1), "ResolutionFailed"),
        (capacity_buffer("b", 1, template="chunk", namespace="other"), "PodTemplateNotFound"),
    ],
)
def test_a_buffer_without_its_template_asks_for_nothing(buffer: CapacityBuffer, reason: str) -> None:
    assert of(buffer) == (0, reason)


def test_pods_of_headroom_are_those_of_the_template_without_volumes_that_must_be_there_first() -> None:
    scratch = Volume(name="scratch", ephemeral=EphemeralVolume())
    template = pod_template(labels={"app": "web"}, claims=["data"], volumes=[scratch, Volume(name="tmp")])
    objects = Objects(
        pods=(pod(),), pod_templates=(template,), capacity_buffers=(capacity_buffer("spare", 2, template="chunk"),)
    )
    real, *made = with_headroom(objects).pods
    assert [entry.key for entry in made] == ["default/capacity-buffer:spare-1", "default/capacity-buffer:spare-2"]
    assert [entry.metadata.uid for entry in made] == ["buffer-spare-1", "buffer-spare-2"]
    assert all(entry.is_headroom and entry.waits_for_node and entry.provisionable for entry in made)
    assert not real.is_headroom
    assert made[0].metadata.labels == {"app": "web"}
    assert [volume.name for volume in made[0].spec.volumes] == ["tmp"]


def test_no_manifest_is_read_as_headroom() -> None:
    text = msgspec.json.encode({"kind": "Pod", "metadata": {"name": "capacity-buffer-spare-1"}, "isHeadroom": True})
    read = read_object(text, KINDS["Pod"], "v1").object
    assert read is not None
    assert not getattr(read, "is_headroom", True)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"podTemplateRef": {"name": "a"}}, "spec"),
        ({"podTemplateRef": {"name": "a"}, "scalableRef": {"kind": "Deployment", "name": "b"}, "replicas": 1},
         "spec.scalableRef"),
        ({"scalableRef": {"kind": "Deployment", "name": "b"}, "percentage": -1}, "spec.percentage"),
        ({"podTemplateRef": {"name": "a"}, "replicas": -1}, "spec.replicas"),
    ],
)  # fmt: skip
def test_what_an_api_server_refuses_is_refused(spec: dict[str, Any], field: str) -> None:
    text = msgspec.json.encode({"metadata": {"name": "spare", "namespace": "default"}, "spec": spec})
    reading = read_object(text, KINDS["CapacityBuffer"], "autoscaling.x-k8s.io/v1beta1")
    assert [flaw.field for flaw in reading.refused] == [field]
