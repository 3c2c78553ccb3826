"""Carries out the steps of the Dockerfile without a container engine, on a bare Debian.

What stands for the base image is Debian's own Python 3.11 under the names that the base has in /usr/local/bin: the
same version of Python and of glibc, another build. Only the step that downloads has a network.
"""

import json
import re
import shlex
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.live.bare_root import PATH, Inside, Root, bare_debian

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
BASE = f"python:3.11-slim-bookworm@sha256:{'0' * 64}"
DOWNLOADS = "pip download "


@dataclass
class Stage:
    """An image while it is made, and what it says of how it is run."""

    root: Root
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH, "HOME": "/root"})
    arguments: dict[str, str] = field(default_factory=dict)
    directory: str = "/"
    user: str = "0"
    entrypoint: list[str] = field(default_factory=list)

    @property
    def uid(self) -> int:
        """Whose processes run in it: a number, as `runAsNonRoot` needs one."""
        return int(self.user.partition(":")[0])

    def inside(self, how: Inside) -> Inside:
        """How programs are run in it, but for what `how` says of it."""
        environment = self.environment | dict(how.environment)
        return replace(how, environment=environment, directory=self.directory, user=self.uid)

    def expanded(self, text: str) -> str:
        return string.Template(text).substitute(self.arguments | self.environment)


class Image:
    """The steps in their order; an instruction that is not known here is an error."""

    def __init__(self, folder: Path, dockerfile: str) -> None:
        self._folder = folder
        self._arguments = {"BASE": BASE}
        self._stages: dict[str, Stage] = {}
        self._stage: Stage | None = None
        self.bases: list[str] = []
        self.online: list[str] = []
        """The commands that had a network."""
        known: dict[str, Callable[[str], None]] = {
            "ARG": self._arg, "FROM": self._from, "WORKDIR": self._workdir, "COPY": self._copy, "ENV": self._env,
            "RUN": self._run, "USER": self._user, "ENTRYPOINT": self._entrypoint,
        }  # fmt: skip
        for instruction, rest in steps(dockerfile):
            known[instruction](rest)

    @property
    def stage(self) -> Stage:
        assert self._stage, "before FROM"
        return self._stage

    def _arg(self, rest: str) -> None:
        name, _, value = rest.partition("=")
        arguments = self._arguments if self._stage is None else self._stage.arguments
        arguments[name] = value or self._arguments[name]

    def _from(self, rest: str) -> None:
        base, _, name = re.sub(r"\s+as\s+", " AS ", rest, flags=re.IGNORECASE).partition(" AS ")
        self.bases.append(string.Template(base).substitute(self._arguments))
        name = name or f"stage-{len(self._stages)}"
        root = Root(self._folder / name, *self._base())
        self._stage = self._stages[name] = Stage(root)

    def _base(self) -> tuple[Path, ...]:
        """What every stage begins with, made once."""
        assert self.bases[-1] == BASE
        if not self._stages:
            root = Root(self._folder / "base", bare_debian())
            root.sh("python3 -m venv /usr/local")
            self._layers = root.layers
        return self._layers

    def _workdir(self, rest: str) -> None:
        self.stage.directory = self.stage.expanded(rest)
        self.stage.root.path(self.stage.directory).mkdir(parents=True, exist_ok=True)

    def _copy(self, rest: str) -> None:
        *sources, target = shlex.split(rest)
        place = target if target.startswith("/") else f"{self.stage.directory}/{target}"
        whence = sources.pop(0).removeprefix("--from=") if sources[0].startswith("--") else None
        for source in sources:
            path = ROOT / source if whence is None else self._stages[whence].root.path(source)
            into = place.endswith("/") and not path.is_dir()
            self.stage.root.put(path, f"{place}{path.name}" if into else place)

    def _env(self, rest: str) -> None:
        for pair in shlex.split(rest):
            name, _, value = pair.partition("=")
            self.stage.environment[name] = self.stage.expanded(value)

    def _run(self, rest: str) -> None:
        network = rest.startswith(DOWNLOADS)
        if network:
            self.online.append(rest)
        self.stage.root.sh(rest, self.stage.inside(Inside(network=network, environment=self.stage.arguments)))

    def _user(self, rest: str) -> None:
        self.stage.user = self.stage.expanded(rest)

    def _entrypoint(self, rest: str) -> None:
        self.stage.entrypoint = json.loads(rest)


def steps(dockerfile: str) -> Iterator[tuple[str, str]]:
    """Each instruction and the rest of its line, comments left out."""
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if line.strip():
            instruction, _, rest = line.strip().partition(" ")
            yield instruction.upper(), rest.strip()
