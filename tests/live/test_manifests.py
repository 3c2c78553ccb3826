"""The shipped manifests: the API server accepts them, and the programs accept the arguments in them."""

import asyncio
import json
from typing import Any

import click
import pytest
from tests.live import manifests
from tests.live.control_plane import ControlPlane
from tests.live.manifests import DEPLOY, Json
from tests.live.trial import Trial

from karpool.cli.main import cli
from karpool.kube.client import Client
from karpool.kube.errors import ForbiddenError
from karpool.kube.kubeconfig import find_target
from karpool.live import resources as r

VARIABLES = {
    "IMAGE_REGISTRY": "",
    "VERSION": "0.1.0",
    "APP_NAME": "karpool",
    "NAMESPACE": "karpool",
    "TEAM_NAME": "platform",
    "PROVIDER": "karpenter",
    "ACT": "false",
    "REPLICAS": "1",
    "ESTAFETTE_K8S_NODE_COMPACTOR_CONFIG": '{"nodePools": {"web": {"enabled": true}}}',
    "CPU_REQUEST": "100m",
    "MEMORY_REQUEST": "512Mi",
    "CPU_LIMIT": "2",
    "MEMORY_LIMIT": "1Gi",
}
RECORDER = VARIABLES | {"APP_NAME": "karpool-recorder", "STORAGE": "20Gi"}
COMPACTOR = VARIABLES | {"APP_NAME": "estafette-k8s-node-compactor", "NAMESPACE": "estafette"}
FILES = [
    ("metrics-reader.yaml", VARIABLES),
    ("controller/rbac.yaml", VARIABLES),
    ("controller/rbac-dry-run.yaml", VARIABLES),
    ("controller/rbac-kwok-dry-run.yaml", VARIABLES),
    ("controller/rbac-kwok.yaml", VARIABLES),
    ("controller/rbac-dra.yaml", VARIABLES),
    ("controller/rbac-node-overlay.yaml", VARIABLES),
    ("controller/rbac-pod-deletion-cost.yaml", VARIABLES),
    ("controller/rbac-scheduler-config.yaml", VARIABLES),
    ("controller/network.yaml", VARIABLES),
    ("controller/policy.yaml", VARIABLES),
    ("controller/policy-kwok.yaml", VARIABLES),
    ("controller/kubernetes.yaml", VARIABLES),
    ("compactor/rbac.yaml", COMPACTOR),
    ("compactor/rbac-dry-run.yaml", COMPACTOR),
    ("compactor/network.yaml", COMPACTOR),
    ("compactor/policy.yaml", COMPACTOR),
    ("compactor/kubernetes.yaml", COMPACTOR),
    ("recorder/rbac.yaml", RECORDER),
    ("recorder/network.yaml", RECORDER),
    ("recorder/kubernetes.yaml", RECORDER),
]
DEPLOYMENTS = [(name, variables) for name, variables in FILES if name.endswith("kubernetes.yaml")]
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def deployment(name: str, variables: dict[str, str]) -> Json:
    """The Deployment of a file."""
    return next(document for document in manifests.read(DEPLOY / name, variables) if document["kind"] == "Deployment")


def test_every_file_is_tried_here() -> None:
    """But those of `monitoring`, which tests/monitoring makes anew and tries with promtool."""
    files = {str(path.relative_to(DEPLOY)) for path in DEPLOY.rglob("*.yaml") if path.parent.name != "monitoring"}
    assert files == {name for name, _ in FILES}


def test_the_api_server_takes_every_manifest_twice_and_the_second_time_nothing_changes(
    control_plane: ControlPlane,
) -> None:
    async def scenario() -> None:
        async with Client(find_target(kubeconfig=control_plane.kubeconfig())) as client:
            documents = [document for name, variables in FILES for document in manifests.read(DEPLOY / name, variables)]
            # The API server gives a claim on a volume a new version whenever it is applied.
            documents = [document for document in documents if document["kind"] != "PersistentVolumeClaim"]
            made = [await manifests.apply(client, document) for document in documents]
            again = [await manifests.apply(client, document) for document in documents]
            # Nobody else writes here, so a version that moved would be a manifest that quarrels with itself.
            versions = {manifests.path_of(document): document["metadata"]["resourceVersion"] for document in made}
            assert {
                manifests.path_of(document): document["metadata"]["resourceVersion"] for document in again
            } == versions

    asyncio.run(scenario())


