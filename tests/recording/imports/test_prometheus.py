"""Prometheus over HTTP: what kube-state-metrics told it becomes a history, page by page."""

import shutil
import subprocess
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from tests.live.programs import Program, free_port
from tests.recording.imports.fake_prometheus import FakePrometheus, prometheus
from tests.recording.imports.replays import POOLS, history_of, imported, records_of, refused, replayed
from tests.tables import row, table

from karpool.recording import records as r

BEGIN = datetime.fromisoformat("2026-11-16T08:00:00+00:00").timestamp()
BETWEEN = ("--start", "2026-11-16T08:00:00Z", "--end", "2026-11-16T12:00:00Z", "--step", "1m")
EVER = [(0.0, 1.0)]


def during(since: float, until: float | None = None, value: float = 1.0) -> list[tuple[float, float | None]]:
    """A value from a time to another, in minutes since the beginning."""
    ends: list[tuple[float, float | None]] = [] if until is None else [(BEGIN + until * 60, None)]
    return [(BEGIN + since * 60, value), *ends]


def add_node(fake: FakePrometheus, name: str, since: float, until: float | None = None) -> None:
    at = during(since, until)
    fake.add("kube_node_info", at, node=name, provider_id=f"kwok://{name}")
    labels = {
        "label_node_kubernetes_io_instance_type": "c-8x-amd64-linux",
        "label_topology_kubernetes_io_zone": "test-zone-a",
        "label_karpenter_sh_capacity_type": "on-demand",
        "label_kubernetes_io_arch": "amd64",
        "label_kubernetes_io_os": "linux",
    }
    fake.add("kube_node_labels", at, node=name, **labels)
    for resource, unit, value in (("cpu", "core", 8.0), ("memory", "byte", 16.0 * 2**30), ("pods", "integer", 110.0)):
        fake.add("kube_node_status_allocatable", during(since, until, value), node=name, resource=resource, unit=unit)


def add_pod(
    fake: FakePrometheus,
    name: str,
    owner: tuple[str, str],
    since: float,
    until: float | None = None,
    *,
    done: float | None = None,
) -> None:
    """A pod that waits two minutes for its node, and is ready a minute later."""
    labels = {"namespace": "shop", "pod": name, "uid": f"uid-{name}", "created_by_kind": owner[0]}
    of = {"namespace": "shop", "pod": name, "uid": f"uid-{name}"}
    fake.add("kube_pod_info", during(since, since + 2), created_by_name=owner[1], **labels)
    fake.add("kube_pod_info", during(since + 2, until), created_by_name=owner[1], node="n1", **labels)
    fake.add("kube_pod_created", during(since, until, BEGIN + since * 60 - 5), **of)
    fake.add(
        "kube_pod_status_ready", [(BEGIN + since * 60, 0.0), *during(since + 3, done or until)], condition="true", **of
    )
    fake.add("kube_pod_status_ready", during(since, since + 3), condition="false", **of)
    for resource, value in (("cpu", 0.5), ("memory", 2.0**30)):
        series = during(since, until, value)
        fake.add("kube_pod_container_resource_requests", series, container="main", resource=resource, **of)
    if done is not None:
        fake.add("kube_pod_status_phase", during(done, until), phase="Succeeded", **of)
        fake.add("kube_pod_status_phase", during(since, done), phase="Running", **of)


@pytest.fixture
def fake() -> Iterator[FakePrometheus]:
    """A Deployment of two that has three for an hour, and a Job."""
    with prometheus() as server:
        add_node(server, "n1", -500)
        add_node(server, "n2", 30, 150)
        web = ("ReplicaSet", "web-5d4f")
        add_pod(server, "web-5d4f-a", web, -100)
        add_pod(server, "web-5d4f-b", web, 5)
        add_pod(server, "web-5d4f-c", web, 60, 120)
        add_pod(server, "report-x", ("Job", "report"), 90, 130, done=110)
        sizes = [(BEGIN - 1e5, 2.0), (BEGIN + 60 * 60, 3.0), (BEGIN + 120 * 60, 2.0)]
        server.add("kube_deployment_spec_replicas", list(sizes), namespace="shop", deployment="web")
        yield server


def lives(path: Path) -> list[tuple[str, float]]:
    kinds = (r.Born, r.Bound, r.Ready, r.Died)
    return [(type(record).__name__, record.t / 60) for record in records_of(path) if isinstance(record, kinds)]


