"""What pods effectively request, as the scheduler counts it."""

import io
import json
from typing import Any

import pytest

from karpool.model.pod import Pod
from karpool.model.reading.loading import load
from karpool.model.requests import effective_requests
from karpool.wire.quantity import parse_quantity


def pod(spec: dict[str, Any], status: dict[str, Any] | None = None) -> Pod:
    written = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec, "status": status or {}}
    return load(["-"], stdin=io.BytesIO(json.dumps(written).encode())).objects.pods[0]


def asks(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [asks("1"), asks("500m")]}, "1500m"),
        ({"containers": [asks("1")], "initContainers": [asks("3"), asks("2")]}, "3"),
        ({"containers": [asks("1")], "initContainers": [asks("1", restartPolicy="Always"), asks("3")]}, "4"),
        ({"containers": [asks("1")], "initContainers": [asks("3"), asks("1", restartPolicy="Always")]}, "3"),
        ({"containers": [asks("3")], "initContainers": [asks("1", restartPolicy="Always")]}, "4"),
        ({"containers": [asks("1")], "overhead": {"cpu": "250m"}}, "1250m"),
        ({"containers": [asks("1")], "resources": {"requests": {"cpu": "5"}}}, "5"),
        ({"containers": [asks("1")], "resources": {"requests": {"cpu": "5"}}, "overhead": {"cpu": "1"}}, "6"),
        ({"containers": [{"name": "c"}], "resources": {"limits": {"cpu": "3"}}}, "3"),
        ({"containers": [asks("1")], "resources": {"limits": {"cpu": "3"}}}, "1"),
        ({"containers": [asks("1")], "resources": {"limits": {"cpu": "3"}, "requests": {"cpu": "2"}}}, "2"),
    ],
)
def test_requests_are_what_the_scheduler_counts(spec: dict[str, Any], cpu: str) -> None:
    assert effective_requests(pod(spec))["cpu"] == parse_quantity(cpu)


def test_a_container_that_is_being_resized_counts_with_the_larger_amount() -> None:
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}}]}
    assert effective_requests(pod({"containers": [asks("1")]}, status))["cpu"] == parse_quantity("2")


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({"allocatedResources": {"cpu": "6"}}, "6"),
        ({"resources": {"requests": {"cpu": "7"}}, "allocatedResources": {"cpu": "6"}}, "7"),
        ({"allocatedResources": {"cpu": "1"}}, "2"),
    ],
)
def test_a_pod_that_is_being_resized_as_a_whole_counts_with_the_larger_amount(status: dict[str, Any], cpu: str) -> None:
    spec = {"containers": [asks("1")], "resources": {"requests": {"cpu": "2"}}}
    assert effective_requests(pod(spec, status))["cpu"] == parse_quantity(cpu)


def test_in_a_template_a_limit_without_a_request_is_the_request() -> None:
    limited = pod({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}, "requests": {"memory": "1Gi"}}}]})
    assert effective_requests(limited) == {"cpu": parse_quantity("2"), "memory": parse_quantity("1Gi")}
