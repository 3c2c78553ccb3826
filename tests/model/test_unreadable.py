"""Stand-ins: what is kept of an object that cannot be read, and what is marked as unknown."""

import msgspec
import pytest
from tests.factories import claim_for, node, node_claim, pod, pvc
from tests.factories.unreadable import SPOILT, unreadable

from karpool.live.resources import resource_of
from karpool.model.reading.kinds import KINDS
from karpool.model.reading.unreadable import UNKNOWN, stand_in, unidentified, unreadable_reason


def test_a_pod_keeps_its_node_and_the_field_that_cannot_be_read_is_named() -> None:
    left = unreadable(pod("web-1", namespace="shop", node="a", labels={"app": "web"}))
    assert (left.key, left.spec.node_name, left.metadata.labels) == ("shop/web-1", "a", {"app": "web"})
    assert left.unreadable.startswith("spec.containers: expected a list")
    reason = unreadable_reason("Pod", left)
    assert (reason.code, reason.object) == ("Unreadable", "Pod shop/web-1")
    assert reason.message.startswith("cannot be read: spec.containers")


@pytest.mark.parametrize("spec", [{"nodeName": 7}, "none", ["a"]])
def test_a_pod_whose_node_cannot_be_read_may_be_on_any(spec: object) -> None:
    assert unreadable(pod("web-1", node="a"), spec=spec).spec.node_name == UNKNOWN


def test_a_pod_that_waits_for_a_node_is_on_none() -> None:
    assert unreadable(pod("web-1", pending=True)).spec.node_name == ""


def test_a_pod_that_has_finished_is_still_known_to_have() -> None:
    done = pod("web-1", node="a")
    ended = msgspec.structs.replace(done, status=msgspec.structs.replace(done.status, phase="Succeeded"))
    assert unreadable(ended).terminal
    assert not unreadable(done, status__phase="Dancing").terminal


def test_what_pairs_a_node_with_its_claim_is_kept() -> None:
    made = node("a", taints=["x"])
    assert unreadable(made).spec == made.spec
    claim = claim_for(made)
    assert unreadable(claim).status.node_name == "a"
    assert unreadable(claim).status.provider_id == made.spec.provider_id
    assert unreadable(claim).metadata.finalizers == claim.metadata.finalizers


def test_a_claim_on_a_volume_keeps_the_name_of_the_volume() -> None:
    assert unreadable(pvc("data", volume="disk")).spec.volume_name == "disk"


@pytest.mark.parametrize("kind", SPOILT)
@pytest.mark.parametrize("raw", [b"", b"7", b"[]", b'{"metadata":{"name":7}}', b'{"metadata":[]}', b"{" * 3000])
def test_an_object_without_a_name_that_can_be_read_may_be_any(kind: str, raw: bytes) -> None:
    assert unidentified(stand_in(KINDS[kind], raw, "is no object"))


def test_a_stand_in_survives_a_snapshot_file() -> None:
    left = unreadable(node_claim("a"))
    again = resource_of(type(left)).read(msgspec.json.encode(left))
    assert again == left


def test_an_object_that_can_be_read_is_not_marked() -> None:
    assert not pod("web-1").unreadable
