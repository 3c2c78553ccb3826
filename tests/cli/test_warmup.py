"""`karpool warmup`, and the bar that shows what is being compiled."""

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

KARPOOL = str(Path(sys.executable).parent / "karpool")
TINY = """
from karpool.packing.compilation import compiled_now, watching
from karpool.packing.kernels import compiled

@compiled
def doubled(number):
    return 2 * number

told = []
with watching(lambda done, most: told.append((done, most))):
    assert doubled(4) == 8
assert doubled(5) == 10
print(told, compiled_now())
"""
SHOWN = """
import time
from karpool.cli.progress import progress
from karpool.packing.kernels import compiled

@compiled
def doubled(number):
    return 2 * number

with progress():
    result = doubled(4)
    time.sleep(0.5)
print(result)
"""


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run(command, env=known, capture_output=True, text=True, check=False)  # noqa: S603


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A folder for compiled kernels that nobody else can write."""
    folder = tmp_path / "kernels"
    folder.mkdir(mode=0o700)
    return folder


def test_a_kernel_is_compiled_once_and_shown_meanwhile(cache: Path) -> None:
    script = cache.parent / "tiny.py"
    script.write_text(TINY)
    first, second = (run(sys.executable, str(script), folder=cache) for _ in range(2))
    assert (first.returncode, first.stdout) == (0, "[(0, 1), (1, 1)] 1\n"), first.stderr
    assert (second.returncode, second.stdout) == (0, "[] 0\n"), second.stderr


def test_a_folder_that_others_can_write_is_refused_at_once(cache: Path) -> None:
    cache.chmod(0o777)
    result = run(KARPOOL, "warmup", folder=cache)
    assert result.returncode == 1
    assert f"karpool: {cache}: compiled kernels cannot be kept: " in result.stderr
    assert result.stderr.count("\n") == 1


def test_what_is_compiled_already_takes_no_time() -> None:
    result = subprocess.run([KARPOOL, "warmup"], capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(("all kernels were compiled; they are in ", "15 kernels compiled"))


def test_a_terminal_sees_that_kernels_are_compiled(cache: Path) -> None:
    script = cache.parent / "shown.py"
    script.write_text(SHOWN)
    main, terminal = pty.openpty()
    known = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, env=known, stdout=subprocess.PIPE, stderr=terminal, text=True) as process:  # noqa: S603
        os.close(terminal)
        shown = b""
        with suppress(OSError):  # how a terminal ends
            while chunk := os.read(main, 65536):
                shown += chunk
        output, _ = process.communicate()
    assert (process.returncode, output) == (0, "8\n")
    assert "Compiling kernels, once for this version" in shown.decode("utf-8", "replace")
