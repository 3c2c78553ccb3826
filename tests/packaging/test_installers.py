"""The wheel as people install it: with uvx, and with pipx, both from the package index."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import karpool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
PLAN = ("plan", "-f", "examples", "--catalog", "sample", "--at", "2026-11-15T12:00:00Z")
SAVED = "nodes |         12 | -> |          5 |"


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """With nothing of this installation but the kernels, which are compiled for these very sources."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "UV_"))}
    environment = kept | variables | {"COLUMNS": "200", "UV_PYTHON_DOWNLOADS": "never", "UV_NO_CONFIG": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where uv and pipx are, in an environment that is thrown away."""
    folder = tmp_path_factory.mktemp("installers")
    venv.create(folder, with_pip=True)
    done = run(folder / "bin" / "pip", "install", "--quiet", "uv", "pipx")
    if done.returncode:
        pytest.skip(f"NOT TESTED: uvx and pipx. The package index does not give them: {done.stderr.strip()[-200:]}")
    return folder / "bin"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-c", f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))")
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]


def expect_it_works(*program: str | Path, **variables: str) -> None:
    said = run(*program, "--version", **variables)
    assert (said.returncode, said.stdout.split()[-1]) == (0, karpool.__version__), said.stderr
    planned = run(*program, *PLAN, **variables)
    assert planned.returncode == 0, planned.stderr
    assert SAVED in planned.stdout


def test_uvx_runs_the_wheel_without_installing_it(programs: Path, wheel: Path, tmp_path: Path) -> None:
    command = (programs / "uvx", "--python", sys.executable, "--from", wheel, "karpool")
    expect_it_works(*command, UV_CACHE_DIR=str(tmp_path / "cache"), UV_TOOL_DIR=str(tmp_path / "tools"))


def test_pipx_installs_the_wheel_with_its_man_pages_and_the_plugin(programs: Path, wheel: Path, tmp_path: Path) -> None:
    places = {name: str(tmp_path / name) for name in ("PIPX_HOME", "PIPX_BIN_DIR", "PIPX_MAN_DIR")}
    done = run(programs / "pipx", "install", "--python", sys.executable, wheel, **places)
    assert done.returncode == 0, done.stderr
    expect_it_works(tmp_path / "PIPX_BIN_DIR" / "karpool")
    assert (tmp_path / "PIPX_BIN_DIR" / "kubectl-karpool").exists()
    assert (tmp_path / "PIPX_MAN_DIR" / "man1" / "karpool-plan.1").exists()
