"""Roles, policies, definitions and pods of the chart are those of the manifests, under the names of the release."""

import json

import pytest
import yaml
from tests.chart.helm import DEPLOY, Json, deployment, of, render, shipped, unlabelled
from tests.tables import row, table

from karpool.live import crds

pytestmark = pytest.mark.slow
ROLES = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
COSTS = "A=true,PodDeletionCostManagement=true"
COMPACTOR_ONLY = {"controller": {"enabled": False}, "compactor": {"enabled": True}}
VARIABLES = {
    "IMAGE_REGISTRY": "", "VERSION": "0.1.0", "APP_NAME": "karpool", "NAMESPACE": "karpool", "TEAM_NAME": "",
    "PROVIDER": "karpenter", "ACT": "false",
    "REPLICAS": "1", "ESTAFETTE_K8S_NODE_COMPACTOR_CONFIG": "{}",
}  # fmt: skip
CONTROLLER_SIZE = {"CPU_REQUEST": "100m", "MEMORY_REQUEST": "512Mi", "CPU_LIMIT": "2", "MEMORY_LIMIT": "1Gi"}
COMPACTOR_SIZE = {"CPU_REQUEST": "100m", "MEMORY_REQUEST": "256Mi", "CPU_LIMIT": "1", "MEMORY_LIMIT": "512Mi"}


def option(name: str, value: str) -> Json:
    return {"options": {name: value}}


@table(
    row("a dry run only reads", values={}, files=["rbac-dry-run"]),
    row("one that acts", values={"act": True}, files=["rbac"]),
    row("kwok", values={"act": True, "provider": "kwok"}, files=["rbac", "rbac-kwok"]),
    row("kwok in a dry run", values={"provider": "kwok"}, files=["rbac-dry-run", "rbac-kwok-dry-run"]),
    row("devices", values=option("ignore-dra-requests", "false"), files=["rbac-dry-run", "rbac-dra"]),
    row("no devices", values=option("ignore-dra-requests", "true"), files=["rbac-dry-run"]),
    row("overlays", values=option("feature-gates", "NodeOverlay=true"), files=["rbac-dry-run", "rbac-node-overlay"]),
    row("no overlays", values=option("feature-gates", "NodeOverlay=false"), files=["rbac-dry-run"]),
    row("costs", values={"act": True, **option("feature-gates", COSTS)}, files=["rbac", "rbac-pod-deletion-cost"]),
    row("no costs in a dry run", values=option("feature-gates", COSTS), files=["rbac-dry-run"]),
    row("spread", values=option("scheduler-config", "{}"), files=["rbac-dry-run", "rbac-scheduler-config"]),
)  # fmt: skip
def test_the_controller_has_the_roles_of_what_it_does(values: Json, files: list[str]) -> None:
    made = of(render({"controller": values}), *ROLES)
    assert unlabelled(made) == unlabelled(shipped(*(f"controller/{name}.yaml" for name in files)))


@table(row("a dry run only reads", act=False, file="rbac-dry-run"), row("one that acts", act=True, file="rbac"))
def test_the_compactor_has_the_roles_of_what_it_does(*, act: bool, file: str) -> None:
    made = of(render(COMPACTOR_ONLY | {"compactor": {"enabled": True, "act": act}}), *ROLES)
    assert unlabelled(made) == unlabelled(as_release(f"compactor/{file}.yaml"))


@table(row(provider="karpenter", file="policy"), row(provider="kwok", file="policy-kwok"))
def test_the_controller_has_the_policies_of_its_provider(provider: str, file: str) -> None:
    made = of(render({"controller": {"provider": provider}}), *POLICIES)
    assert unlabelled(made) == unlabelled(shipped(f"controller/{file}.yaml"))


def test_the_compactor_has_its_policies() -> None:
    made = of(render(COMPACTOR_ONLY), *POLICIES)
    assert unlabelled(made) == unlabelled(as_release("compactor/policy.yaml"))


