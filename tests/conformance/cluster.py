"""A cluster as Karpenter's suites expect it: definitions, kwok stages, scheduler profiles, one system node."""

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import yaml
from tests.conformance.container_port import PORT, ContainerPort
from tests.conformance.deployment import CONTROL_PLANE_NODE, NAMESPACE, Deployment, Start
from tests.conformance.egress import Egress
from tests.live.control_plane import ControlPlane
from tests.live.https import Client, eventually
from tests.live.programs import Program, free_port

# As Karpenter's own end-to-end tests switch them.
FEATURE_GATES = "StaticCapacity=true,NodeRepair=true,CapacityBuffer=true"
_SCHEDULER_CONFIG = "/etc/kubernetes/karpenter-scheduler-config/kube-scheduler-config.yaml"
_DRA_DRIVER_HEALTH = "http://127.0.0.1:8083/readyz"  # it cannot be told otherwise
_KUBELET = 10250
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Cluster:
    """Use it as a context manager: a control plane of one's own with a controller that answers for its nodes."""

    def __init__(self, kubernetes: Path, karpenter: Path, folder: Path, start: Start, *, dra: bool = False) -> None:
        self.folder = folder
        self.dra = dra
        """Whether a driver publishes devices for nodes, as DRAConfigs say."""
        self._karpenter = karpenter
        self._container_port = ContainerPort()
        self._kwok = free_port()
        self._egress = Egress(folder, {PORT: self._container_port.port, _KUBELET: self._kwok})
        self._plane = ControlPlane(kubernetes, folder / "control-plane", apiserver_flags=[self._egress.flag])
        self._start = start
        self._client = Client(self._plane.kubeconfig())
        self._stack = ExitStack()

    @property
    def environment(self) -> Mapping[str, str]:
        """What a suite has to know to find this cluster."""
        return {"KUBECONFIG": str(self._plane.kubeconfig())}

    def plane_logs(self) -> list[Path]:
        """What the programs of the control plane have written."""
        return sorted(self._plane.folder.glob("*.log"))

    def metrics_through_api_server(self) -> bytes:
        """As the performance suite reads them."""
        pod = f"http:{self.deployment.pod}:{PORT}"
        return self._client.read(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/proxy/metrics")

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._container_port)
            stack.enter_context(self._egress)
            stack.enter_context(self._plane)
            self._define()
            self._create("/api/v1/nodes", _system_node())
            self._create("/api/v1/namespaces/kube-system/pods", _scheduler_pod())
            self._plane.start_controller_manager("--controllers=resourceclaim-controller")
            self._plane.start_scheduler(f"--config={self._scheduler_config()}")
            self._plane.start_kwok(stages=self._stages(), port=self._kwok)
            self.deployment = Deployment(
                self._client,
                self._plane.kubeconfig(),
                self.folder,
                self._start,
                {"FEATURE_GATES": FEATURE_GATES},
                container_port=self._container_port,
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
        # There is a list of nothing, which is none, until somebody has looked at the definition.
        conditions = status.get("conditions") or []
        return any(found["type"] == "Established" and found["status"] == "True" for found in conditions)

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
        path.write_text("\n---\n".join([*stages, json.dumps(self._port_forward())]), encoding="utf-8")
        return path

    def _port_forward(self) -> dict[str, Any]:
        """What kwok does as the kubelet of the controller's pod."""
        target = {"address": "127.0.0.1", "port": self._container_port.port}
        return {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "ClusterPortForward",
            "metadata": {"name": "controller"},
            "spec": {
                "selector": {"matchNamespaces": [NAMESPACE]},
                "forwards": [{"ports": [PORT], "target": target}],
            },
        }


def _system_node() -> dict[str, Any]:
    """Where the controller's pod is said to run; nothing else tolerates its taint."""
    taints = [{"key": "CriticalAddonsOnly", "effect": "NoSchedule"}]
    resources = {"cpu": "16", "memory": "32Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": CONTROL_PLANE_NODE, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": taints},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            # Only the port counts, see egress.py. kwok takes away an address that has no name beside it.
            "addresses": [
                {"type": "InternalIP", "address": "192.0.2.1"},
                {"type": "Hostname", "address": CONTROL_PLANE_NODE},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": _KUBELET}},
        },
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
