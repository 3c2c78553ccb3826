"""The control planes that other tests rely on: they are real, they keep what is written, and they refuse."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live.control_plane import ControlPlane
from tests.live.https import Client, eventually
from tests.live.programs import Program, ProgramError

PODS = "/api/v1/namespaces/{}/pods"


@pytest.fixture
def admin(control_plane: ControlPlane) -> Client:
    return Client(control_plane.kubeconfig())


@pytest.fixture(scope="module")
def cluster(running_cluster: ControlPlane) -> Iterator[Client]:
    """The administrator of a running cluster with two nodes, which go with the last test here."""
    client = Client(running_cluster.kubeconfig())
    for name in ("node-1", "node-2"):
        assert client.post("/api/v1/nodes", node(name)).status == 201
    yield client
    for name in ("node-1", "node-2"):
        client.delete(f"/api/v1/nodes/{name}")


def namespace(client: Client, name: str) -> str:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert client.post("/api/v1/namespaces", body).status == 201
    return name


def node(name: str) -> dict[str, Any]:
    resources = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": resources, "allocatable": resources},
    }


def template(**annotations: str) -> dict[str, Any]:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 300}
    return {"metadata": {"labels": {"app": "web"}, "annotations": annotations}, "spec": spec}


def pod(name: str, **annotations: str) -> dict[str, Any]:
    body = template(**annotations)
    body["metadata"]["name"] = name
    return {"apiVersion": "v1", "kind": "Pod", **body}


def deployment(replicas: int) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    spec = {"replicas": replicas, "selector": selector, "template": template()}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def running(client: Client, where: str, count: int) -> Callable[[], list[Any] | None]:
    """The running pods of a namespace, once there are so many."""

    def ask() -> list[Any] | None:
        items = client.get(PODS.format(where)).body["items"]
        running = [item for item in items if item["status"]["phase"] == "Running"]
        return running if len(running) == count else None

    return ask


def test_the_api_server_says_which_kubernetes_it_is(admin: Client) -> None:
    version = admin.get("/version").body
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}.")
    assert version["major"] == "1"


def test_a_pod_is_created_and_nothing_acts_on_it(admin: Client) -> None:
    where = PODS.format(namespace(admin, "created"))
    assert admin.post(where, pod("web")).status == 201
    assert [item["status"]["phase"] for item in admin.get(where).body["items"]] == ["Pending"]


def test_a_user_without_a_role_is_refused(control_plane: ControlPlane) -> None:
    stranger = Client(control_plane.user_kubeconfig("system:serviceaccount:karpool:karpool", ["system:authenticated"]))
    refusal = stranger.get("/api/v1/nodes")
    assert refusal.status == 403
    assert '"system:serviceaccount:karpool:karpool" cannot list resource "nodes"' in refusal.body["message"]


def test_a_user_may_do_what_a_role_allows(control_plane: ControlPlane, admin: Client) -> None:
    body = {
        "metadata": {"name": "looks-at-nodes"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kube-scheduler"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "people"}],
    }
    assert admin.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body).status == 201
    person = Client(control_plane.user_kubeconfig("somebody", ["people"]))
    eventually(lambda: person.get("/api/v1/nodes").status == 200)


def test_data_outlive_the_api_server(control_plane: ControlPlane, admin: Client) -> None:
    namespace(admin, "before-restart")
    control_plane.restart_apiserver()
    assert admin.get("/api/v1/namespaces/before-restart").status == 200


def test_a_killed_api_server_is_gone_until_started(control_plane: ControlPlane, admin: Client) -> None:
    control_plane.kill_apiserver()
    try:
        with pytest.raises(ConnectionRefusedError):
            admin.get("/version")
    finally:
        control_plane.start_apiserver()
    assert admin.get("/version").status == 200


def test_a_compacted_revision_is_neither_listed_nor_watched(control_plane: ControlPlane, admin: Client) -> None:
    where = PODS.format(namespace(admin, "compacted"))
    old = admin.post(where, pod("web")).body["metadata"]["resourceVersion"]
    admin.delete(f"{where}/web?gracePeriodSeconds=0")
    past = f"{where}?resourceVersion={old}&resourceVersionMatch=Exact"
    assert admin.get(past).status == 200
    control_plane.compact_etcd()
    control_plane.restart_apiserver()
    assert admin.get(past).status == 410
    event = admin.first_event(f"{where}?watch=true&resourceVersion={old}")
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_pods_of_a_deployment_run_on_nodes_that_we_create(cluster: Client) -> None:
    where = namespace(cluster, "deployed")
    assert cluster.post(f"/apis/apps/v1/namespaces/{where}/deployments", deployment(3)).status == 201
    pods = eventually(running(cluster, where, 3))
    assert {item["spec"]["nodeName"] for item in pods} <= {"node-1", "node-2"}
    assert cluster.get("/api/v1/nodes/node-1").body["status"]["allocatable"]["cpu"] == "4"


def test_an_eviction_that_a_budget_forbids_is_refused(cluster: Client) -> None:
    where = namespace(cluster, "budgeted")
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    assert cluster.post(f"/apis/policy/v1/namespaces/{where}/poddisruptionbudgets", budget).status == 201
    assert cluster.post(f"/apis/apps/v1/namespaces/{where}/deployments", deployment(1)).status == 201
    (only,) = eventually(running(cluster, where, 1))
    counted = f"/apis/policy/v1/namespaces/{where}/poddisruptionbudgets/web"
    eventually(lambda: cluster.get(counted).body["status"].get("currentHealthy") == 1)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": only["metadata"]["name"]}}
    refusal = cluster.post(f"{PODS.format(where)}/{only['metadata']['name']}/eviction", eviction)
    assert refusal.status == 429
    assert refusal.body["details"]["causes"][0]["message"].endswith("needs 1 healthy pods and has 1 currently")


def test_a_pod_goes_at_once_or_when_its_annotation_says(cluster: Client) -> None:
    where = PODS.format(namespace(cluster, "stopping"))
    cluster.post(where, pod("quick"))
    cluster.post(where, pod("slow", **{"tests.karpool.sh/stops-after": "60s"}))
    eventually(running(cluster, "stopping", 2))
    for name in ("quick", "slow"):
        assert cluster.delete(f"{where}/{name}").status == 200
    eventually(lambda: cluster.get(f"{where}/quick").status == 404, patience=10)
    assert cluster.get(f"{where}/slow").status == 200


def test_a_pod_completes_when_its_annotation_says(cluster: Client) -> None:
    where = PODS.format(namespace(cluster, "completing"))
    cluster.post(where, pod("batch", **{"tests.karpool.sh/completes-after": "1s"}))
    assert eventually(lambda: cluster.get(f"{where}/batch").body["status"]["phase"] == "Succeeded")


def test_a_program_that_ends_at_once_shows_its_log(tmp_path: Path) -> None:
    program = Program(["/bin/sh", "-c", "echo no such flag"], tmp_path / "log")
    program.start()
    with pytest.raises(ProgramError, match=r"(?s)ended before it was ready.*no such flag"):
        program.wait_until_healthy("http://127.0.0.1:1/")
    program.stop()


def test_a_program_ends_when_whoever_started_it_is_killed(tmp_path: Path) -> None:
    script = f"""
import pathlib, time
from tests.live.programs import Program
program = Program(["/bin/sh", "-c", "echo $$; exec sleep 600"], pathlib.Path({str(tmp_path / "log")!r}))
program.start()
time.sleep(600)
"""
    starter = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])  # noqa: S603 - as written here
    pid = int(eventually(lambda: "".join(log.read_text() for log in tmp_path.glob("log"))))
    time.sleep(0.2)  # the guard starts just after the program
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    assert eventually(lambda: not _alive(pid), patience=5)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
