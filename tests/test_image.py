"""The image: what can be known of it without building one."""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.privileges import unprivileged

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
PROGRAM = """
import sys
from numba.core import event
compiled = event.RecordingListener()
with event.install_listener("numba:compile", compiled):
    from karpool.packing.warmup import warm_up
    warm_up()
sys.exit(f"compiled {len(compiled.buffer)} kernels" if compiled.buffer else 0)
"""


def copied() -> list[str]:
    """What the image takes from the repository."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE.read_text(), flags=re.MULTILINE)
    return [source for line in lines for source in line.split()[:-1]]


def test_everything_the_image_copies_is_there_and_not_ignored() -> None:
    ignored = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().split()
    let_in = {rule.removeprefix("!") for rule in ignored if rule.startswith("!")}
    assert copied()
    for source in copied():
        assert (ROOT / source).exists()
        assert any(fnmatch.fnmatch(source, rule) for rule in let_in)


@pytest.mark.slow
def test_kernels_are_used_from_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    from karpool.packing.kernels import folder_of
    from karpool.packing.warmup import warm_up

    warm_up()
    folder = folder_of("karpool.packing.kernels")
    kept = tmp_path / "karpool" / folder.name
    shutil.copytree(folder, kept)
    before = {path.name: path.stat().st_mtime_ns for path in kept.iterdir()}
    kept.chmod(0o555)
    done = python(PROGRAM, XDG_CACHE_HOME=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {path.name: path.stat().st_mtime_ns for path in kept.iterdir()} == before


def test_without_a_folder_to_keep_them_in_kernels_are_compiled_all_the_same(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    program = "from karpool.packing.kernels import compiled; print(compiled(lambda x: x + 1)(1))"
    done = python(program, XDG_CACHE_HOME=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


def python(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program of which files keep their permissions, also from root."""
    command = [*unprivileged(), sys.executable, "-c", program]
    environment = os.environ | variables
    environment.pop("NUMBA_CACHE_DIR", None)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
