"""Kubernetes Events on a real API server."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.live import https
from tests.live.control_plane import ControlPlane
from tests.observability.event_recorders import BLOCKED, ManualClock, settle

from karpool.execution.actions import RecordEvent
from karpool.kube.client import Client
from karpool.kube.kubeconfig import find_target
from karpool.observability.events import EventRecorder


def sent(plane: ControlPlane, events: list[RecordEvent], *, waits: tuple[float, ...] = ()) -> list[str]:
    """What became of events that are told one after the other, with so many seconds before each."""
    results: list[str] = []

    async def scenario() -> None:
        async with Client(find_target(kubeconfig=plane.kubeconfig())) as client:
            watch = ManualClock()
            recorder = EventRecorder(
                client,
                uid_of=lambda kind, name: f"uid-of-{kind}-{name}",
                instance="karpool-0",
                per_second=1000,
                on_result=results.append,
                clock=watch,
            )
            number_sent = 0
            for number, event in enumerate(events):
                watch.seconds += waits[number] if waits else 0
                recorder.record(event)
                number_sent = await outcome(recorder, results, number_sent)

    asyncio.run(scenario())
    return results


async def outcome(recorder: EventRecorder, results: list[str], number_sent: int) -> int:
    if recorder.waiting:
        await settle(recorder, results, number_sent + 1)
    return len(results)


def events_about(plane: ControlPlane, name: str, namespace: str = "default") -> list[dict[str, Any]]:
    client = https.Client(plane.kubeconfig())
    answer = client.get(f"/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name={name}")
    items: list[dict[str, Any]] = answer.body["items"]
    return items


def test_an_event_says_what_happened_to_whom(control_plane: ControlPlane) -> None:
    assert sent(control_plane, [replace(BLOCKED, name="whom")]) == ["sent"]
    (event,) = events_about(control_plane, "whom")
    assert event["involvedObject"] == {"kind": "Node", "name": "whom", "uid": "uid-of-Node-whom", "apiVersion": "v1"}
    assert (event["reason"], event["message"], event["type"]) == (BLOCKED.reason, BLOCKED.message, "Warning")
    assert event["source"] == {"component": "karpool"}
    assert (event["reportingComponent"], event["reportingInstance"]) == ("karpool", "karpool-0")
    assert event["count"] == 1
    assert event["firstTimestamp"] == event["lastTimestamp"]


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [("NodeClaim", "karpenter.sh/v1"), ("NodePool", "karpenter.sh/v1")],
)
def test_objects_without_a_namespace_have_their_events_in_default(
    kind: Any, api_version: str, control_plane: ControlPlane
) -> None:
    name = f"cluster-wide-{kind.lower()}"
    assert sent(control_plane, [replace(BLOCKED, kind=kind, name=name)]) == ["sent"]
    (event,) = events_about(control_plane, name)
    assert event["involvedObject"]["apiVersion"] == api_version
    assert "namespace" not in event["involvedObject"]


def test_a_pod_has_its_events_beside_it(control_plane: ControlPlane) -> None:
    assert sent(control_plane, [replace(BLOCKED, kind="Pod", name="kube-system/dns-0")]) == ["sent"]
    (event,) = events_about(control_plane, "dns-0", "kube-system")
    assert event["involvedObject"]["namespace"] == "kube-system"


def test_a_long_message_and_a_long_name_are_shortened(control_plane: ControlPlane) -> None:
    name = "n" * 240
    assert sent(control_plane, [replace(BLOCKED, name=name, message="x" * 3000)]) == ["sent"]
    (event,) = events_about(control_plane, name)
    assert len(event["message"]) == 1024
    assert event["message"].endswith("…")


def test_the_same_event_is_told_once_then_counted_then_told_anew(control_plane: ControlPlane) -> None:
    event = replace(BLOCKED, name="again")
    results = sent(control_plane, [event] * 5, waits=(0, 119, 2, 119, 601))
    assert results == ["sent", "repeated", "sent"]
    assert sorted(event["count"] for event in events_about(control_plane, "again")) == [1, 2]


def test_another_message_is_another_event(control_plane: ControlPlane) -> None:
    events = [replace(BLOCKED, name="other"), replace(BLOCKED, name="other", message="Pod shop/web-0 is in the way")]
    assert sent(control_plane, events) == ["sent", "sent"]


def test_an_event_that_somebody_deleted_is_told_anew(control_plane: ControlPlane) -> None:
    event = replace(BLOCKED, name="deleted")

    async def scenario() -> list[str]:
        results: list[str] = []
        async with Client(find_target(kubeconfig=control_plane.kubeconfig())) as client:
            watch = ManualClock()
            recorder = EventRecorder(client, per_second=1000, on_result=results.append, clock=watch)
            recorder.record(event)
            await settle(recorder, results, 1)
            (there,) = events_about(control_plane, "deleted")
            path = f"/api/v1/namespaces/default/events/{there['metadata']['name']}"
            https.Client(control_plane.kubeconfig()).delete(path)
            watch.seconds += 300
            recorder.record(event)
            await settle(recorder, results, 2)
        return results

    asyncio.run(scenario())
    (there,) = events_about(control_plane, "deleted")
    assert there["count"] == 2
