"""Audit logs of an API server: the same story at every level, in the form in which its log backend writes it."""

import gzip
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.recording.imports.replays import POOLS, history_of, imported, records_of, refused, replayed
from tests.tables import row, table

from karpool.recording import records as r

BEGIN = datetime.fromisoformat("2026-11-16T08:00:00+00:00")
OF_NODE = "system:node:n1"
SCHEDULER = "system:kube-scheduler"
CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"


def stamp(seconds: float) -> str:
    return f"{BEGIN + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S.%fZ}"


def node() -> dict[str, Any]:
    labels = {
        "kubernetes.io/hostname": "n1",
        "node.kubernetes.io/instance-type": "c-8x-amd64-linux",
        "topology.kubernetes.io/zone": "test-zone-a",
        "karpenter.sh/capacity-type": "on-demand",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }
    room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": labels}, "status": status}


def deployment(replicas: int) -> dict[str, Any]:
    meta = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": replicas}}


def pod(name: str, born: float, **fields: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "secret:1",
        "env": [{"name": "PASSWORD", "value": "secret"}],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
    }
    meta = {
        "name": name,
        "namespace": "shop",
        "labels": {"app": "web", "pod-template-hash": "5d4f"},
        "creationTimestamp": f"{stamp(born)[:19]}Z",
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f", "uid": "u", "controller": True}
        ],
    }
    status = fields.pop("status", {"phase": "Pending"})
    spec = {"containers": [container], **fields.pop("spec", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, **fields}, "spec": spec, "status": status}


def on_node(name: str, born: float, ready: float, **fields: Any) -> dict[str, Any]:
    said = {"type": "Ready", "status": "True", "lastTransitionTime": f"{stamp(ready)[:19]}Z"}
    return pod(name, born, spec={"nodeName": "n1"}, status={"phase": "Running", "conditions": [said]}, **fields)


