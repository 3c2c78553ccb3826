"""The manifests that are shipped: filled in as envsubst does it, and applied as kubectl does it."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from karpool.kube.client import Client

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
APPLY = "application/apply-patch+yaml"
# Group and version are in the manifests; what the paths need besides is not.
_PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "ConfigMap": "configmaps",
    "Deployment": "deployments",
    "Namespace": "namespaces",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "NetworkPolicy": "networkpolicies",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "ServiceAccount": "serviceaccounts",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
Json = dict[str, Any]


def read(path: Path, variables: dict[str, str] | None = None) -> list[Json]:
    """The objects of a file; a variable without a value is an error."""
    known = variables or {}
    text = re.sub(r"\$\{(\w+)\}", lambda variable: known[variable[1]], path.read_text())
    return [document for document in yaml.safe_load_all(text) if document is not None]


def path_of(document: Json) -> str:
    """Where the API serves the object of a manifest."""
    version, metadata = document["apiVersion"], document["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{space}/{_PLURALS[document['kind']]}/{metadata['name']}"


async def apply(client: Client, document: Json) -> Json:
    """Server-side apply; unknown and doubled fields are refused."""
    params = {"fieldManager": "tests", "force": "true", "fieldValidation": "Strict"}
    body = json.dumps(document).encode()
    answer: Json = json.loads(
        await client.raw("PATCH", path_of(document), params=params, body=body, content_type=APPLY)
    )
    return answer
