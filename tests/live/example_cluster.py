"""The example cluster on a real API server, with a secret planted wherever an object has room for one."""

import json
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from tests.live.https import Client, eventually

from karpool.live.crds import NAMES, definition
from karpool.live.reading import SIMULATED

EXAMPLES = Path(__file__).parents[2] / "examples"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLURALS = {resource.kind: resource for resource in SIMULATED}
OWN = ("default", "kube-system")
"""Namespaces that every cluster has."""
MARK = "planted-secret-"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Planter:
    """Gives a new secret at each asking, and remembers them."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.places: dict[str, str] = {}

    def secret(self, place: str) -> str:
        made = f"{MARK}{next(self._numbers)}-"
        self.places[made] = place
        return made

    def plant(self, thing: dict[str, Any]) -> None:
        kind, metadata = thing["kind"], thing["metadata"]
        self.annotate(metadata, kind)
        spec = thing.get("spec") or {}
        if kind == "Pod":
            self.in_pod(spec, kind)
        elif "template" in spec:
            self.annotate(spec["template"].setdefault("metadata", {}), f"{kind} template")
            if kind != "NodePool":
                self.in_pod(spec["template"]["spec"], f"{kind} template")
        for condition in thing.get("status", {}).get("conditions") or ():
            if condition["type"] != "Drifted":
                condition["message"] = self.secret(f"{kind} condition")

    def annotate(self, metadata: dict[str, Any], kind: str) -> None:
        annotations = metadata.setdefault("annotations", {})
        annotations["example.com/token"] = self.secret(f"{kind} annotation")
        annotations[LAST_APPLIED] = json.dumps({"password": self.secret(f"{kind} last-applied")})

    def in_pod(self, spec: dict[str, Any], kind: str) -> None:
        for container in spec["containers"]:
            container["env"] = [{"name": "PASSWORD", "value": self.secret(f"{kind} env")}]
            container["args"] = ["--token", self.secret(f"{kind} args")]
            container["command"] = ["/run", self.secret(f"{kind} command")]
            container["image"] = f"example.com/app:{self.secret(f'{kind} image')}1"
            container["workingDir"] = f"/{self.secret(f'{kind} workingDir')}"
        spec["imagePullSecrets"] = [{"name": f"{self.secret(f'{kind} imagePullSecrets')}1"}]
        spec["hostname"] = f"{self.secret(f'{kind} hostname')}1"
        spec.setdefault("volumes", []).extend(
            [
                {"name": "keys", "secret": {"secretName": f"{self.secret(f'{kind} secret volume')}1"}},
                {"name": "settings", "configMap": {"name": f"{self.secret(f'{kind} config volume')}1"}},
                {"name": "host", "hostPath": {"path": f"/{self.secret(f'{kind} hostPath')}"}},
            ]
        )


def example_objects() -> Iterator[dict[str, Any]]:
    """Every object of the examples that decisions read."""
    for file in sorted(EXAMPLES.glob("*.*")):
        if file.suffix in (".json", ".yaml"):
            for document in yaml.safe_load_all(file.read_text()):
                yield from document.get("items", [document])


def build(admin: Client) -> Planter:
    """Put the examples into a cluster, with secrets."""
    planter = Planter()
    put(admin, example_objects(), planter)
    for kind in ("secrets", "configmaps"):
        body = {
            "metadata": {"name": "planted"},
            "stringData" if kind == "secrets" else "data": {"a": planter.secret(kind)},
        }
        assert admin.post(f"/api/v1/namespaces/default/{kind}", body).status == 201
    return planter


def put(admin: Client, things: Iterable[dict[str, Any]], planter: Planter | None = None) -> None:
    """Put objects into a new cluster; they run nowhere, and are as old as the cluster."""
    for name in NAMES:
        assert admin.post(DEFINITIONS, yaml.safe_load(definition(name))).status == 201
    objects = sorted(
        (thing for thing in things if thing["kind"] in PLURALS and thing["metadata"]["name"] not in OWN),
        key=lambda thing: thing["kind"] != "Namespace",
    )
    classes = {thing["spec"].get("priorityClassName", "") for thing in objects if thing["kind"] == "Pod"}
    for name in (name for name in classes if name and not name.startswith("system-")):
        body = {"metadata": {"name": name}, "value": 1000}
        assert admin.post("/apis/scheduling.k8s.io/v1/priorityclasses", body).status == 201
    for thing in objects:
        manager = "tests"
        if planter:
            planter.plant(thing)
            manager = planter.secret(f"{thing['kind']} managedFields")
        _create(admin, thing, manager)


def _create(admin: Client, thing: dict[str, Any], manager: str) -> None:
    resource = PLURALS[thing["kind"]]
    metadata = thing["metadata"]
    for field in ("uid", "resourceVersion", "creationTimestamp", "finalizers", "managedFields"):
        metadata.pop(field, None)
    if thing["kind"] == "Pod":
        thing["spec"].pop("priority", None)
    for container in _containers(thing):
        container.setdefault("image", "example.com/app:1")
    path = resource.path(metadata.get("namespace", ""))
    made = eventually(lambda: _posted(admin, f"{path}?fieldManager={manager}", thing))
    if thing.get("status"):
        made["status"] = thing["status"]
        made["metadata"].pop("managedFields", None)
        answer = admin.request("PUT", f"{path}/{metadata['name']}/status", made)
        assert answer.status in (200, 404), answer.body
        made = answer.body
    if thing["kind"] == "Node":  # no controller takes away the taint that every new node gets
        made["spec"]["taints"] = thing["spec"].get("taints", [])
        assert admin.request("PUT", f"{path}/{metadata['name']}", made).status == 200


def _containers(thing: dict[str, Any]) -> list[dict[str, Any]]:
    """Of a pod, or of the template of a workload; files without an image are shortened."""
    spec = thing.get("spec", {})
    own: list[dict[str, Any]] = spec.get("containers", [])
    return own or spec.get("template", {}).get("spec", {}).get("containers", [])


def _posted(admin: Client, path: str, thing: dict[str, Any]) -> dict[str, Any] | None:
    """The object as the server has it; None while the server does not know its kind yet."""
    answer = admin.post(path, thing)
    assert answer.status in (201, 404), (path, answer.body)
    return answer.body if answer.status == 201 else None
