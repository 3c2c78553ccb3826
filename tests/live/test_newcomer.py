"""A newcomer's walk on a bare Debian, with Python and what the step at hand names, and nothing else.

Install from the wheel, the demo, a plan of the example; then helm installs the chart, the controller runs as its pod
would, first in a dry run, and Prometheus answers what the dashboard asks. Karpenter is played by the tests, and so is
the kubelet: what it would give to the pod is given to a process on the same bare Debian, with Karpool from the wheel
and not from an image. The network is there for the installation only.
"""

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.chart import helm
from tests.live.bare_root import PATH, Inside, Root, bare_debian, bridge, need_package_index, sockets
from tests.live.control_plane import ControlPlane
from tests.live.fake_karpenter import karpenter
from tests.live.https import Client, eventually
from tests.live.in_cluster import as_in, connected
from tests.live.programs import Program, free_port
from tests.live.prometheus import MONITORING, ROOT, Prometheus, panels, prometheus, prometheus_program
from tests.live.release import Release
from tests.live.trial import Trial, deployment, journal, pool
from tests.live.watched import large_claim

WALK_SECONDS = 1800
"""Two minutes or three where nothing else runs, most of them for the kernels."""
HOME = "/home/newcomer"
KERNELS = "/opt/kernels"
NEWCOMER = Inside(
    user=1000, directory=HOME, environment={"HOME": HOME, "PATH": f"{HOME}/karpool/bin:{PATH}"}, network=False
)
ON_THE_EXAMPLE = "karpool plan -f examples --catalog sample --at 2026-11-15T12:00:00Z"
READER = {"name": "prometheus", "namespace": "default"}
OPTIONS = (
    "--set=controller.options.catalog=kwok,controller.options.poll-interval=1s,controller.replicas=0",
    f"--set-json=metrics.readers={json.dumps([READER])}",
)
RULED = {
    rule["alert"]
    for group in yaml.safe_load((MONITORING / "rules.yaml").read_text())["groups"]
    for rule in group["rules"]
    if "alert" in rule
}
# What nobody can miss once a command has replaced a node; other panels are about what did not happen.
SHOWN = {
    "Cost a month",
    "Saved a month, by commands of 30 days",
    "Nodes of unknown price",
    "Cost an hour",
    "Cost an hour by pool",
    "Nodes by pool",
    "Commands",
    "Nodes and pods disrupted in the last hour",
    "NodeClaims created",
    "How many more nodes may go now",
    "Leads",
    "Caches are synced",
    "Decision pass",
    "Delay of the event loop",
    "Requests to the API server, a second",
    "Memory",
    "Nodes allocatable",
    "Cluster state node count",
    "Events",
    "Api request duration seconds",
}


@pytest.mark.long
@pytest.mark.timeout(WALK_SECONDS)
def test_from_nothing_to_a_controller_with_a_dashboard(running_cluster: ControlPlane, tmp_path: Path) -> None:
    prometheus_program()
    need_package_index()
    root = Root(tmp_path / "newcomer", bare_debian())
    root.path(HOME).mkdir(parents=True)
    os.chown(root.path(HOME), NEWCOMER.user, NEWCOMER.user)
    install(root, wheel(tmp_path / "wheel"))
    expect_a_first_look(root)
    asyncio.run(expect_a_controller_with_a_dashboard(root, running_cluster, tmp_path))


def wheel(folder: Path) -> Path:
    """That of this tree, as a release has it."""
    program = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    folder.mkdir()
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - as written here
    return folder / done.stdout.split()[-1]


def install(root: Root, wheel: Path) -> None:
    """As README says it."""
    given = replace(NEWCOMER, network=True, files={f"{HOME}/{wheel.name}": wheel})
    root.sh("python3 -m venv karpool", given)
    root.sh(f"karpool/bin/pip install --no-cache-dir ./{wheel.name}", given)


def expect_a_first_look(root: Root) -> None:
    """The demo, whose kernels are compiled as at every first use, and a plan of the example."""
    said = root.sh("karpool --version && karpool demo", NEWCOMER)
    assert root.path(f"{HOME}/karpool-demo.html").stat().st_size > 0
    assert "karpool-demo.html" in said
    # For the controller later, which is somebody else: as in an image they belong to root, whom everybody trusts.
    root.sh(f"cp -r {HOME}/.cache/karpool {KERNELS}")
    root.put(ROOT / "examples", f"{HOME}/examples")
    (shown,) = (block for block in (ROOT / "README.md").read_text().split("```\n") if block.startswith("Plan as of "))
    printed = root.sh(f"COLUMNS=200 {ON_THE_EXAMPLE}", NEWCOMER)
    assert next(line for line in shown.splitlines() if line.startswith("price")) in printed


async def expect_a_controller_with_a_dashboard(root: Root, plane: ControlPlane, folder: Path) -> None:
    """With a cluster: a plan of it, a dry run, the real thing, and a dashboard that shows it."""
    with sockets() as place, bridge(place / "api-server", plane.url.removeprefix("https://")):
        admin = replace(
            NEWCOMER,
            files={
                f"{HOME}/.kube/config": kubeconfig(plane, folder / "kubeconfig"),
                "/usr/local/bin/helm": helm.program(),
                f"{HOME}/karpool.tgz": packed(folder / "chart"),
            },
            bridges={plane.url.removeprefix("https://"): place / "api-server"},
        )
        async with Trial(plane) as trial, karpenter(trial):
            await trial.make(opted_in(), deployment("web", 1), large_claim())
            await trial.until_running(1)
            printed = await asyncio.to_thread(
                root.sh, "COLUMNS=200 karpool plan --catalog kwok --annotated-budgets", admin
            )
            assert "replace large" in printed, printed
            chart = f"karpool.tgz --namespace karpool {' '.join(map(repr, OPTIONS))}"
            try:
                notes = await asyncio.to_thread(root.sh, f"helm install karpool {chart} --create-namespace", admin)
                assert "controller.act=true" in notes
                await expect_a_dry_run(root, trial, folder / "dry-run")
                upgrade = (
                    "helm upgrade karpool karpool.tgz --namespace karpool --reuse-values --set controller.act=true"
                )
                await asyncio.to_thread(root.sh, upgrade, admin)
                await expect_a_node_replaced(root, trial, folder / "for-real")
            finally:
                await asyncio.to_thread(root.sh, "helm uninstall karpool --namespace karpool", admin)


