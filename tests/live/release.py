"""A release of the chart on a real API server, and the accounts that it makes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chart.helm import CHART, Json, helm
from tests.live.control_plane import ControlPlane
from tests.live.https import Client


class Release:
    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._kubeconfig = plane.kubeconfig()
        self.namespace = namespace

    def helm(self, *arguments: str | Path, values: Json | None = None) -> str:
        done = helm(*arguments, "--namespace", self.namespace, "--kubeconfig", self._kubeconfig, values=values)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def apply(self, values: Json, *options: str) -> str:
        """Install it, or upgrade it; the notes that it ends with."""
        command = ("upgrade", "--install", "--create-namespace", "karpool", CHART, *options)
        return self.helm(*command, values={"global": {}} | values).partition("\nNOTES:\n")[2]

    def kubeconfig(self, account: str) -> Path:
        """That of an account, with a token as pods get one."""
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        answer = Client(self._kubeconfig).post(path, asked)
        assert answer.status == 201, answer.body
        config = json.loads(self._kubeconfig.read_text())
        config["users"][0]["user"] = {"token": answer.body["status"]["token"]}
        made = self._kubeconfig.with_name(f"{self.namespace}-{account}.kubeconfig")
        made.write_text(json.dumps(config))
        return made


@contextmanager
def released(plane: ControlPlane, values: Json, *, namespace: str = "karpool") -> Iterator[Release]:
    """A release, which is uninstalled in the end."""
    release = Release(plane, namespace)
    release.apply(values)
    try:
        yield release
    finally:
        release.helm("uninstall", "karpool")
