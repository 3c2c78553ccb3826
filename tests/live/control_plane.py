"""A real Kubernetes control plane on the loopback interface: etcd and kube-apiserver, the rest on demand.

Certificates, data and logs are in one folder. kwok plays the kubelets, so nodes are objects and pods run nowhere.
"""

import base64
import contextlib
import http.client
import json
import shutil
import signal
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tests.live.certificates import Authority, file_name
from tests.live.programs import Program, ProgramError, free_port

STAGES = Path(__file__).with_name("kwok.yaml")
# Those that act on what Karpool reads. Node lifecycle takes away the taint that every new node gets at admission.
CONTROLLERS = (
    "daemonset",
    "deployment",
    "disruption",
    "garbage-collector",
    "job",
    "namespace",
    "node-lifecycle",
    "pod-garbage-collector",
    "replicaset",
    "resourceclaim",
    "statefulset",
    "taint-eviction",
)
QUICK = ("--kube-api-qps=500", "--kube-api-burst=1000", "--leader-elect=false")


class ControlPlane:
    """A cluster of one's own; use it as a context manager, or call `start` and `stop`."""

    OTHERS = ("kube-controller-manager", "kube-scheduler", "kwok")

    def __init__(self, programs: Path, folder: Path, *, apiserver_flags: Sequence[str] = ()) -> None:
        self.folder = folder
        self._programs = programs
        self._certificates = folder / "certificates"
        self._certificates.mkdir(parents=True)
        self._authority = Authority(self._certificates)
        self._serving = self._authority.server()
        self._etcd_address = f"127.0.0.1:{free_port()}"
        self._apiserver_port = free_port()
        self.url = f"https://127.0.0.1:{self._apiserver_port}"
        self._tls = ssl.create_default_context(cafile=str(self._authority.own.certificate))
        self._etcd = self._program("etcd", *self._etcd_flags())
        self._apiserver = self._program("kube-apiserver", *self._apiserver_flags(), *apiserver_flags)
        self._others: dict[str, Program] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts etcd and the API server, and returns when requests are answered."""
        try:
            self._etcd.start()
            self._etcd.wait_until_healthy(f"http://{self._etcd_address}/readyz")
            self.start_apiserver()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stops whatever runs; the logs stay, the data do not."""
        for program in [*self._others.values(), self._apiserver, self._etcd]:
            program.stop(signal.SIGKILL)
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)

    def start_apiserver(self) -> None:
        self._apiserver.start()
        self._apiserver.wait_until_healthy(f"{self.url}/readyz", self._tls)

    def kill_apiserver(self) -> None:
        """Ends the API server without a warning: connections break."""
        self._apiserver.stop(signal.SIGKILL)

    def restart_apiserver(self) -> None:
        """Ends the API server in good order and starts it again, on the same port and with the same data."""
        self._apiserver.stop()
        self.start_apiserver()

    def compact_etcd(self) -> None:
        """Drops all revisions but the last. The API server's own cache of events goes only when it restarts."""
        revision = self._ask_etcd("range", {"key": base64.b64encode(b"\0").decode()})["header"]["revision"]
        self._ask_etcd("compaction", {"revision": revision, "physical": True})

    def start_controller_manager(self, *flags: str, controllers: Sequence[str] = CONTROLLERS) -> None:
        port = free_port()
        self._start_other(
            "kube-controller-manager",
            f"https://127.0.0.1:{port}/healthz",
            *self._serving_flags(port),
            *QUICK,
            f"--kubeconfig={self.kubeconfig()}",
            f"--controllers={','.join(f'{name}-controller' for name in controllers)}",
            "--node-monitor-period=1s",
            *flags,
        )

    def start_scheduler(self, *flags: str) -> None:
        port = free_port()
        kubeconfig = self.user_kubeconfig("system:kube-scheduler")
        self._start_other(
            "kube-scheduler",
            f"https://127.0.0.1:{port}/healthz",
            *self._serving_flags(port),
            *QUICK,
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--authentication-tolerate-lookup-failure",
            *flags,
        )

    def start_kwok(self, *flags: str, stages: Path = STAGES, port: int | None = None) -> None:
        """From now on every node gets ready and renews its lease, and its pods run; see kwok.yaml."""
        address = f"127.0.0.1:{port or free_port()}"
        self._start_other(
            "kwok",
            f"http://{address}/healthz",
            f"--kubeconfig={self.kubeconfig()}",
            f"--config={stages}",
            f"--server-address={address}",
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=40",
            *flags,
        )

    def kubeconfig(self, user: str = "admin") -> Path:
        """The kubeconfig of somebody who may do anything."""
        return self.user_kubeconfig(user, ["system:masters"])

    def user_kubeconfig(self, name: str, groups: Sequence[str] = ()) -> Path:
        """The kubeconfig of any user, who may do what roles bound to that name or to these groups allow."""
        path = self.folder / f"{file_name(name, groups)}.kubeconfig"
        if not path.exists():
            path.write_text(json.dumps(self._kubeconfig(name, groups), indent=2))
        return path

    def _kubeconfig(self, name: str, groups: Sequence[str]) -> dict[str, Any]:
        own = self._authority.client(name, groups)
        cluster = {"server": self.url, "certificate-authority": str(self._authority.own.certificate)}
        user = {"client-certificate": str(own.certificate), "client-key": str(own.key)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": name}}],
            "current-context": "tests",
        }

    def _program(self, name: str, *flags: str) -> Program:
        return Program([self._programs / name, *flags], self.folder / f"{name}.log")

    def _start_other(self, name: str, health: str, *flags: str) -> None:
        if name in self._others:
            self._others.pop(name).stop()
        program = self._others[name] = self._program(name, *flags)
        if not (self._programs / name).exists():
            raise ProgramError(name, f"is not in {self._programs}", program.log)
        program.start()
        program.wait_until_healthy(health, self._tls)

    def _etcd_flags(self) -> list[str]:
        client = f"http://{self._etcd_address}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            "--listen-peer-urls=http://127.0.0.1:0",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _apiserver_flags(self) -> list[str]:
        signing = self._serving.key
        return [
            *self._serving_flags(self._apiserver_port),
            f"--etcd-servers=http://{self._etcd_address}",
            f"--client-ca-file={self._authority.own.certificate}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            f"--service-account-issuer={self.url}",
            f"--service-account-key-file={self._serving.certificate}",
            f"--service-account-signing-key-file={signing}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",
        ]

    def _serving_flags(self, port: int) -> list[str]:
        return [
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={self._serving.certificate}",
            f"--tls-private-key-file={self._serving.key}",
        ]

    def _ask_etcd(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        with contextlib.closing(http.client.HTTPConnection(self._etcd_address, timeout=30)) as connection:
            connection.request("POST", f"/v3/kv/{method}", json.dumps(body))
            response = connection.getresponse()
            answer: dict[str, Any] = json.load(response)
        if response.status != http.HTTPStatus.OK:
            raise ProgramError("etcd", f"refused {method}: {answer}", self._etcd.log)
        return answer