TOLD = [
    ("Born", 0),
    ("Bound", 0),
    ("Ready", 0),
    ("Born", 5),
    ("Bound", 7),
    ("Ready", 8),
    ("Born", 60),
    ("Bound", 62),
    ("Ready", 63),
    ("Born", 90),
    ("Bound", 92),
    ("Ready", 93),
    ("Died", 110),
    ("Died", 120),
]


def test_series_become_a_history(fake: FakePrometheus, tmp_path: Path) -> None:
    path = tmp_path / "day.recording"
    result = imported("prometheus", path, fake.address, *BETWEEN)
    assert "no NodePools" in result.stderr
    assert "which pods were evicted" in result.stderr
    assert lives(path) == TOLD
    (succeeded,) = [
        record for record in records_of(path) if isinstance(record, r.Died) and record.how is r.End.SUCCEEDED
    ]
    assert succeeded.t == 110 * 60
    sizes = [history_of(path, at * 60).kinds["Deployment"]["shop/web"]["spec"]["replicas"] for at in (0, 90, 200)]
    assert sizes == [2, 3, 2]
    assert [len(history_of(path, at * 60).kinds["Node"]) for at in (0, 90, 200)] == [1, 2, 1]
    history = history_of(path, 3600 * 1.7)
    labels = history.decoded("Node", "n2").metadata.labels
    assert labels["node.kubernetes.io/instance-type"] == "c-8x-amd64-linux"
    pods = {pod.name: pod for pod in map(history.pod_object, history.pods)}
    asked = pods["web-5d4f-b"].spec.containers[0].resources.requests
    assert (asked["cpu"].milli, asked["memory"].units) == (500, 2**30)
    assert history_of(path).time == 4 * 3600


def test_long_times_are_asked_in_windows_that_fit(fake: FakePrometheus, tmp_path: Path) -> None:
    imported("prometheus", tmp_path / "a.recording", fake.address, *BETWEEN)
    windows = [
        (float(query["start"]), float(query["end"])) for query in fake.asked if "kube_pod_info" in query["query"]
    ]
    assert len(windows) == 3  # of 120 samples each
    assert [start - before for (_, before), (start, _) in pairwise(windows)] == [60, 60]
    assert {query["path"] for query in fake.asked} == {"/prom/api/v1/query_range"}
    fake.most_samples = 100
    imported("prometheus", tmp_path / "b.recording", fake.address, *BETWEEN)
    assert len(fake.asked) > 100
    assert records_of(tmp_path / "a.recording") == records_of(tmp_path / "b.recording")


def test_metrics_are_replayed(fake: FakePrometheus, tmp_path: Path) -> None:
    imported("prometheus", tmp_path / "day.recording", fake.address, *BETWEEN)
    runs = replayed(tmp_path / "day.recording", POOLS)
    assert runs["recorded"]["seconds"] == 4 * 3600
    assert runs["recorded"]["podsAtEnd"] == runs["as-recorded"]["podsAtEnd"] == 2
    assert runs["as-recorded"]["pendingPodsAtEnd"] == 0


@pytest.fixture
def real(fake: FakePrometheus, tmp_path: Path) -> Iterator[str]:
    """The address of a real Prometheus with the same samples."""
    folder = _programs()
    samples, data = tmp_path / "samples.txt", tmp_path / "data"
    samples.write_text(fake.open_metrics(BEGIN, BEGIN + 4 * 3600, 60))
    make = [folder / "promtool", "tsdb", "create-blocks-from", "openmetrics", samples, data]
    subprocess.run(make, check=True, capture_output=True)  # noqa: S603 - a program that this test looked for
    config = tmp_path / "prometheus.yml"
    config.write_text("{}")
    port = free_port()
    command = [
        folder / "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--storage.tsdb.retention.time=50y",
    ]
    program = Program(command, tmp_path / "prometheus.log")
    program.start()
    try:
        program.wait_until_healthy(f"http://127.0.0.1:{port}/-/ready")
        yield f"http://127.0.0.1:{port}"
    finally:
        program.stop()


def _programs() -> Path:
    """The folder with prometheus and promtool."""
    script = Path(__file__).parents[3] / "scripts" / "ensure-promtool"
    found = subprocess.run([script, "--no-fetch"], capture_output=True, text=True, check=False)  # noqa: S603 - our own
    named = [*found.stdout.splitlines()[-1:], *filter(None, [shutil.which("prometheus")])]
    for name in named:
        if all((Path(name).parent / program).exists() for program in ("prometheus", "promtool")):
            return Path(name).parent
    pytest.skip("NOT TESTED: imports from a real Prometheus; install prometheus")


