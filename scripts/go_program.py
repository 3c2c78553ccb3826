"""Builds one program with Go from a module of scripts/kubernetes, once, and keeps it in the cache of the tests."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

MODULES = Path(__file__).resolve().parent / "kubernetes"
SECONDS = 600
"""A build that takes longer is given up: one program is not worth more of the time of all tests."""


class NoProgramError(Exception):
    """There is no such program and it cannot be built here."""


class GoProgram(NamedTuple):
    name: str
    package: str
    flags: Callable[[str], str]
    """What the linker is told, from the go.mod that pins the versions."""

    @property
    def module(self) -> Path:
        return MODULES / self.name

    def main(self) -> int:
        """Print its path; exit code 3 and one line on stderr where there is none."""
        try:
            print(self.ensure(build="--no-build" not in sys.argv[1:]))
        except NoProgramError as error:
            print(f"The tests have no {self.name}: {error}.", file=sys.stderr)
            return 3
        return 0

    def ensure(self, *, build: bool) -> Path:
        """The program, built if need be."""
        pinned = hashlib.sha256((self.module / "go.sum").read_bytes()).hexdigest()[:12]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "karpool"
        program = cache / f"{self.name}-{pinned}" / self.name
        if program.exists():
            return program
        if not build:
            raise NoProgramError(f"it is not built yet; run scripts/ensure-{self.name}")
        if shutil.which("go") is None:
            raise NoProgramError("no `go` to build it with")
        program.parent.mkdir(parents=True, exist_ok=True)
        with (cache / f"{self.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():  # another run may have built it while this one waited
                self._build(program)
        return program

    def _build(self, program: Path) -> None:
        """Builds beside its place and renames at the end, so that a build cut short leaves nothing half-made."""
        print(f"Building {self.name}, two minutes or so, once", file=sys.stderr)
        linking = f"-ldflags=-s -w {self.flags((self.module / 'go.mod').read_text())}"
        with tempfile.TemporaryDirectory(dir=program.parent) as folder:
            unfinished = Path(folder) / self.name
            command = ["go", "build", "-trimpath", linking, "-o", str(unfinished), self.package]
            environment = os.environ | {"CGO_ENABLED": "0"}
            try:
                built = subprocess.run(command, cwd=self.module, env=environment, check=False, timeout=SECONDS)  # noqa: S603 - our own modules
            except subprocess.TimeoutExpired:
                raise NoProgramError(f"it was not built within {SECONDS} seconds") from None
            if built.returncode:
                raise NoProgramError("it could not be built, see above")
            unfinished.rename(program)


def version_in(modules: str, pattern: str) -> re.Match[str]:
    """A version that a go.mod pins."""
    found = re.search(pattern, modules)
    if not found:
        raise NoProgramError(f"go.mod has nothing like {pattern}")
    return found