@pytest.mark.parametrize(("name", "variables"), DEPLOYMENTS)
def test_the_command_line_takes_the_arguments_and_variables_of_the_deployment(
    name: str, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (container,) = deployment(name, variables)["spec"]["template"]["spec"]["containers"]
    for variable in container.get("env", ()):
        monkeypatch.setenv(variable["name"], variable.get("value", "karpool"))
    command_name, *arguments = container["args"]
    command = cli.get_command(click.Context(cli), command_name)
    assert command is not None
    context = command.make_context(command_name, arguments)
    if command_name == "run":
        given = context.params
        assert (given["provider"], given["act"], given["lease_name"]) == ("karpenter", False, "karpool")
        assert (given["metrics_address"], given["health_address"]) == (":8080", ":8081")


@pytest.mark.parametrize(("name", "variables"), DEPLOYMENTS)
def test_ports_probes_and_volumes_belong_together(name: str, variables: dict[str, str]) -> None:
    spec = deployment(name, variables)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    ports = {port["name"] for port in container.get("ports", ())}
    probes = [container[key] for key in ("livenessProbe", "readinessProbe") if key in container]
    assert {probe["httpGet"]["port"] for probe in probes} <= ports
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}
    assert container["securityContext"]["readOnlyRootFilesystem"]


@pytest.mark.parametrize(("name", "variables"), DEPLOYMENTS)
def test_the_network_policy_is_about_these_pods_and_opens_their_port_of_metrics_at_most(
    name: str, variables: dict[str, str]
) -> None:
    made = deployment(name, variables)
    (policy,) = manifests.read(DEPLOY / name.replace("kubernetes.yaml", "network.yaml"))
    template = made["spec"]["template"]
    assert policy["metadata"]["namespace"] == made["metadata"]["namespace"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    (container,) = template["spec"]["containers"]
    rules = policy["spec"].get("ingress", ())
    assert [port["port"] for rule in rules for port in rule["ports"]] == [
        port["containerPort"] for port in container.get("ports", ()) if port["name"] == "metrics"
    ]
    assert all(source.keys() == {"namespaceSelector"} for rule in rules for source in rule["from"])
    assert {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]} == {53, 443, 6443}


@pytest.mark.parametrize(("name", "variables"), DEPLOYMENTS)
def test_the_strictest_pod_security_admits_the_pods(
    running_cluster: ControlPlane, name: str, variables: dict[str, str]
) -> None:
    async def scenario() -> None:
        async with Trial(running_cluster) as trial:
            space = f"{variables['APP_NAME']}-restricted"
            manifest = deployment(name, variables | {"NAMESPACE": space})
            labelled = {"metadata": {"name": space, "labels": RESTRICTED}}
            await trial.client.create(r.NAMESPACES, labelled)
            await manifests.apply(trial.client, manifest)

            async def all_made() -> bool:
                pods = (await trial.client.list(r.PODS, namespace=space)).items
                return len(pods) == manifest["spec"]["replicas"]

            try:
                await trial.until("its pods are admitted", all_made, seconds=20)
                await _expect_root_is_refused(trial.client, manifest)
            finally:
                await trial.client.delete(r.NAMESPACES, space)

    asyncio.run(scenario())


async def _expect_root_is_refused(client: Client, manifest: Json) -> None:
    """The admission is really there: the same pod as root is refused."""
    pod: dict[str, Any] = json.loads(json.dumps(manifest["spec"]["template"]))
    pod["metadata"]["name"] = "root"
    pod["spec"]["securityContext"] |= {"runAsNonRoot": False, "runAsUser": 0}
    with pytest.raises(ForbiddenError, match="violates PodSecurity"):
        await client.create(r.PODS, pod, namespace=manifest["metadata"]["namespace"])
