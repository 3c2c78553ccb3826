"""A bare Debian for a test, or a layer upon it. What is written goes into a folder of the test: nothing stays."""

import contextlib
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from tests.live.https import eventually
from tests.live.programs import Program

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
HERE = Path(__file__).parent
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# How this machine reaches the package index; a bare Debian that stands here has to go the same way.
WAYS = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@cache
def bare_debian() -> Path:
    """The folder that `scripts/ensure-bare-root` has made; nobody writes there."""
    command = [str(SCRIPTS / "ensure-bare-root"), "--no-build"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own script
    if found.returncode:
        pytest.skip(f"NOT TESTED: Karpool on a bare Debian. {found.stderr.strip()}")
    return Path(found.stdout.strip())


def need_package_index() -> None:
    """Skip what installs packages where none can be had."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    try:
        with urllib.request.urlopen(f"{index}/pip/", timeout=60):  # noqa: S310 - the index of pip
            pass
    except OSError as error:
        pytest.skip(f"NOT TESTED: Karpool on a bare Debian. The package index does not answer: {error}")


@dataclass(frozen=True)
class Inside:
    """How a program is run in a root."""

    network: bool = False
    """The machine's; otherwise there is none but what `bridges` lead to."""
    writable: bool = True
    user: int = 0
    directory: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, Path] = field(default_factory=dict)
    """Folders of this machine that may be written to there, by their place."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Files and folders of this machine that may only be read there, by their place."""
    bridges: Mapping[str | Path, str | Path] = field(default_factory=dict)
    """From HOST:PORT there to a socket of this machine, or the other way round, where there is no other network."""


class Root:
    """A root over one that does not change: an overlay, or a copy where there are no overlays."""

    def __init__(self, folder: Path, *below: Path) -> None:
        self._below = below
        self._upper, self._work, self._root = (folder / name for name in ("upper", "work", "root"))
        for path in (self._upper, self._work, self._root):
            path.mkdir(parents=True)
        if not overlays(folder):
            self._work.rmdir()
            for path in reversed(below):
                subprocess.run(["cp", "-a", "--reflink=auto", f"{path}/.", str(self._upper)], check=True)  # noqa: S603, S607

    @property
    def layers(self) -> tuple[Path, ...]:
        """What another root can be made upon."""
        return (self._upper, *self._below) if self._work.exists() else (self._upper,)

    def path(self, place: str) -> Path:
        """Where something that was written there is, on this machine."""
        return self._upper / place.lstrip("/")

    def put(self, source: Path, place: str) -> None:
        """Copy a file or a folder of this machine there, without what Python keeps beside its sources."""
        target = self.path(place)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, target, ignore=ignored, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)

    def run(self, *command: str, inside: Inside | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; what it printed, both kinds together."""
        whole = self._command(command, inside or Inside())
        return subprocess.run(whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)  # noqa: S603

    def sh(self, script: str, inside: Inside | None = None) -> str:
        """Run a line of a shell, which has to succeed."""
        done = self.run("/bin/sh", "-ec", script, inside=inside)
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        return done.stdout

    def program(self, *command: str, log: Path, inside: Inside) -> Program:
        """A program that goes on until it is stopped."""
        return Program(self._command(command, inside), log)

    def _command(self, command: Sequence[str], inside: Inside) -> list[str]:
        environment = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", **inside.environment}
        files = {place: str(path) for place, path in inside.files.items()}
        if inside.network:
            environment = ways_out() | environment
            files |= {"/etc/resolv.conf": "/etc/resolv.conf", CERTIFICATES: certificates()}
        for place in (*inside.folders, *files):
            self._make_place(place, is_folder=Path(files.get(place, "/")).is_dir())
        description = {
            "root": str(self._root),
            "lower": ":".join(map(str, self._below)),
            "upper": str(self._upper),
            "work": str(self._work) if self._work.exists() else "",
            "writable": inside.writable,
            "user": inside.user,
            "directory": inside.directory,
            "environment": environment,
            "folders": {place: str(path) for place, path in inside.folders.items()},
            "files": files,
            "bridges": {str(listen): str(connect) for listen, connect in inside.bridges.items()},
            "command": list(command),
        }
        network = () if inside.network else ("--net",)
        unshare = ("unshare", "--mount", "--pid", "--fork", "--kill-child", *network)
        return [*unshare, sys.executable, str(HERE / "in_root.py"), json.dumps(description)]

    def _make_place(self, place: str, *, is_folder: bool) -> None:
        """Something must be there to mount upon, as container engines make it."""
        if any((layer / place.lstrip("/")).exists() for layer in self.layers):
            return
        if is_folder:
            self.path(place).mkdir(parents=True)
        else:
            self.path(place).parent.mkdir(parents=True, exist_ok=True)
            self.path(place).touch()


@cache
def overlays(folder: Path) -> bool:
    """Whether folders beside this one can be layers; not if they are on an overlay themselves."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for name in ("lower", "upper", "work", "root"):
            (Path(place) / name).mkdir()
        options = f"lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work"
        command = ["unshare", "--mount", "mount", "-t", "overlay", "overlay", "-o", options, f"{place}/root"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - as written here


def ways_out() -> dict[str, str]:
    names = (*WAYS, *PROXIES, *map(str.upper, PROXIES))
    trusted = dict.fromkeys(("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), CERTIFICATES)
    return {name: os.environ[name] for name in names if name in os.environ} | trusted


def certificates() -> str:
    """What this machine trusts, which may be more than Debian does."""
    return os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile or CERTIFICATES


@contextlib.contextmanager
def bridge(listen: str | Path, connect: str | Path) -> Iterator[None]:
    """Whoever connects to an address, or a socket, is connected with another."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        carrier = Program([sys.executable, HERE / "bridge.py", listen, connect], log)
        carrier.start()
        try:
            eventually(lambda: log.read_text() == "ready\n")
            yield
        finally:
            carrier.stop()


@contextlib.contextmanager
def sockets() -> Iterator[Path]:
    """A folder for sockets: their paths have to be short."""
    with tempfile.TemporaryDirectory(prefix="karpool-") as folder:
        yield Path(folder)
