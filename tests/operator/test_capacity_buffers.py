"""What is written into the status of a CapacityBuffer."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace
from tests.factories.buffers import capacity_buffer, pod_template

from karpool.model.capacity_buffer import CapacityBuffer, CapacityBufferStatus
from karpool.model.headroom import Headroom, headroom_of
from karpool.model.objects import Objects
from karpool.operator.capacity_buffers import status_patch

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)


def headroom(buffer: CapacityBuffer) -> Headroom:
    return headroom_of(Objects(capacity_buffers=(buffer,), pod_templates=(pod_template(),)))[0]


def reasons(patch: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in patch["conditions"]}


@pytest.mark.parametrize(
    ("replicas", "placed", "provisioning"),
    [
        (2, {1: True, 2: True}, ("True", "FitsExistingCapacity")),
        (2, {1: True, 2: False}, ("False", "RequiresNewCapacity")),
        (0, {}, ("False", "BufferEmpty")),
        (2, {1: True}, None),  # the second is so new that no pass has looked for room
    ],
)
def test_whether_there_is_room_is_a_condition(
    replicas: int, placed: dict[int, bool], provisioning: tuple[str, str] | None
) -> None:
    asked = headroom(capacity_buffer("spare", replicas, template="chunk"))
    found = {asked.pods[number - 1].key: fits for number, fits in placed.items()}
    patch = status_patch(asked, found, NOW)
    assert reasons(patch).get("Provisioning") == provisioning
    assert reasons(patch)["ReadyForProvisioning"] == ("True", "Resolved")
    assert (patch["replicas"], patch["podTemplateRef"], patch["podTemplateGeneration"]) == (
        replicas,
        {"name": "chunk"},
        1,
    )


def test_a_buffer_that_cannot_be_resolved_says_why() -> None:
    patch = status_patch(headroom(capacity_buffer("spare", 2, template="gone")), {}, NOW)
    assert reasons(patch) == {
        "ReadyForProvisioning": ("False", "PodTemplateNotFound"),
        "Provisioning": ("False", "NotReadyForProvisioning"),
    }


def test_what_is_written_already_is_not_written_again_and_times_are_those_of_changes() -> None:
    buffer = capacity_buffer("spare", 1, template="chunk")
    asked = headroom(buffer)
    key = asked.pods[0].key
    first = status_patch(asked, {key: False}, NOW)
    written = replace(buffer, status=convert(first, CapacityBufferStatus))
    assert status_patch(headroom(written), {key: False}, NOW) == {}
    later = NOW + timedelta(minutes=1)
    second = status_patch(headroom(written), {key: True}, later)
    times = {entry["type"]: entry["lastTransitionTime"] for entry in second["conditions"]}
    assert times == {"ReadyForProvisioning": "2026-06-15T12:00:00Z", "Provisioning": "2026-06-15T12:01:00Z"}
