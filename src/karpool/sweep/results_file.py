"""Results in a file, a line each, from which an interrupted sweep goes on.

A line is written and synced as soon as its trial has ended. One that a crash has cut off is removed when the file is
opened again. A line says of which input it is, so that one file may serve many sweeps.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from karpool.sweep.trial import Timed, Trial, TrialResult
from karpool.wire.problems import InputError


class _Line(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    input: str
    """The fingerprint of the input."""
    setting: dict[str, str]
    seed: int
    result: TrialResult
    cpu_seconds: float


class ResultsFile:
    def __init__(self, file: BinaryIO, inputs: Sequence[str]) -> None:
        self._file = file
        self._inputs = inputs
        """The fingerprints of the inputs, in their order."""
        self.known: dict[Trial, Timed] = {}

    def read(self, path: Path) -> None:
        """Learn what is there, and remove a last line that is not whole."""
        numbers = {fingerprint: number for number, fingerprint in enumerate(self._inputs)}
        whole = 0
        for count, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                entry = msgspec.json.decode(line, type=_Line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InputError.at(str(path), f"line {count} is no result of a sweep: {error}") from None
            whole += len(line)
            if entry.input in numbers:
                trial = Trial(tuple(entry.setting.items()), numbers[entry.input], entry.seed)
                self.known[trial] = Timed(entry.result, entry.cpu_seconds)
        self._file.seek(whole)
        self._file.truncate()

    def add(self, trial: Trial, timed: Timed) -> None:
        line = _Line(
            input=self._inputs[trial.input],
            setting=dict(trial.setting),
            seed=trial.seed,
            result=timed.result,
            cpu_seconds=round(timed.cpu_seconds, 3),
        )
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def results_file(path: Path, inputs: Sequence[str]) -> Iterator[ResultsFile]:
    """The results in a file, which nobody else may write meanwhile; it is made if it is not there."""
    with _opened(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError.at(str(path), "is being written by another sweep; wait for it, or name another") from None
        file.seek(0)
        results = ResultsFile(file, inputs)
        results.read(path)
        yield results


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("a+b")
    except FileNotFoundError:
        raise InputError.at(str(path), f"there is no directory {path.parent}; make it first") from None
    except OSError as error:
        raise InputError.at(str(path), f"cannot be written: {error.strerror or error}") from None
