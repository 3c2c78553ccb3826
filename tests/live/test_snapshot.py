"""`karpool snapshot` on a real API server: decisions on the file are the same, and it holds no secrets."""

import gzip
import io
import json
import re
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from msgspec.structs import fields
from tests.examples import examples
from tests.factories import claim_for, node, node_pool
from tests.live.control_plane import ControlPlane
from tests.live.example_cluster import EXAMPLES, MARK, Planter, build
from tests.live.https import Client
from tests.strategies import Cluster, clusters

from karpool.cli.main import cli
from karpool.disruption.plan import Planner, context_of
from karpool.disruption.settings import PREFIX, DisruptionSettings
from karpool.live.reading import SIMULATED
from karpool.live.redaction import redacted
from karpool.live.resources import NODE_OVERLAYS, collection_of
from karpool.live.snapshot_file import encode_snapshot
from karpool.model.headroom import headroom_of
from karpool.model.labels import NODEPOOL_HASH, NODEPOOL_HASH_VERSION
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.reading.loading import load, read
from karpool.packing.options import Options
from karpool.provisioning.pool_hash import HASH_VERSION, hash_annotations, pool_hash
from karpool.report.plans.assemble import plan_document
from karpool.report.plans.document import to_json
from karpool.wire.sources import ManifestSource, read_source

LATER = "2036-11-15T12:00:00Z"


class Scene(NamedTuple):
    """The example cluster, live."""

    admin: Client
    kubeconfig: str
    planter: Planter


