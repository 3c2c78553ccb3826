"""A cluster for Karpenter's suites with Karpool in it, started on first use."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.cluster import Cluster
from tests.conformance.deployment import karpool
from tests.live.conftest import kubernetes_programs  # noqa: F401 - a fixture is found by its name

ENSURE = Path(__file__).resolve().parents[2] / "scripts" / "ensure-karpenter"


@pytest.fixture(scope="session")
def suites() -> Path:
    """The folder with the suites; they are built by `make test`, never here."""
    command = [ENSURE, "--no-build", "regression", "disruption"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own script
    if run.returncode:
        pytest.skip(f"NOT TESTED: Karpenter's suites against Karpool. {run.stderr.strip()}")
    return Path(run.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def cluster(
    kubernetes_programs: Path,  # noqa: F811 - the fixture above
    suites: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    executable = str(Path(sys.executable).with_name("karpool"))
    with Cluster(kubernetes_programs, suites, tmp_path_factory.mktemp("conformance"), karpool(executable)) as cluster:
        yield cluster