class Log:
    """Writes events of one level, with the bodies that it has."""

    def __init__(self, level: str) -> None:
        self.level = level
        self.lines: list[str] = []

    def tell(
        self,
        at: float,
        verb: str,
        resource: str,
        name: str,
        *,
        sub: str = "",
        asked: Any = None,
        answer: Any = None,
        user: str = CONTROLLER,
        code: int = 200,
        stage: str = "ResponseComplete",
    ) -> None:
        group = {"deployments": "apps"}.get(resource, "")
        ref = {"resource": resource, "name": name, "apiGroup": group, "apiVersion": "v1", "subresource": sub}
        if resource != "nodes":
            ref["namespace"] = "shop"
        event = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": self.level,
            "auditID": f"{len(self.lines)}",
            "stage": stage,
            "requestURI": f"/api/v1/namespaces/shop/{resource}/{name}",
            "verb": verb,
            "user": {"username": user, "groups": ["system:authenticated"]},
            "sourceIPs": ["10.0.0.1"],
            "objectRef": {key: value for key, value in ref.items() if value},
            "responseStatus": {"metadata": {}, "code": code},
            "requestReceivedTimestamp": stamp(at),
            "stageTimestamp": stamp(at),
        }
        if self.level in ("Request", "RequestResponse") and asked is not None:
            event["requestObject"] = asked
        if self.level == "RequestResponse" and answer is not None:
            event["responseObject"] = answer
        self.lines.append(json.dumps(event))

    def life(self, name: str, born: float) -> None:
        """A pod is made, bound, and runs."""
        asked = pod(name, born)
        self.tell(born, "create", "pods", name, asked=asked, answer=asked, code=201)
        binding = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n1"}}
        done = {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        self.tell(born + 1, "create", "pods", name, sub="binding", asked=binding, answer=done, user=SCHEDULER, code=201)
        runs = on_node(name, born, born + 4)
        self.tell(born + 4, "patch", "pods", name, sub="status", asked={"status": {}}, answer=runs, user=OF_NODE)

    def death(self, name: str, born: float, at: float) -> None:
        """A pod is deleted, and gone when its kubelet says so."""
        leaves = on_node(name, born, born + 4, deletionTimestamp=f"{stamp(at)[:19]}Z", deletionGracePeriodSeconds=30)
        self.tell(at, "delete", "pods", name, answer=leaves)
        self.gone(name, born, at + 6)

    def gone(self, name: str, born: float, at: float) -> None:
        ended = on_node(name, born, born + 4, deletionTimestamp=f"{stamp(at)[:19]}Z", deletionGracePeriodSeconds=0)
        self.tell(at, "delete", "pods", name, answer=ended, user=OF_NODE)


def story(level: str) -> Log:
    """A node, a Deployment of two that grows to three, a pod that is evicted, and one that goes."""
    log = Log(level)
    log.tell(0, "patch", "nodes", "n1", sub="status", answer=node(), user=OF_NODE)
    log.tell(1, "create", "deployments", "web", asked=deployment(2), answer=deployment(2), code=201)
    log.life("web-5d4f-a", 2)
    log.life("web-5d4f-b", 10)
    log.tell(90, "create", "pods", "web-5d4f-c", code=403, asked=pod("web-5d4f-c", 90))
    scale = {"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": {"replicas": 3}}
    log.tell(100, "update", "deployments", "web", sub="scale", asked=scale, answer=scale)
    log.life("web-5d4f-c", 101)
    log.tell(1000, "create", "pods", "web-5d4f-a", sub="eviction", asked={"kind": "Eviction"}, code=201)
    log.life("web-5d4f-d", 1002)
    log.gone("web-5d4f-a", 2, 1030)
    log.tell(2000, "patch", "deployments", "web", asked={"spec": {"replicas": 2}}, answer=deployment(2))
    log.death("web-5d4f-b", 10, 2001)
    log.tell(3600, "get", "pods", "web-5d4f-c")
    return log


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def lives(path: Path) -> list[tuple[str, float]]:
    kinds = (r.Born, r.Bound, r.Leaving, r.Died)
    return [(type(record).__name__, record.t) for record in records_of(path) if isinstance(record, kinds)]


TOLD = [
    ("Born", 2),
    ("Bound", 3),
    ("Born", 10),
    ("Bound", 11),
    ("Born", 101),
    ("Bound", 102),
    ("Leaving", 1000),
    ("Born", 1002),
    ("Bound", 1003),
    ("Died", 1030),
    ("Leaving", 2001),
    ("Died", 2007),
]


def test_a_log_of_whole_answers_has_everything(tmp_path: Path) -> None:
    log = written(tmp_path / "audit.log", *story("RequestResponse").lines)
    imported("audit", tmp_path / "day.recording", log)
    path = tmp_path / "day.recording"
    assert lives(path) == TOLD
    causes = [record.cause for record in records_of(path) if isinstance(record, r.Leaving)]
    assert causes == [r.LeaveCause.EVICTED, r.LeaveCause.DELETED]
    sizes = [history_of(path, at).kinds["Deployment"]["shop/web"]["spec"]["replicas"] for at in (50, 200, 3000)]
    assert sizes == [2, 3, 2]
    history = history_of(path)
    assert history.time == 3600
    assert list(history.kinds["Node"]) == ["n1"]
    assert b"secret" not in msgspec.json.encode([repr(record) for record in records_of(path)])


def test_a_log_is_replayed(tmp_path: Path) -> None:
    log = written(tmp_path / "audit.log", *story("RequestResponse").lines)
    imported("audit", tmp_path / "day.recording", log)
    runs = replayed(tmp_path / "day.recording")
    assert runs["recorded"]["evictions"] == 1
    assert runs["recorded"]["podsAtEnd"] == runs["as-recorded"]["podsAtEnd"] == 2
    assert runs["as-recorded"]["pendingPodsAtEnd"] == 0


@table(row(level="Request"), row(level="Metadata"))
def test_what_a_level_lacks_is_said(tmp_path: Path, level: str) -> None:
    log = written(tmp_path / "audit.log", *story(level).lines)
    result = imported("audit", tmp_path / "day.recording", log)
    assert f"have level {level}" in result.stderr
    if level == "Metadata":
        assert "4 pods such as shop/web-5d4f-a are left out" in result.stderr
        assert lives(tmp_path / "day.recording") == []
    else:
        born = [(what, at) for what, at in lives(tmp_path / "day.recording") if what in ("Born", "Bound")]
        assert born == [entry for entry in TOLD if entry[0] in ("Born", "Bound")]


def test_names_are_enough_where_a_snapshot_says_what_pods_ask_for(tmp_path: Path) -> None:
    before = {"apiVersion": "v1", "kind": "List", "items": [node(), deployment(1), on_node("web-5d4f-z", -600, -590)]}
    snapshot = written(tmp_path / "before.json", json.dumps(before))
    log = written(tmp_path / "audit.log", *story("Metadata").lines)
    imported("audit", tmp_path / "day.recording", log, "--cluster", snapshot)
    path = tmp_path / "day.recording"
    told = [entry for entry in lives(path) if entry[1] > 0]
    # A node is known from when its kubelet first speaks of the pod.
    assert told == [(what, at + 3 if what == "Bound" else at) for what, at in TOLD]
    assert {history_of(path, 1100).template_of(number).spec.containers[0].resources.requests["cpu"].milli for number in
            history_of(path, 1100).pods} == {500}  # fmt: skip
    runs = replayed(path, POOLS)
    assert runs["recorded"]["evictions"] == 1


def test_the_logs_of_several_servers_are_one_history(tmp_path: Path) -> None:
    lines = story("RequestResponse").lines
    folder = tmp_path / "logs"
    folder.mkdir()
    written(folder / "audit-a.log", *lines[::2])
    with gzip.open(folder / "audit-b.log.gz", "wt") as file:
        file.write("\n".join(lines[1::2]))
    imported("audit", tmp_path / "day.recording", folder)
    assert lives(tmp_path / "day.recording") == TOLD


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    log = written(tmp_path / "audit.log", *story("RequestResponse").lines)
    with log.open("a") as file:
        file.write('{"kind":"Event","apiVersion":"audit.k8s.io/v1","lev')
    imported("audit", tmp_path / "day.recording", log)
    assert lives(tmp_path / "day.recording") == TOLD


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("not json", "line 2 is no audit event"),
        ('{"kind":"Event","apiVersion":"v1"}', "line 2 is no audit event: it is not of audit.k8s.io"),
        ('{"apiVersion":"audit.k8s.io/v1"}', "line 2 is an audit event without a time"),
        ('{"apiVersion":"audit.k8s.io/v1","stageTimestamp":"soon"}', "line 2 is no audit event"),
        ('{"apiVersion":"audit.k8s.io/v1","objectRef":' * 3000, "line 2 is no audit event"),
        ("\x00\x01", "line 2 is no audit event"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, line: str, said: str) -> None:
    log = written(tmp_path / "audit.log", story("Metadata").lines[0], line)
    assert said in refused(tmp_path / "day.recording", log, "--from", "audit")


def test_a_log_of_other_things_is_refused(tmp_path: Path) -> None:
    log = Log("Metadata")
    log.tell(0, "create", "events", "x")
    file = written(tmp_path / "audit.log", *log.lines)
    assert "changes pods, nodes or workloads" in refused(tmp_path / "day.recording", file, "--from", "audit")
    assert "has no audit event in it" in refused(
        tmp_path / "day.recording", written(tmp_path / "empty.log"), "--from", "audit"
    )
    assert "does not exist" in refused(tmp_path / "day.recording", tmp_path / "none.log", "--from", "audit")


def test_hostile_objects_do_no_harm(tmp_path: Path) -> None:
    log = story("RequestResponse")
    hostile: tuple[Any, ...] = (
        [],
        5,
        {"kind": 7},
        {"kind": "Pod", "apiVersion": "v1", "metadata": []},
        {"kind": "Node"},
    )
    for spoilt in hostile:
        log.tell(3600, "patch", "pods", "web-5d4f-c", answer=spoilt)
    log.tell(3600, "patch", "pods", "bad", answer=pod("bad", 1, spec={"containers": [{"resources": 5}]}))
    result = imported("audit", tmp_path / "day.recording", written(tmp_path / "audit.log", *log.lines))
    assert "cannot be read, and are left out" in result.stderr
    assert lives(tmp_path / "day.recording")[: len(TOLD)] == TOLD