@pytest.fixture(scope="module")
def scene(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with ControlPlane(kubernetes_programs, tmp_path_factory.mktemp("example-cluster")) as plane:
        admin = Client(plane.kubeconfig())
        yield Scene(admin, str(plane.kubeconfig()), build(admin))


def run(*arguments: str) -> bytes:
    result = CliRunner().invoke(cli, arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout_bytes


def nameless(page: bytes) -> bytes:
    """A page without the name of its cluster, which is that of the file or of the context."""
    return re.sub(rb'(<title>|<b class="cluster-name">)[^<]*<', rb"\1<", page)


def unpacked(file: Path) -> bytes:
    return read_source(ManifestSource(str(file)), sys.stdin.buffer)


def taken(scene: Scene, file: Path) -> Path:
    run("snapshot", "--kubeconfig", scene.kubeconfig, "-o", str(file))
    return file


@pytest.mark.parametrize(
    "question",
    [
        ("plan", "--output", "json"),
        ("plan", "--output", "html", "--ignore-budgets"),
        ("explain", "general-7", "--output", "json"),
        ("compact", "--plan", "--output", "json", "--config"),
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_what_is_decided_from_the_file_is_what_is_decided_live(
    question: tuple[str, ...], scene: Scene, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"nodePools": {"general": {"enabled": true, "scaleDownCPURequestRatioLimit": 0.9}}}')
    asked = (*question, str(config)) if question[-1] == "--config" else question
    live = run(*asked, "--kubeconfig", scene.kubeconfig, "--at", LATER)
    kept = run(*asked, "-f", str(taken(scene, tmp_path / "cluster.json.zst")), "--at", LATER)
    assert nameless(kept) == nameless(live)
    assert b"general-7" in live


def test_the_plan_of_the_live_cluster_has_something_to_do(scene: Scene) -> None:
    plan = json.loads(run("plan", "--output", "json", "--kubeconfig", scene.kubeconfig, "--at", LATER))
    assert plan["before"]["nodes"] == 12
    assert len(plan["commands"]) > 1


def test_none_of_the_secrets_that_the_cluster_holds_is_in_the_file(scene: Scene, tmp_path: Path) -> None:
    # Nobody has installed NodeOverlays there.
    kinds = [resource for resource in SIMULATED if resource is not NODE_OVERLAYS]
    paths = [resource.path() for resource in kinds] + ["/api/v1/secrets", "/api/v1/configmaps"]
    cluster_text = "".join(json.dumps(scene.admin.get(path).body) for path in paths)
    planted = {place for secret, place in scene.planter.places.items() if secret in cluster_text}
    assert planted >= {"Pod env", "Pod args", "Pod command", "Pod annotation", "Pod imagePullSecrets", "Pod hostPath"}
    assert planted >= {"Pod secret volume", "Node annotation", "NodePool template annotation", "DaemonSet template env"}
    assert planted >= {"Pod managedFields", "NodeClaim managedFields", "Node condition", "Pod condition", "configmaps"}
    written = unpacked(taken(scene, tmp_path / "cluster.json.zst")).decode()
    leaked = {place for secret, place in scene.planter.places.items() if secret in written}
    assert (leaked, MARK in written) == (set(), False)
    for word in ("managedFields", "last-applied", "PASSWORD", "imagePullSecrets", "InternalIP", "image"):
        assert word not in written


def test_the_file_is_small_and_for_its_owner_only(scene: Scene, tmp_path: Path) -> None:
    file = taken(scene, tmp_path / "cluster.json.zst")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]
    assert file.stat().st_size * 5 < len(unpacked(file))


# -- from files ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".json", ".json.gz", ".json.zst"])
def test_files_can_be_made_smaller_and_decide_the_same(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"small{ending}"
    output = run("snapshot", "-f", str(EXAMPLES), "-o", str(file)).decode()
    assert output.startswith(f"{file}: 12 nodes and 59 pods, ")
    plan = ("plan", "--at", "2026-11-15T12:00:00Z", "--search", "prefix", "--output", "json")
    assert run(*plan, "-f", str(file)) == run(*plan, "-f", str(EXAMPLES))
    again = run("snapshot", "-f", str(file), "-o", "-")
    assert again == run("snapshot", "-f", str(EXAMPLES), "-o", "-") == unpacked(file)
    assert (file.read_bytes() == gzip.compress(again, mtime=0)) == (ending == ".json.gz")


@examples(30)
@given(clusters(in_motion=True))
def test_any_cluster_is_planned_from_a_file_as_it_is_itself(cluster: Cluster) -> None:
    def planned(objects: Objects) -> bytes:
        now = datetime(2030, 1, 1, tzinfo=UTC)
        chosen = DisruptionSettings(search=PREFIX)
        context = context_of(objects, cluster.catalog, now=now, settings=chosen, options=Options())
        return to_json(plan_document(Planner(context).plan()))

    file = io.BytesIO(encode_snapshot(cluster.objects))
    assert planned(load(["-"], stdin=file).objects) == planned(cluster.objects)


@pytest.mark.slow
def test_a_file_keeps_the_pause_and_its_reason_and_nothing_else_of_config_maps(tmp_path: Path) -> None:
    data = {"reason": "incident 42", "token": "secret-1"}
    hidden = {"labels": {"a": "secret-2"}, "annotations": {"b": "secret-3"}}
    metadata = {"name": "karpool-pause", "namespace": "ops", **hidden}
    pause = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": {"key": "secret-4"}}
    listed = tmp_path / "maps.json"
    listed.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [pause, other]}))
    file = tmp_path / "cluster.json"
    run("snapshot", "-f", str(EXAMPLES), "-f", str(listed), "-o", str(file))
    assert "secret-" not in file.read_text()
    plan = ("plan", "-f", str(file), "--at", "2026-11-15T12:00:00Z", "--search", "prefix", "--output", "json")
    (stop,) = json.loads(run(*plan, "--pause-namespace", "ops"))["stops"]
    assert (stop["code"], stop["object"]) == ("Paused", "ConfigMap ops/karpool-pause")
    assert stop["message"] == "pauses everything: incident 42"
    elsewhere = CliRunner().invoke(cli, plan)
    assert json.loads(elsewhere.stdout)["stops"] == []
    assert "ConfigMap ops/karpool-pause pauses nothing" in elsewhere.stderr


def test_the_pause_of_a_live_cluster_is_in_its_file(scene: Scene, tmp_path: Path) -> None:
    pause = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "karpool-pause"}, "data": {"reason": "why"}}
    scene.admin.post("/api/v1/namespaces/default/configmaps", pause)
    try:
        file = tmp_path / "cluster.json"
        run("snapshot", "--kubeconfig", scene.kubeconfig, "--pause-namespace", "default", "-o", str(file))
    finally:
        scene.admin.delete("/api/v1/namespaces/default/configmaps/karpool-pause")
    assert {entry.key: entry.data for entry in read_back(file).pauses} == {"default/karpool-pause": {"reason": "why"}}


