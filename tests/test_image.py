"""The image: what can be known of it without building one; tests/live/test_image.py carries its steps out."""

import fnmatch
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.privileges import unprivileged
from tests.tables import row, table

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


def test_what_the_image_installs_is_locked_as_everywhere_else() -> None:
    everywhere, image = (locked(ROOT / f"requirements{name}.lock") for name in ("", "-image"))
    assert image.items() <= everywhere.items()
    needed = runpy.run_path(str(ROOT / "scripts" / "sbom"))["closure"]("karpool", ("dra",)) - {"karpool"}
    assert needed <= {name.partition("==")[0] for name in image}


def locked(path: Path) -> dict[str, str]:
    """What a lock file says of each version of a package."""
    lines = path.read_text().replace("\\\n", " ").splitlines()
    return {line.split()[0]: line for line in lines}


def test_every_stage_begins_with_the_base_that_is_given() -> None:
    lines = DOCKERFILE.read_text().splitlines()
    assert {line.split()[1] for line in lines if line.startswith("FROM ")} == {"${BASE}"}


def test_the_base_has_no_default() -> None:
    assert re.findall(r"^ARG (.*)$", DOCKERFILE.read_text(), flags=re.MULTILINE) == ["BASE", "BASE"]


@table(
    row(base="python:3.11-slim-bookworm", status=1, says="BASE needs a digest, NAME@sha256:"),
    row(base=f"python:3.11-slim-bookworm@sha256:{'a' * 64}", status=0, says=""),
)
def test_the_first_step_of_the_image_refuses_a_base_without_a_digest(base: str, status: int, says: str) -> None:
    command = DOCKERFILE.read_text().split("\nRUN ")[1].partition("\n")[0]
    done = subprocess.run(  # noqa: S603 - our own file
        ["/bin/sh", "-c", command], env={"BASE": base}, capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert done.stderr.startswith(says)


@table(
    row("a tag may change", base="python:3.11-slim-bookworm", says="needs a digest"),
    row("half a digest", base=f"python@sha256:{'a' * 63}", says="needs a digest"),
)
def test_an_image_for_others_needs_the_digest_of_its_base(base: str, says: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "image"), "--base", base, "--tag", "karpool"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.slow
def test_an_image_for_others_is_built_for_both_machines_from_a_commit(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("NOT TESTED: the image of a release; it is built from a commit, and there is no git")
    docker = tmp_path / "programs" / "docker"
    docker.parent.mkdir()
    docker.write_text('#!/bin/sh\necho "$SOURCE_DATE_EPOCH" "$@"\n')
    docker.chmod(0o755)
    (tmp_path / "clone" / "scripts").mkdir(parents=True)
    shutil.copy2(ROOT / "scripts" / "image", tmp_path / "clone" / "scripts")
    environment = os.environ | {"PATH": f"{docker.parent}:{os.environ['PATH']}"}
    for who in ("AUTHOR", "COMMITTER"):
        environment |= {
            f"GIT_{who}_NAME": "a",
            f"GIT_{who}_EMAIL": "a@example.com",
            f"GIT_{who}_DATE": "@1767323045 +0000",
        }
    base = f"python:3.11-slim-bookworm@sha256:{'a' * 64}"

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603
            command, cwd=tmp_path / "clone", env=environment, capture_output=True, text=True, check=False
        )

    for command in ("git init -q", "git add -A", "git commit -q -m All"):
        assert run(*command.split()).returncode == 0
    build = (sys.executable, "scripts/image", "--base", base, "--tag", "karpool:1")
    done = run(*build, "--push")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "1767323045 buildx build --file deploy/Dockerfile --platform linux/amd64,linux/arm64 "
    )
    assert f"--build-arg BASE={base} --tag karpool:1 " in done.stdout
    assert done.stdout.endswith(" --push .\n")
    (tmp_path / "clone" / "new").touch()
    assert "not clean" in run(*build).stderr


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
