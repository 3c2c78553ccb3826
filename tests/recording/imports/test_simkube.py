"""Traces of SimKube in both formats, encoded as its tracer does: maps with names, and keys as each format has them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.recording.imports.replays import history_of, imported, records_of, refused, replayed
from tests.tables import row, table

from karpool.recording import records as r

NOON = 1_763_553_600
DEPLOYMENT = "apps/v1.Deployment"
JOB = "batch/v1.Job"


def template(cpu: str = "900m") -> dict[str, Any]:
    container = {"name": "main", "image": "secret", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}


def deployment(replicas: int, cpu: str = "900m") -> dict[str, Any]:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template(cpu)}
    meta = {"name": "web", "namespace": "shop", "creationTimestamp": "2025-11-19T11:00:00Z"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def job() -> dict[str, Any]:
    meta = {"name": "report", "namespace": "shop"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template("2")}}


def event(after: int, *applied: dict[str, Any], deleted: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"ts": NOON + after, "applied_objs": list(applied), "deleted_objs": list(deleted)}


EVENTS = [
    event(0, deployment(4), job()),
    event(1800, deployment(10)),
    event(3600, deployment(2)),
    event(5400, deleted=(deployment(2),)),
    event(7200),
]
CONFIG = {
    "trackedObjects": {
        DEPLOYMENT: {"podSpecTemplatePath": "/spec/template"},
        JOB: {"podSpecTemplatePaths": ["/spec/template"], "trackLifecycle": True},
    }
}
RAN = [{"Finished": [NOON + 60, NOON + 660]}, {"Running": NOON + 120}, "Empty"]
SECOND = {
    "version": 2,
    "config": CONFIG,
    "events": EVENTS,
    "index": {DEPLOYMENT: {"shop/web": 17}},
    "pod_lifecycles": {(JOB, "shop/report"): {9_223_372_036_854_775_809: RAN}},
}
THIRD = {
    "version": 3,
    "config": CONFIG,
    "events": EVENTS,
    "index": {
        DEPLOYMENT: {"shop/web": {str(NOON): [], str(NOON + 1800): []}},
        JOB: {"shop/report": {str(NOON): [{"lifecycle": life} for life in RAN]}},
    },
}


@pytest.fixture(params=[SECOND, THIRD], ids=["format 2", "format 3"])
def trace(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / "trace.mp"
    file.write_bytes(msgspec.msgpack.encode(request.param))
    return file


def test_objects_are_as_they_were_applied_and_pods_run_as_long_as_they_did(trace: Path, tmp_path: Path) -> None:
    result = imported("simkube", tmp_path / "sk.recording", trace)
    assert "no nodes" in result.stderr
    path = tmp_path / "sk.recording"
    sizes = [history_of(path, at).kinds["Deployment"]["shop/web"]["spec"]["replicas"] for at in (0, 1800, 3600)]
    assert sizes == [4, 10, 2]
    history = history_of(path)
    assert not history.kinds["Deployment"]
    assert history.time == 7200
    assert b"secret" not in msgspec.json.encode(history_of(path, 0).kinds["Deployment"])
    pods = [record for record in records_of(path) if isinstance(record, r.Born | r.Died)]
    assert [(type(record).__name__, record.t) for record in pods] == [("Born", 60), ("Born", 120), ("Died", 660)]


def test_a_trace_is_replayed_on_pools_of_a_scenario(trace: Path, tmp_path: Path) -> None:
    imported("simkube", tmp_path / "sk.recording", trace)
    again = replayed(tmp_path / "sk.recording")["as-recorded"]
    assert again["podsCreated"] == 4 + 6 + 2 + again["evictions"]
    assert again["podsAtEnd"] == 1  # of the Job
    assert again["pendingPodsAtEnd"] == 0
    assert again["nodesLaunched"] >= 1


@table(
    row("no MessagePack", data=b"\xc1\xc1", said="is no trace of SimKube"),
    row("another map", data=msgspec.msgpack.encode({"version": "x"}), said="is no trace of SimKube"),
    row("a new format", data=msgspec.msgpack.encode({**THIRD, "version": 4}), said="format 4, and this Karpool reads"),
    row("events that are none", data=msgspec.msgpack.encode({**THIRD, "events": [1]}), said="that cannot be read"),
    row("no events", data=msgspec.msgpack.encode({**THIRD, "events": []}), said="has no events in it"),
    row("no time", data=msgspec.msgpack.encode({**THIRD, "events": [{"ts": -5}]}), said="has an event at -5"),
    row("a torn file", data=msgspec.msgpack.encode(THIRD)[:200], said="is no trace of SimKube"),
    row("deep nesting", data=b"\x91" * 100_000, said="is no trace of SimKube"),
    row(
        "an object that is none",
        data=msgspec.msgpack.encode({**THIRD, "events": [event(0, {**deployment(1), "spec": {"replicas": "many"}})]}),
        said="has a Deployment that cannot be read",
    ),
)
def test_what_is_no_trace_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "trace.mp"
    file.write_bytes(data)
    assert said in refused(tmp_path / "sk.recording", file, "--from", "simkube")