def opted_in() -> dict[str, Any]:
    made = pool(disruption={"consolidateAfter": "1s", "budgets": [{"nodes": "0"}]})
    made["metadata"]["annotations"] = {"karpool.sh/budgets": '[{"nodes": "100%"}]'}
    return made


def kubeconfig(plane: ControlPlane, path: Path) -> Path:
    """One without files beside it, as people have it."""
    config = json.loads(plane.kubeconfig().read_text())
    for part in (config["clusters"][0]["cluster"], config["users"][0]["user"]):
        for name in ("certificate-authority", "client-certificate", "client-key"):
            if name in part:
                part[f"{name}-data"] = base64.b64encode(Path(part.pop(name)).read_bytes()).decode()
    path.write_text(json.dumps(config))
    os.chown(path, NEWCOMER.user, NEWCOMER.user)
    path.chmod(0o600)
    return path


def packed(folder: Path) -> Path:
    """The chart as a release has it."""
    done = helm.helm("package", helm.CHART, "--destination", folder)
    assert done.returncode == 0, done.stderr
    (made,) = folder.iterdir()
    return made


@contextmanager
def running_pod(
    root: Root, trial: Trial, folder: Path, served: dict[int, int] | None = None
) -> Iterator[tuple[Program, Path]]:
    """The controller as the Deployment in the cluster has it now, and where its journal is."""
    path = "/apis/apps/v1/namespaces/karpool/deployments/karpool"
    pod = Client(trial.plane.kubeconfig()).get(path).body["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    inside = as_in(pod, folder / "volumes")
    variables = {"HOME": "/tmp", "PATH": f"{HOME}/karpool/bin:{PATH}", "NUMBA_CACHE_DIR": KERNELS}  # noqa: S108
    inside = replace(inside, environment={**variables, **inside.environment})
    release = Release(trial.plane, "karpool")
    with connected(inside, release, folder / "account", served=served) as there:
        program = root.program("karpool", *container["args"], log=folder / "log", inside=there)
        program.start()
        try:
            yield program, inside.folders["/var/log/karpool"] / "decisions.jsonl"
        finally:
            program.stop()


async def expect_a_dry_run(root: Root, trial: Trial, folder: Path) -> None:
    """It decides, and writes nothing."""
    with running_pod(root, trial, folder) as (program, journals):

        async def decided() -> bool:
            assert program.running, program.log.read_text()
            return bool(journal(journals, "Decision"))

        await trial.until("it is decided", decided, seconds=300)
    assert all(decision["dryRun"] for decision in journal(journals, "Decision"))
    assert [claim.name for claim in await trial.claims()] == ["large"]


async def expect_a_node_replaced(root: Root, trial: Trial, folder: Path) -> None:
    """A node is replaced, and Prometheus, which reads with an account that the chart lets read, has seen it."""
    ours = free_port()
    token = token_of_reader(trial.plane)
    with (
        running_pod(root, trial, folder, served={8080: ours}) as (program, _),
        prometheus(folder.with_name("prometheus"), f"127.0.0.1:{ours}", token) as asked,
    ):

        async def scraped() -> bool:
            assert program.running, program.log.read_text()
            return list((await asyncio.to_thread(asked.targets)).values()) == ["up"]

        async def replaced() -> bool:
            assert program.running, program.log.read_text()
            names = {claim.name for claim in await trial.claims()}
            return bool(names) and "large" not in names

        await trial.until("it is scraped", scraped, seconds=120)
        await trial.until("the large node is replaced", replaced, seconds=120)
        await trial.until_running(1)
        await asyncio.to_thread(expect_dashboard, asked)
    refused = [line for line in program.log.read_text().splitlines() if "forbidden" in line.lower()]
    assert refused == []


def expect_dashboard(asked: Prometheus) -> None:
    """Prometheus takes every query, those that must show something do, and no rule stumbles."""
    assert {title for title, _ in panels()} >= SHOWN

    def empty() -> set[str]:
        answers = {title: False for title, _ in panels()}
        for title, query in panels():
            answers[title] |= bool(asked.ask(query))
        return {title for title, shown in answers.items() if title in SHOWN and not shown}

    def nothing_is_empty() -> bool:
        return not empty()

    try:
        eventually(nothing_is_empty, 60)
    except AssertionError:
        raise AssertionError(f"empty panels: {empty()}") from None
    assert asked.alerts() == RULED


def token_of_reader(plane: ControlPlane) -> str:
    """That of the account that scrapes, which the cluster's owner has made."""
    api = Client(plane.kubeconfig())
    path = f"/api/v1/namespaces/{READER['namespace']}/serviceaccounts"
    assert api.post(path, {"metadata": {"name": READER["name"]}}).status in (201, 409)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    answer = api.post(f"{path}/{READER['name']}/token", asked)
    assert answer.status == 201, answer.body
    return str(answer.body["status"]["token"])
