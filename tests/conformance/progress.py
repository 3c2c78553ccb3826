"""How far a run is, in a file, so that another can go on where it was cut off."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.suites import Outcome, Result, Spec


class Progress:
    """A file for each choice of specs: a run of other specs in between does no harm."""

    def __init__(self, folder: Path, controller: str, specs: Sequence[Spec], *, resume: bool) -> None:
        names = hashlib.sha256("\n".join(spec.name for spec in specs).encode()).hexdigest()[:8]
        self._path = folder / f"progress-{controller}-{names}"
        self._specs = {spec.name: spec for spec in specs}
        self.results = self._read() if resume and self._path.exists() else []
        """What was done before, and what is done now."""
        folder.mkdir(parents=True, exist_ok=True)
        self._path.write_text("".join(map(_line, self.results)), encoding="utf-8")

    @property
    def left(self) -> list[Spec]:
        done = {result.spec.name for result in self.results}
        return [spec for name, spec in self._specs.items() if name not in done]

    def note(self, result: Result) -> str:
        """How far the run is now."""
        self.results.append(result)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line(result))
        return f"{len(self.results)}/{len(self._specs)}"

    def end(self) -> None:
        """Nothing is left to go on with."""
        self._path.unlink()

    def _read(self) -> list[Result]:
        lines = [line.split("\t") for line in self._path.read_text(encoding="utf-8").splitlines()]
        return [Result(self._specs[name], Outcome(outcome), float(seconds)) for outcome, seconds, name in lines]


def _line(result: Result) -> str:
    return f"{result.outcome.value}\t{result.seconds:.0f}\t{result.spec.name}\n"