def test_readers_of_metrics_get_the_shipped_role() -> None:
    documents = render({"metrics": {"readers": [{"name": "prometheus", "namespace": "monitoring"}]}})
    (role,) = [made for made in of(documents, "ClusterRole") if "metrics" in made["metadata"]["name"]]
    assert unlabelled([role]) == unlabelled(shipped("metrics-reader.yaml"))
    (binding,) = [made for made in of(documents, "ClusterRoleBinding") if "metrics" in made["metadata"]["name"]]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}]


def test_definitions_come_only_when_asked_for_and_stay_when_the_release_goes() -> None:
    assert of(render({}), "CustomResourceDefinition") == []
    made = of(render({"controller": {"provider": "kwok"}, "crds": {"install": True}}), "CustomResourceDefinition")
    kept = {"annotations": {"helm.sh/resource-policy": "keep"}}
    ours = list(yaml.safe_load_all(crds.definitions()))
    expected = {one["metadata"]["name"]: one | {"metadata": one["metadata"] | kept} for one in ours}
    assert {one["metadata"]["name"]: one for one in made} == expected


def test_pods_of_the_controller_are_those_of_the_manifest() -> None:
    made = pods(deployment(render({}), "controller"))
    assert made == pods(manifest("controller/kubernetes.yaml", VARIABLES | CONTROLLER_SIZE))


def test_pods_of_the_compactor_are_those_of_the_manifest() -> None:
    made = pods(deployment(render({"compactor": {"enabled": True, "act": True}}), "compactor"))
    names = {"APP_NAME": "karpool-compactor"}
    theirs = pods(manifest("compactor/kubernetes.yaml", VARIABLES | COMPACTOR_SIZE | names))
    # The manifest says defaults of the command as variables, because those who come from the original have them there.
    (container,) = theirs["spec"]["containers"]
    container["env"] = container["env"][:2]
    assert made == theirs


def test_network_policies_are_those_of_the_manifests() -> None:
    made = of(render({"compactor": {"enabled": True}}), "NetworkPolicy")
    theirs = shipped("compactor/network.yaml", "controller/network.yaml")
    assert [rules(policy) for policy in made] == [rules(policy) for policy in theirs]


def rules(policy: Json) -> Json:
    return {key: value for key, value in policy["spec"].items() if key != "podSelector"}


def manifest(name: str, variables: dict[str, str]) -> Json:
    """The Deployment of a file, filled in."""
    text = (DEPLOY / name).read_text()
    for variable, value in variables.items():
        text = text.replace(f"${{{variable}}}", value)
    (found,) = of((document for document in yaml.safe_load_all(text) if document), "Deployment")
    return found


def pods(made: Json) -> Json:
    """What a Deployment says of its pods and how many there are, without how they are labelled."""
    template = made["spec"]["template"]
    spec = json.loads(json.dumps(template["spec"]))
    for spread in spec.get("topologySpreadConstraints", ()):
        assert spread.pop("labelSelector")["matchLabels"].items() <= template["metadata"]["labels"].items()
    (container,) = spec["containers"]
    container.pop("imagePullPolicy", None)
    container["resources"] = json.loads(json.dumps(container["resources"]), parse_int=str)
    return {
        "replicas": made["spec"]["replicas"],
        "strategy": made["spec"].get("strategy"),
        "annotations": template["metadata"]["annotations"],
        "spec": spec,
    }


def as_release(name: str) -> list[Json]:
    """A file of the compactor, under the names that a release has."""
    text = (DEPLOY / name).read_text()
    for old, new in (
        ("serviceaccount:estafette:estafette-k8s-node-compactor", "serviceaccount:karpool:karpool-compactor"),
        ("namespace: estafette\n", "namespace: karpool\n"),
        ("[estafette-k8s-node-compactor-config", "[karpool-compactor-config"),
        ("ame: estafette-k8s-node-compactor", "ame: karpool-compactor"),
        ("- name: karpool-compactor\n", "- name: estafette-k8s-node-compactor\n"),  # a condition, named for people
    ):
        text = text.replace(old, new)
    return [document for document in yaml.safe_load_all(text) if document["kind"] != "Namespace"]
