"""Reading a live cluster: what is listed, and what is reported as missing."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner
from tests.disruption.scenarios import CATALOG, NOW, POOL, cluster
from tests.disruption.scenarios import node as scenario_node
from tests.factories.clouds import UUID, autoscaler_status, status_yaml
from tests.kube.scripted_server import ScriptedServer, listed, raw_object, refuses
from tests.live.control_plane import ControlPlane
from tests.live.https import Client as Https

from karpool.cli.main import cli
from karpool.compaction.config import KEY
from karpool.disruption.plan import plan
from karpool.kube.client import Client
from karpool.kube.kubeconfig import find_target
from karpool.kube.resources import Resource
from karpool.live.reading import COMPACTED, DECIDED_ON, SIMULATED, CannotReadError, ClusterReading, read_cluster
from karpool.live.resources import (
    CAPACITY_BUFFERS,
    CSI_NODES,
    DAEMON_SETS,
    NAMESPACES,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PAUSES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from karpool.model.labels import STATUS_MAP

RBAC = "/apis/rbac.authorization.k8s.io/v1"
Answers = dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]]


def read_from(answers: Answers, **options: Any) -> tuple[ClusterReading, list[str]]:
    """What is read from a server with these answers by path, empty lists elsewhere; and the paths asked for."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await answers.get(request.path, listed())(request)

    async def run() -> tuple[ClusterReading, list[str]]:
        async with ScriptedServer(answer) as server, server.client() as client:
            reading = await read_cluster(client, **options)
        return reading, sorted(request.path for request in server.requests)

    return asyncio.run(run())


def test_each_kind_that_decisions_need_is_listed_once() -> None:
    steps: list[tuple[int, int | None]] = []
    reading, paths_read = read_from(
        {"/api/v1/nodes": listed(raw_object("a"))}, progress=lambda _, *far: steps.append(far)
    )
    assert [node.name for node in reading.objects.nodes] == ["a"]
    assert paths_read == sorted(resource.path() for resource in DECIDED_ON)
    assert steps == [(done, len(DECIDED_ON)) for done in range(len(DECIDED_ON) + 1)]
    assert list(reading.notes()) == []


def test_nobody_is_asked_for_workloads_that_nothing_reads() -> None:
    plurals = {resource.plural for resource in SIMULATED}
    assert not plurals & {"deployments", "replicasets", "jobs", "cronjobs", "secrets", "configmaps"}
    assert not {NODE_POOLS, NODE_CLAIMS} & set(COMPACTED)


def test_a_cluster_without_karpenter_has_no_pools_and_that_is_no_gap() -> None:
    gone = refuses(404, "NotFound")
    paths = [
        f"/apis/karpenter.sh/{version}/{kind}" for version in ("v1", "v1beta1") for kind in ("nodepools", "nodeclaims")
    ]
    reading, paths_read = read_from(dict.fromkeys(paths, gone))
    assert reading.objects.node_pools == ()
    assert list(reading.notes()) == []
    assert set(paths) <= set(paths_read)


