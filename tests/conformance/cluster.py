"""A cluster as Karpenter's suites expect it: definitions, kwok stages, scheduler profiles, one system node."""

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import yaml
from tests.conformance.deployment import CONTROL_PLANE_NODE, Deployment, Start
from tests.live.control_plane import ControlPlane
from tests.live.https import Client, eventually
from tests.live.programs import Program

# As Karpenter's own end-to-end tests switch them.
FEATURE_GATES = "StaticCapacity=true,NodeRepair=true,CapacityBuffer=true"
_SCHEDULER_CONFIG = "/etc/kubernetes/karpenter-scheduler-config/kube-scheduler-config.yaml"
_DRA_DRIVER_HEALTH = "http://127.0.0.1:8083/readyz"  # it cannot be told otherwise
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Cluster:
    """Use it as a context manager: a control plane of one's own with a controller that answers for its nodes."""

    def __init__(self, kubernetes: Path, karpenter: Path, folder: Path, start: Start, *, dra: bool = False) -> None:
        self.folder = folder
        self.dra = dra
        """Whether a driver publishes devices for nodes, as DRAConfigs say."""
        self._karpenter = karpenter
        self._plane = ControlPlane(kubernetes, folder / "control-plane")
        self._start = start
        self._client = Client(self._plane.kubeconfig())
        self._stack = ExitStack()

    @property
    def environment(self) -> Mapping[str, str]:
        """What a suite has to know to find this cluster."""
        return {"KUBECONFIG": str(self._plane.kubeconfig())}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._plane)
            self._define()
            self._create("/api/v1/nodes", _system_node())
            self._create("/api/v1/namespaces/kube-system/pods", _scheduler_pod())
            self._plane.start_controller_manager("--controllers=resourceclaim-controller")
            self._plane.start_scheduler(f"--config={self._scheduler_config()}")
            self._plane.start_kwok(stages=self._stages())
            self.deployment = Deployment(
                self._client, self._plane.kubeconfig(), self.folder, self._start, {"FEATURE_GATES": FEATURE_GATES}
            )
            stack.enter_context(self.deployment)
            if self.dra:
                stack.callback(self._start_dra_driver().stop)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start_dra_driver(self) -> Program:
        driver = Program(
            [self._karpenter / "dra-kwok-driver"],
            self.folder / "dra-kwok-driver.log",
            environment=os.environ | self.environment,
        )
        driver.start()
        driver.wait_until_healthy(_DRA_DRIVER_HEALTH)
        return driver

    def _define(self) -> None:
        definitions = [
            definition
            for path in sorted((self._karpenter / "definitions").glob("*.yaml"))
            for definition in yaml.safe_load_all(path.read_text(encoding="utf-8"))
        ]
        for definition in definitions:
            self._create(_DEFINITIONS, definition)
        for definition in definitions:
            eventually(lambda name=definition["metadata"]["name"]: self._established(name), 60)

    def _established(self, name: str) -> bool:
        status = self._client.get(f"{_DEFINITIONS}/{name}").body.get("status", {})
        return any(
            found["type"] == "Established" and found["status"] == "True" for found in status.get("conditions", [])
        )

    def _create(self, path: str, body: dict[str, Any]) -> None:
        answer = self._client.post(path, body)
        if answer.status != HTTPStatus.CREATED:
            raise RuntimeError(f"the API server refused {body['kind']} {body['metadata']['name']}: {answer.body}")

    def _scheduler_config(self) -> Path:
        """The profiles that the suites are written for, for a scheduler that runs here."""
        config = yaml.safe_load((self._karpenter / "kube-scheduler-config.yaml").read_text(encoding="utf-8"))
        kubeconfig = str(self._plane.user_kubeconfig("system:kube-scheduler"))
        config["clientConnection"] = {"kubeconfig": kubeconfig, "qps": 500, "burst": 1000}
        config["leaderElection"] = {"leaderElect": False}
        path = self.folder / "kube-scheduler-config.yaml"
        path.write_text(json.dumps(config), encoding="utf-8")
        return path

    def _stages(self) -> Path:
        path = self.folder / "stages.yaml"
        stages = [found.read_text(encoding="utf-8") for found in sorted((self._karpenter / "stages").glob("*.yaml"))]
        path.write_text("\n---\n".join(stages), encoding="utf-8")
        return path


def _system_node() -> dict[str, Any]:
    """Where the controller's pod is said to run; nothing else tolerates its taint."""
    taints = [{"key": "CriticalAddonsOnly", "effect": "NoSchedule"}]
    resources = {"cpu": "16", "memory": "32Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": CONTROL_PLANE_NODE, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": taints},
        "status": {"capacity": resources, "allocatable": resources},
    }


def _scheduler_pod() -> dict[str, Any]:
    """Tells the suites with which profiles the scheduler runs."""
    command = ["kube-scheduler", f"--config={_SCHEDULER_CONFIG}"]
    return {
        "kind": "Pod",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system", "labels": {"component": "kube-scheduler"}},
        "spec": {
            "nodeName": CONTROL_PLANE_NODE,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "kube-scheduler", "image": "kube-scheduler", "command": command}],
        },
    }