def test_a_failure_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text("as it was")
    result = CliRunner().invoke(cli, ["snapshot", "-f", str(tmp_path / "no-such.json"), "-o", str(file)])
    assert result.exit_code == 2
    assert [entry.read_text() for entry in tmp_path.iterdir()] == ["as it was"]


def test_older_pools_are_written_as_what_they_were_read_as(tmp_path: Path) -> None:
    files = Path(__file__).parents[1] / "model" / "provisioners"
    pools = read([str(files)], stdin=sys.stdin.buffer).objects.node_pools
    assert len(pools) > 3
    (tmp_path / "pools.json").write_bytes(encode_snapshot(Objects(node_pools=pools)))
    assert read_back(tmp_path / "pools.json").node_pools == redacted(Objects(node_pools=pools)).node_pools


def test_a_template_that_loses_annotations_does_not_seem_to_have_changed(tmp_path: Path) -> None:
    pool = stamped(annotated(node_pool("default")))
    claim = claim_for(node("n1"))
    stamp = {NODEPOOL_HASH: pool_hash(pool), NODEPOOL_HASH_VERSION: HASH_VERSION}
    claim = msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, annotations=stamp))
    file = tmp_path / "cluster.json"
    file.write_bytes(encode_snapshot(Objects(node_pools=(pool,), node_claims=(claim,))))
    objects = read_back(file)
    assert objects.node_pools[0].spec.template.metadata.annotations == {}
    assert hash_annotations(objects.node_pools[0]) == {}
    hashes = [obj.metadata.annotations[NODEPOOL_HASH] for obj in (*objects.node_pools, *objects.node_claims)]
    assert hashes == [pool_hash(objects.node_pools[0])] * 2


def test_only_what_is_read_from_a_cluster_is_written() -> None:
    kept = {collection_of(resource) for resource in SIMULATED}
    everything = read_back(EXAMPLES)
    slim = redacted(everything)
    assert everything.deployments
    assert {field.name for field in fields(Objects) if getattr(slim, field.name)} <= kept


def read_back(file: Path) -> Objects:
    return load([str(file)], stdin=sys.stdin.buffer).objects


def annotated(pool: NodePool) -> NodePool:
    template = pool.spec.template
    metadata = msgspec.structs.replace(template.metadata, annotations={"example.com/team": "a"})
    spec = msgspec.structs.replace(pool.spec, template=msgspec.structs.replace(template, metadata=metadata))
    return msgspec.structs.replace(pool, spec=spec)


def stamped(pool: NodePool) -> NodePool:
    stamps: dict[str, Any] = {**pool.metadata.annotations, **hash_annotations(pool)}
    return msgspec.structs.replace(pool, metadata=msgspec.structs.replace(pool.metadata, annotations=stamps))


def test_what_capacity_buffers_need_is_kept_without_what_nobody_reads(tmp_path: Path) -> None:
    secret = {"metadata": {"annotations": {"note": MARK}}, "spec": {"containers": [{"name": "c", "image": MARK}]}}
    whole = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            _item("CapacityBuffer", "a", {"scalableRef": {"kind": "Deployment", "name": "web"}, "percentage": 50}),
            _item("CapacityBuffer", "b", {"podTemplateRef": {"name": "chunk"}, "replicas": 2}),
            _item("Deployment", "web", {"replicas": 4, "template": secret}),
            _item("Deployment", "other", {"replicas": 4, "template": secret}),
            {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "chunk"}, "template": secret},
        ],
    }
    (tmp_path / "cluster.json").write_text(json.dumps(whole))
    kept = read_back(tmp_path / "cluster.json")
    written = encode_snapshot(kept).decode()
    assert MARK not in written
    (tmp_path / "small.json").write_text(written)
    slim = read_back(tmp_path / "small.json")
    assert [entry.name for entry in slim.deployments] == ["web"]
    assert [len(headroom.pods) for headroom in headroom_of(slim)] == [2, 2]


def _item(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    version = {"CapacityBuffer": "autoscaling.x-k8s.io/v1beta1", "Deployment": "apps/v1"}[kind]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