def test_what_capacity_buffers_refer_to_is_read_and_nothing_else() -> None:
    def buffer(name: str, **spec: Any) -> Any:
        return _in_shop(name) | {"spec": spec}

    def found(name: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(_request: web.Request) -> web.StreamResponse:
            return web.json_response(_in_shop(name))

        return answer

    references = {
        "/apis/apps/v1/namespaces/shop/deployments/web": found("web"),
        "/apis/apps/v1/namespaces/shop/statefulsets/gone": refuses(404, "NotFound"),
        "/apis/apps/v1/namespaces/shop/replicasets/old": refuses(403, "Forbidden"),
        "/api/v1/namespaces/shop/podtemplates/chunk": found("chunk"),
    }
    buffers = listed(
        buffer("a", scalableRef={"kind": "Deployment", "name": "web"}, percentage=20),
        buffer("b", scalableRef={"kind": "Deployment", "name": "web", "apiGroup": "apps"}, replicas=1),
        buffer("c", scalableRef={"kind": "StatefulSet", "name": "gone"}, replicas=1),
        buffer("d", scalableRef={"kind": "ReplicaSet", "name": "old"}, replicas=1),
        buffer("e", podTemplateRef={"name": "chunk"}, replicas=1),
        buffer("f", scalableRef={"kind": "Job", "name": "once"}, replicas=1),
    )
    reading, paths_read = read_from({CAPACITY_BUFFERS.path(): buffers, **references})
    assert sorted(set(paths_read) - {resource.path() for resource in DECIDED_ON}) == sorted(references)
    assert len(paths_read) == len(DECIDED_ON) + len(references)
    assert [entry.key for entry in reading.objects.deployments] == ["shop/web"]
    assert [entry.key for entry in reading.objects.pod_templates] == ["shop/chunk"]
    (note,) = reading.notes()
    assert note.startswith("ReplicaSet shop/old of a CapacityBuffer cannot be read")


def _in_shop(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop"}}


def test_an_older_karpenter_is_read_too() -> None:
    pool = raw_object(
        "old", spec={"template": {"spec": {}}, "disruption": {"consolidationPolicy": "WhenUnderutilized"}}
    )
    answers = {
        NODE_POOLS.path(): refuses(404, "NotFound"),
        "/apis/karpenter.sh/v1beta1/nodepools": listed(pool),
    }
    (decoded,) = read_from(answers)[0].objects.node_pools
    assert decoded.spec.disruption.consolidation_policy == "WhenEmptyOrUnderutilized"


@pytest.mark.parametrize(
    "resource",
    [resource for resource in SIMULATED if resource not in (NODES, PODS)],
    ids=lambda resource: resource.plural,
)
def test_a_kind_that_may_not_be_listed_is_named_with_what_is_lost(resource: Resource[Any]) -> None:
    reading, _ = read_from({resource.path(): refuses(403, "Forbidden")}, resources=SIMULATED)
    (note,) = reading.notes()
    assert note.startswith(f"{resource.plural} cannot be listed, so ")


@pytest.mark.parametrize(
    ("resource", "stays"),
    [
        (POD_DISRUPTION_BUDGETS, ["used"]),
        (DAEMON_SETS, ["empty", "used"]),
        (CSI_NODES, ["empty", "used"]),
        (NAMESPACES, ["empty", "used"]),
    ],
    ids=lambda value: getattr(value, "plural", ""),
)
def test_a_kind_that_may_not_be_listed_may_hold_anything(resource: Resource[Any], stays: list[str]) -> None:
    used, empty = scenario_node("used", "small", pods=1), scenario_node("empty", "small")
    reading, _ = read_from({resource.path(): refuses(403, "Forbidden")})
    objects = cluster(
        [used, empty],
        pools=[POOL],
        pod_disruption_budgets=reading.objects.pod_disruption_budgets,
        daemon_sets=reading.objects.daemon_sets,
        csi_nodes=reading.objects.csi_nodes,
        namespaces=reading.objects.namespaces,
    )
    made = plan(objects, CATALOG, now=NOW)
    kept = [fate.candidate.name for fate in made.fates if "Unreadable" in [reason.code for reason in fate.reasons]]
    assert kept == stays


def test_a_built_in_kind_that_is_not_there_is_named() -> None:
    reading, _ = read_from({POD_DISRUPTION_BUDGETS.path(): refuses(404, "NotFound")})
    assert [resource.resource for resource in reading.unlisted] == [POD_DISRUPTION_BUDGETS]


@pytest.mark.parametrize("resource", [NODES, PODS], ids=lambda resource: resource.plural)
@pytest.mark.parametrize("status", [403, 404])
def test_without_pods_or_nodes_nothing_can_be_decided(resource: Resource[Any], status: int) -> None:
    with pytest.raises(CannotReadError, match=f"^{resource.plural} cannot be listed, and nothing can be decided"):
        read_from({resource.path(): refuses(status, "Forbidden")})


def test_objects_that_cannot_be_read_are_marked_and_the_first_are_named() -> None:
    broken = [raw_object(f"n{number}", spec={"taints": "none"}) for number in range(7)]
    reading, _ = read_from({"/api/v1/nodes": listed(raw_object("a"), *broken)})
    notes = list(reading.notes())
    assert [node.name for node in reading.objects.nodes if not node.unreadable] == ["a"]
    assert reading.objects.nodes[1].unreadable == "spec.taints: expected a list, got text"
    assert notes[0] == (
        "cannot be read, so nothing is decided that depends on it: Node n0: spec.taints: expected a list, got text"
    )
    assert notes[5:] == ["cannot be read likewise: 2 more objects"]


# -- a real API server ---------------------------------------------------------------------------------------------


def reader(control_plane: ControlPlane, name: str, resources: tuple[Resource[Any], ...]) -> Path:
    """The kubeconfig of a user who may get and list these resources, and nothing else."""
    admin = Https(control_plane.kubeconfig())
    rules = [
        {"apiGroups": [resource.group], "resources": [resource.plural], "verbs": ["get", "list"]}
        for resource in resources
    ]
    role = {"metadata": {"name": name}, "rules": rules}
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
    }
    assert admin.post(f"{RBAC}/clusterroles", role).status == 201
    assert admin.post(f"{RBAC}/clusterrolebindings", binding).status == 201
    return control_plane.user_kubeconfig(name)


@pytest.fixture
def node(control_plane: ControlPlane) -> Any:
    """A node in the real cluster."""
    admin = Https(control_plane.kubeconfig())
    name = "to-be-read"
    assert admin.post("/api/v1/nodes", {"metadata": {"name": name}}).status == 201
    yield name
    assert admin.delete(f"/api/v1/nodes/{name}").status == 200


def test_get_and_list_are_all_it_takes(control_plane: ControlPlane, node: str) -> None:
    kubeconfig = reader(control_plane, "reads-all", (*DECIDED_ON, PAUSES))
    sent: list[tuple[str, int]] = []

    async def run() -> ClusterReading:
        target = find_target(kubeconfig=kubeconfig)
        async with Client(target, on_request=lambda verb, _, status, __: sent.append((verb, status))) as client:
            return await read_cluster(client)

    reading = asyncio.run(run())
    assert node in [entry.name for entry in reading.objects.nodes]
    assert reading.objects.namespaces
    assert list(reading.notes()) == []
    assert {verb for verb, _ in sent} == {"list"}
    result = CliRunner().invoke(cli, ["explain", node, "--kubeconfig", str(kubeconfig), "--output", "json"])
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_user_who_may_not_see_budgets_is_told_so(control_plane: ControlPlane, node: str) -> None:
    allowed = tuple(resource for resource in DECIDED_ON if resource is not POD_DISRUPTION_BUDGETS)
    kubeconfig = reader(control_plane, "reads-no-budgets", (*allowed, PAUSES))
    result = CliRunner().invoke(cli, ["explain", node, "--kubeconfig", str(kubeconfig), "--output", "json"])
    assert result.exit_code == 0
    assert result.stderr.startswith(
        "karpool: poddisruptionbudgets cannot be listed, so every pod counts as protected, and nodes with pods stay"
    )
    assert result.stderr.count("\n") == 1


def test_a_user_who_may_not_see_whether_everything_is_paused_is_told_so(control_plane: ControlPlane, node: str) -> None:
    kubeconfig = reader(control_plane, "reads-no-pause", DECIDED_ON)
    result = CliRunner().invoke(cli, ["explain", node, "--kubeconfig", str(kubeconfig), "--output", "json"])
    assert result.exit_code == 0
    assert result.stderr.startswith(
        "karpool: nobody knows whether everything is paused, so the answer is as if it were not: configmaps"
    )
    assert result.stderr.count("\n") == 1


def test_a_user_who_may_not_see_pods_gets_one_line(control_plane: ControlPlane) -> None:
    kubeconfig = reader(control_plane, "reads-no-pods", (NODES,))
    result = CliRunner().invoke(cli, ["plan", "--kubeconfig", str(kubeconfig)])
    assert (result.exit_code, result.stdout) == (1, "")
    message = (
        "karpool: context tests: pods cannot be listed, and nothing can be decided without them: pods is forbidden"
    )
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1


def test_the_compactor_finds_its_configuration_in_the_cluster(control_plane: ControlPlane, node: str) -> None:
    admin = Https(control_plane.kubeconfig())
    arguments = ["compact", "--plan", "--kubeconfig", str(control_plane.kubeconfig()), "--output", "json"]
    missing = CliRunner().invoke(cli, [*arguments, "--namespace", "default"])
    assert (missing.exit_code, missing.stderr) == (0, "")
    assert json.loads(missing.stdout)["configured"] is False
    config = {"metadata": {"name": "pools"}, "data": {KEY: '{"nodePools": {"tiny": {"enabled": false}}}'}}
    assert admin.post("/api/v1/namespaces/default/configmaps", config).status == 201
    result = CliRunner().invoke(cli, arguments, env={"NAMESPACE": "default", "CONFIGMAP_NAME": "pools"})
    assert (result.exit_code, result.stderr) == (0, "")
    assert f'"{node}"' in result.stdout
    assert json.loads(result.stdout)["configured"] is True


def test_sizes_of_groups_take_the_right_to_get_one_config_map(control_plane: ControlPlane, node: str) -> None:
    admin = Https(control_plane.kubeconfig())
    labels = {"labels": {"eks.amazonaws.com/nodegroup": "web"}}
    assert admin.delete(f"/api/v1/nodes/{node}").status == 200
    assert admin.post("/api/v1/nodes", {"metadata": {"name": node, **labels}}).status == 201
    maps = "/api/v1/namespaces/kube-system/configmaps"
    status = autoscaler_status(status_yaml({f"eks-web-{UUID}": (2, 7)}))
    assert admin.post(maps, {"metadata": {"name": STATUS_MAP}, "data": status["data"]}).status == 201
    arguments = ["plan", "--no-bound", "--effort", "0", "--output", "json", "--kubeconfig"]
    plain = reader(control_plane, "reads-no-status", DECIDED_ON)
    told = CliRunner().invoke(cli, [*arguments, str(plain)])
    assert "nobody knows how small and large node groups may be: configmaps" in told.stderr
    assert json.loads(told.stdout)["groups"][0]["maximum"] is None
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [STATUS_MAP], "verbs": ["get"]}
    binding = {
        "metadata": {"name": "status"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "status"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "reads-no-status"}],
    }
    place = f"{RBAC}/namespaces/kube-system"
    assert admin.post(f"{place}/roles", {"metadata": {"name": "status"}, "rules": [rule]}).status == 201
    assert admin.post(f"{place}/rolebindings", binding).status == 201
    allowed = json.loads(CliRunner().invoke(cli, [*arguments, str(plain)]).stdout)
    assert [(entry["minimum"], entry["maximum"]) for entry in allowed["groups"]] == [(2, 7)]
    file = control_plane.folder / "kept.json"
    kept = CliRunner().invoke(cli, ["snapshot", "-o", str(file), "--kubeconfig", str(plain)])
    assert kept.exit_code == 0
    offline = json.loads(CliRunner().invoke(cli, [*arguments[:-1], "-f", str(file)]).stdout)
    assert offline["groups"] == allowed["groups"]
    assert admin.delete(f"{maps}/{STATUS_MAP}").status == 200


