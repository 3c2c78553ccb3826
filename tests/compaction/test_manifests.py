"""The manifests: variables, privileges, and that they hold together."""

import re
from pathlib import Path
from string import Template
from typing import Any, Final

import pytest

import karpool
from karpool.compaction.config import CONFIG_MAP, KEY, Config, parse_config
from karpool.compaction.rates import LEDGER
from karpool.model.autoscaler_rules import SAFE_TO_EVICT
from karpool.model.group_sizes import STATUS_NAMESPACE
from karpool.model.labels import PAUSE_MAP as PAUSE
from karpool.model.labels import STATUS_MAP
from karpool.wire.yaml_documents import yaml_documents

DEPLOY: Final = Path(__file__).parents[2] / "deploy" / "compactor"
NAME: Final = "estafette-k8s-node-compactor"
VARIABLES: Final = {
    "IMAGE_REGISTRY": "registry.example.com/team/",
    "APP_NAME": NAME,
    "NAMESPACE": "estafette",
    "TEAM_NAME": "myteam",
    "ESTAFETTE_K8S_NODE_COMPACTOR_CONFIG": "{}",
    "CPU_REQUEST": "10m",
    "MEMORY_REQUEST": "15Mi",
    "CPU_LIMIT": "1",
    "MEMORY_LIMIT": "128Mi",
}


def without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def filled_in() -> str:
    return Template(without_comments((DEPLOY / "kubernetes.yaml").read_text())).substitute(VARIABLES)


def by_kind(text: str) -> dict[str, Any]:
    return {manifest["kind"]: manifest for manifest in yaml_documents(text.encode())}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return by_kind(filled_in())


@pytest.fixture(scope="module")
def rights() -> dict[str, Any]:
    return by_kind((DEPLOY / "rbac.yaml").read_text())


def test_every_variable_is_one_that_is_documented() -> None:
    text = (DEPLOY / "kubernetes.yaml").read_text()
    assert set(re.findall(r"\$\{(\w+)\}", text)) == set(VARIABLES)
    assert all(f"#     {name}=" in text for name in VARIABLES)


def test_what_the_variables_say_arrives_as_text(made: dict[str, Any]) -> None:
    container = made["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"registry.example.com/team/karpool:{karpool.__version__}"
    assert container["args"] == ["compact", "--metrics-address", ":9101"]
    assert container["resources"]["limits"] == {"cpu": "1", "memory": "128Mi"}
    assert made["Deployment"]["spec"]["template"]["metadata"]["labels"]["version"] == karpool.__version__
    assert made["ConfigMap"]["metadata"]["name"] == CONFIG_MAP
    assert list(made["ConfigMap"]["data"]) == [KEY]


def test_the_variables_of_the_original_are_enough() -> None:
    """Its instructions name no registry, and versions of another program; envsubst leaves empty what is not set."""
    given = {name: value for name, value in VARIABLES.items() if name != "IMAGE_REGISTRY"} | {
        "GO_PIPELINE_LABEL": "1.0.5",
        "VERSION": "1.0.5",
    }
    text = without_comments((DEPLOY / "kubernetes.yaml").read_text())
    made = by_kind(re.sub(r"\$\{(\w+)\}", lambda variable: given.get(variable[1], ""), text))
    container = made["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"karpool:{karpool.__version__}"
    assert "${" not in str(made)


def test_the_config_map_in_the_manifest_is_a_configuration() -> None:
    assert parse_config(filled_in()) == Config()


def test_a_stuck_loop_is_restarted(made: dict[str, Any]) -> None:
    container = made["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}


def test_the_compactor_runs_without_privileges_and_does_not_keep_its_own_node(made: dict[str, Any]) -> None:
    template = made["Deployment"]["spec"]["template"]
    container = template["spec"]["containers"][0]
    assert template["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert template["metadata"]["annotations"][SAFE_TO_EVICT] == "true"


def test_the_rights_are_the_least_that_do(rights: dict[str, Any]) -> None:
    rules = rights["ClusterRole"]["rules"]
    granted = {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
    changing = {pair for pair in granted if pair[1] not in ("get", "list", "watch")}
    # Reviews change nothing: they ask whether a token, and who it belongs to, may read metrics.
    asking = {("tokenreviews", "create"), ("subjectaccessreviews", "create")}
    assert changing == asking | {
        ("nodes", "patch"),
        ("pods/eviction", "create"),
        ("events", "create"),
        ("events", "patch"),
    }
    assert not any("*" in pair or pair[0] in ("secrets", "configmaps") for pair in granted)
    watched, read, noted, created = rights["Role"]["rules"]
    assert (watched["resourceNames"], watched["verbs"]) == ([CONFIG_MAP, PAUSE], ["list", "watch"])
    assert (read["resourceNames"], read["verbs"]) == ([CONFIG_MAP], ["get"])
    assert (noted["resourceNames"], noted["verbs"]) == ([LEDGER], ["get", "patch"])
    assert ("resourceNames" in created, created["verbs"]) == (False, ["create"])
    roles = [entry for entry in yaml_documents((DEPLOY / "rbac.yaml").read_bytes()) if entry["kind"] == "Role"]
    (status,) = roles[0]["rules"]
    assert roles[0]["metadata"]["namespace"] == STATUS_NAMESPACE
    assert (status["resourceNames"], status["verbs"]) == ([STATUS_MAP], ["get"])


def test_the_bindings_name_the_account_of_the_manifest(made: dict[str, Any], rights: dict[str, Any]) -> None:
    account = made["ServiceAccount"]["metadata"]
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        (subject,) = rights[kind]["subjects"]
        assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
        assert rights[kind]["roleRef"]["name"] == NAME
    assert made["Deployment"]["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]
