"""The Deployment `karpenter` that the suites know, played on this machine: one process instead of one container.

A suite changes environment variables of the Deployment, and waits for a pod that has them and holds the lease. The
Deployment is paused, so that no ReplicaSet makes pods of it; what follows it is here.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

from tests.conformance.container_port import ContainerPort
from tests.live.https import Client
from tests.live.programs import Program, free_port

SOURCE = Path(__file__).resolve().parents[2] / "src"
CONTROL_PLANE_NODE = "control-plane"
LEASE = "karpenter-leader-election"
NAMESPACE = "kube-system"
POLL = 0.5
PATIENCE = 300
"""Seconds for a controller to be ready: the first start may have kernels to compile."""
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_LABELS = {"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/instance": "karpenter"}

Start = Callable[[Path, Mapping[str, str], int, int, Path], Program]
"""A controller from a kubeconfig, the variables of the Deployment, ports for metrics and health, and a log."""


def karpool(executable: str) -> Start:
    """Karpool in Karpenter's place; it takes the same settings under its own names."""

    def start(kubeconfig: Path, settings: Mapping[str, str], metrics: int, health: int, log: Path) -> Program:
        command = [
            executable,
            "run",
            "--act",
            "--all-pools",
            "--provider=kwok",
            f"--kubeconfig={kubeconfig}",
            f"--lease-name={LEASE}",
            f"--lease-namespace={NAMESPACE}",
            f"--metrics-address=127.0.0.1:{metrics}",
            f"--health-address=127.0.0.1:{health}",
            f"--journal={log.with_suffix('.journal')}",
        ]
        own = {f"KARPOOL_{name}": value for name, value in settings.items()} | {"PYTHONPATH": str(SOURCE)}
        return Program(command, log, environment=os.environ | own)

    return start


def karpenter(executable: Path) -> Start:
    """Karpenter itself, with its KWOK provider."""

    def start(kubeconfig: Path, settings: Mapping[str, str], metrics: int, health: int, log: Path) -> Program:
        own = {
            "KUBECONFIG": str(kubeconfig),
            "SYSTEM_NAMESPACE": NAMESPACE,
            "LEADER_ELECTION_NAMESPACE": NAMESPACE,
            "METRICS_PORT": str(metrics),
            "HEALTH_PROBE_PORT": str(health),
        }
        return Program([executable], log, environment=os.environ | own | settings)

    return start


class Deployment:
    """Follows the Deployment while it is open."""

    def __init__(
        self,
        client: Client,
        kubeconfig: Path,
        folder: Path,
        start: Start,
        settings: Mapping[str, str],
        *,
        container_port: ContainerPort,
    ) -> None:
        self._client = client
        self._container_port = container_port
        self._kubeconfig = kubeconfig
        self._log = folder / "controller.log"
        self._start = start
        self._settings = settings
        self.pod = socket.gethostname().lower()
        """Both take their host's name as the first part of what they write into the lease."""
        self._program: Program | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="deployment")
        self.problem = ""
        """What became of the controller when nobody had asked for it."""

    def __enter__(self) -> Self:
        answer = self._client.post(_DEPLOYMENTS, _deployment(self._settings))
        if answer.status != HTTPStatus.CREATED:
            raise RuntimeError(f"the API server refused the Deployment: {answer.body}")
        self._roll_out(answer.body["spec"]["template"])
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._program is not None:
            self._program.stop(signal.SIGKILL)

    def _follow(self) -> None:
        template = self._template()
        while not self._stop.wait(POLL):
            if self._program is not None and not self._program.running and not self.problem:
                self.problem = "the controller ended by itself"
            current = self._template()
            if current != template:
                template = current
                try:
                    self._roll_out(template)
                except Exception as error:  # noqa: BLE001 - nobody waits for this thread
                    self.problem = f"the controller did not start: {error}"

    def _template(self) -> dict[str, Any]:
        template: dict[str, Any] = self._client.get(f"{_DEPLOYMENTS}/karpenter").body["spec"]["template"]
        return template

    def _roll_out(self, template: dict[str, Any]) -> None:
        """One controller goes, one with these variables comes, and then its pod is there."""
        if self._program is not None:
            self._program.stop()
        self._client.delete(f"{_PODS}/{self.pod}?gracePeriodSeconds=0")
        variables = {
            entry["name"]: entry.get("value", "") for entry in template["spec"]["containers"][0].get("env", [])
        }
        metrics, health = free_port(), free_port()
        self._program = self._start(self._kubeconfig, variables, metrics, health, self._log)
        self._program.start()
        self._program.wait_until_healthy(f"http://127.0.0.1:{health}/readyz", patience=PATIENCE)
        self._container_port.lead_to(metrics, self._program.pid)
        answer = self._client.post(_PODS, self._pod_of(template))
        if answer.status != HTTPStatus.CREATED:
            raise RuntimeError(f"the API server refused the pod: {answer.body}")

    def _pod_of(self, template: dict[str, Any]) -> dict[str, Any]:
        """The pod, already bound; kwok has it running at once."""
        metadata = {**template["metadata"], "name": self.pod, "namespace": NAMESPACE}
        spec = {**template["spec"], "nodeName": CONTROL_PLANE_NODE, "tolerations": [{"operator": "Exists"}]}
        return {"kind": "Pod", "metadata": metadata, "spec": spec}


def _deployment(settings: Mapping[str, str]) -> dict[str, Any]:
    variables = [{"name": name, "value": value} for name, value in settings.items()]
    containers = [{"name": "controller", "image": "controller", "env": variables}]
    return {
        "kind": "Deployment",
        "metadata": {"name": "karpenter", "namespace": NAMESPACE, "labels": _LABELS},
        "spec": {
            "paused": True,
            "replicas": 1,
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": {"containers": containers}},
        },
    }