def _waiting(name: str, **meta: Any) -> dict[str, Any]:
    spec = meta.pop("spec", {"containers": []})
    return {"metadata": {"name": name, "namespace": "default", **meta}, "spec": spec}


GROUP_LIST = listed({"metadata": {"name": "train", "namespace": "default"}, "spec": {"minMember": 3}})
NATIVE_LIST = listed(
    {"metadata": {"name": "train", "namespace": "default"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
)


@pytest.mark.parametrize(
    ("pod", "path", "answer"),
    [
        (
            _waiting("a", labels={"scheduling.x-k8s.io/pod-group": "train"}),
            "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
            GROUP_LIST,
        ),
        (
            _waiting("a", annotations={"scheduling.k8s.io/group-name": "train"}),
            "/apis/scheduling.volcano.sh/v1beta1/podgroups",
            GROUP_LIST,
        ),
        (
            _waiting("a", spec={"containers": [], "schedulingGroup": {"podGroupName": "train"}}),
            "/apis/scheduling.k8s.io/v1alpha2/podgroups",
            NATIVE_LIST,
        ),
    ],
)
def test_how_many_pods_a_gang_needs_is_asked_of_its_scheduler_alone(
    pod: dict[str, Any], path: str, answer: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> None:
    newer = [f"/apis/scheduling.k8s.io/{version}/podgroups" for version in ("v1beta1", "v1alpha3")]
    given = {**dict.fromkeys(newer, refuses(404, "NotFound")), "/api/v1/pods": listed(pod), path: answer}
    reading, paths_read = read_from(given)
    assert [group.least for group in reading.objects.pod_groups] == [3]
    assert set(paths_read) - {resource.path() for resource in DECIDED_ON} == {
        path,
        *(newer if "v1alpha2" in path else []),
    }
    assert list(reading.notes()) == []


def test_gangs_whose_needs_nobody_may_see_are_said() -> None:
    pod = _waiting("a", labels={"scheduling.x-k8s.io/pod-group": "train"})
    path = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
    reading, _ = read_from({"/api/v1/pods": listed(pod), path: refuses(403, "Forbidden")})
    (note,) = reading.notes()
    assert note.startswith("podgroups.scheduling.x-k8s.io cannot be listed, so all waiting pods of a gang count")
