"""Control planes for tests: started on first use, one of each kind per worker, stopped at the end."""

import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.live import audit
from tests.live.control_plane import ControlPlane

ENSURE = Path(__file__).resolve().parents[2] / "scripts" / "ensure-kubernetes"


@pytest.fixture(scope="session")
def kubernetes_programs() -> Path:
    """The folder with kube-apiserver and the others; they are built by `make test`, never here."""
    run = subprocess.run([ENSURE, "--no-build"], capture_output=True, text=True, check=False)  # noqa: S603 - our own script
    if run.returncode:
        pytest.skip(f"NOT TESTED: Karpool on a real API server. {run.stderr.strip()}")
    if shutil.which("openssl") is None:
        pytest.skip("NOT TESTED: Karpool on a real API server. There is no openssl to make certificates with.")
    return Path(run.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def control_plane(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver: objects stay as they are written, nothing acts on them."""
    with ControlPlane(kubernetes_programs, tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture(scope="session")
def running_cluster(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Another control plane, where controllers, the scheduler and kwok bring objects to life."""
    _needs_others(kubernetes_programs)
    with ControlPlane(kubernetes_programs, tmp_path_factory.mktemp("running-cluster")) as plane:
        plane.start_controller_manager()
        plane.start_scheduler()
        plane.start_kwok()
        yield plane


@pytest.fixture(scope="session")
def audited_cluster(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A running cluster that writes down who asks for what; its API server is of the kind that wants a list first."""
    _needs_others(kubernetes_programs)
    folder = tmp_path_factory.mktemp("audited-cluster")
    flags = [*audit.flags(folder), "--feature-gates=WatchList=false"]
    with ControlPlane(kubernetes_programs, folder, apiserver_flags=flags) as plane:
        plane.start_controller_manager()
        plane.start_scheduler()
        plane.start_kwok()
        yield plane


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes on is told again at once, not after two minutes: a repetition is written in another way."""
    monkeypatch.setattr("karpool.observability.events.SILENT_SECONDS", 0.0)
    monkeypatch.setattr("karpool.execution.reconcile_context.EVENT_INTERVAL", timedelta(0))


def _needs_others(programs: Path) -> None:
    missing = [name for name in ControlPlane.OTHERS if not (programs / name).exists()]
    if missing:
        pytest.skip(f"NOT TESTED: Karpool in a running cluster. {programs} lacks {', '.join(missing)}.")
