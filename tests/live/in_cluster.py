"""A program runs as a pod of the cluster would: what a kubelet gives it, and nothing else."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from tests.chart.helm import Json
from tests.live.bare_root import Inside, bridge, sockets
from tests.live.release import Release

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def as_in(pod: Json, volumes: Path) -> Inside:
    """Its user, its variables, and nothing writable but its volumes; no network yet."""
    (container,) = pod["containers"]
    security = pod["securityContext"] | container["securityContext"]
    assert security["runAsNonRoot"]
    folders = {mount["mountPath"]: volumes / mount["name"] for mount in container["volumeMounts"]}
    for folder in folders.values():
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    environment = {variable["name"]: variable["value"] for variable in container["env"]}
    writable = not security["readOnlyRootFilesystem"]
    return Inside(writable=writable, user=security["runAsUser"], environment=environment, folders=folders)


@contextmanager
def connected(
    inside: Inside, release: Release, folder: Path, *, account: str = "karpool", served: Mapping[int, int] | None = None
) -> Iterator[Inside]:
    """With the token of an account, and one way to the API server; `served`: its ports, and those of this machine."""
    config = json.loads(release.kubeconfig(account).read_text())
    cluster = config["clusters"][0]["cluster"]
    folder.mkdir()
    (folder / "token").write_text(config["users"][0]["user"]["token"])
    (folder / "ca.crt").write_bytes(Path(cluster["certificate-authority"]).read_bytes())
    (folder / "namespace").write_text(release.namespace)
    host, _, port = cluster["server"].removeprefix("https://").partition(":")
    variables = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    with ExitStack() as opened:
        place = opened.enter_context(sockets())
        opened.enter_context(bridge(place / "api-server", f"{host}:{port}"))
        bridges: dict[str | Path, str | Path] = {f"{host}:{port}": place / "api-server"}
        for theirs, ours in (served or {}).items():
            bridges[place / str(theirs)] = f"{host}:{theirs}"
            opened.enter_context(bridge(f"{host}:{ours}", place / str(theirs)))
        yield replace(
            inside,
            environment={**inside.environment, **variables},
            files={**inside.files, ACCOUNT: folder},
            bridges=bridges,
        )