@pytest.mark.slow
def test_a_real_prometheus_gives_the_same_history(real: str, fake: FakePrometheus, tmp_path: Path) -> None:
    # Without a scrape that says so, a series is taken to last five minutes beyond its last sample.
    imported("prometheus", tmp_path / "real.recording", real, *BETWEEN, "--matcher", "cluster=prod")
    imported("prometheus", tmp_path / "fake.recording", fake.address, *BETWEEN, "--matcher", "cluster=prod")
    ends = 5.0
    told = [(what, at) for what, at in lives(tmp_path / "fake.recording")]
    assert lives(tmp_path / "real.recording") == [
        (what, at + ends if (what, at) == ("Died", 120) else at) for what, at in told
    ]


def test_a_token_is_sent_and_only_series_of_one_cluster_are_asked_for(fake: FakePrometheus, tmp_path: Path) -> None:
    fake.bearer = "sesame"
    output = tmp_path / "day.recording"
    said = refused(output, fake.address, "--from", "prometheus", *BETWEEN)
    assert "401 Unauthorized; --token-file names a file" in said
    token = tmp_path / "token"
    token.write_text("sesame\n")
    add_pod(fake, "other", ("ReplicaSet", "other-1"), 0)
    for one in fake.series[-8:]:
        one.metric["cluster"] = "test"
    more = ("--token-file", token, "--matcher", "cluster=prod")
    imported("prometheus", output, fake.address, *BETWEEN, *more)
    assert lives(output) == TOLD
    refusal = refused(tmp_path / "b.recording", "http://10.1.2.3:9090", "--from", "prometheus", *BETWEEN, *more)
    assert "unencrypted" in refusal


def test_a_busy_server_is_asked_again(fake: FakePrometheus, tmp_path: Path) -> None:
    fake.spoilt = [(503, b"busy"), (429, b'{"status":"error","error":"slow down"}')]
    imported("prometheus", tmp_path / "day.recording", fake.address, *BETWEEN)
    assert lives(tmp_path / "day.recording") == TOLD


@table(
    row("a page", status=1, answer=(200, b"<html>login</html>"), said="what is no answer of Prometheus"),
    row("an error", status=1, answer=(400, b'{"status":"error","error":"parse error\\n"}'), said="400 parse error"),
    row("another kind", status=1, answer=(200, b'{"status":"success","data":{"resultType":"vector"}}'), said="matrix"),
    row(
        "a time that nobody asked for",
        status=1,
        answer=(200, b'{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1e300,"1"]]}]}}'),
        said="a time that it was not asked for",
    ),
    row("another place", status=2, answer=(302, b""), said="it is elsewhere"),
    row("no leave", status=2, answer=(403, b"no"), said="refuses to answer: 403 no"),
)
def test_what_is_no_answer_is_told(
    fake: FakePrometheus, tmp_path: Path, status: int, answer: tuple[int, bytes], said: str
) -> None:
    fake.spoilt = [answer]
    output = tmp_path / "day.recording"
    assert said in refused(output, fake.address, "--from", "prometheus", *BETWEEN, status=status)


def test_a_time_without_metrics_is_refused(fake: FakePrometheus, tmp_path: Path) -> None:
    fake.series.clear()
    said = refused(tmp_path / "day.recording", fake.address, "--from", "prometheus", *BETWEEN)
    assert "has no kube_pod_info between 2026-11-16T08:00Z and 2026-11-16T12:00Z" in said


@table(
    row(more=("--end", "2026-11-16T07:00:00Z"), said="--end: is not after --start"),
    row(more=("--step", "10ms"), said="--step: is less than a second"),
    row(more=("--last", "1h"), said="--last: says how long, and so does --start"),
    row(more=("--start", "2024-01-01T00:00:00Z", "--step", "1s"), said="--step: is too short for so long a time"),
    row(more=("--matcher", "a-b=c"), said="is no label and its value"),
)
def test_mistaken_times_are_refused(tmp_path: Path, more: tuple[str, ...], said: str) -> None:
    output = tmp_path / "day.recording"
    assert said in refused(output, "http://127.0.0.1:1", "--from", "prometheus", *BETWEEN, *more)


def test_nobody_there_is_told(tmp_path: Path) -> None:
    assert "SOURCE: 'prod' is no address" in refused(tmp_path / "a.recording", "prod", "--from", "prometheus")
