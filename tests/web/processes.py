"""`karpool ui` and `karpool run --ui` as processes of their own, on ports of their own."""

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KARPOOL = Path(sys.executable).with_name("karpool")
SECONDS_TO_START = 120.0


@contextmanager
def console(*arguments: str | Path) -> Iterator[str]:
    """The address of a console, which is there while the block lasts; it must end well."""
    command = [KARPOOL, "ui", "--no-browser", "--port=0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603
    try:
        yield _address(process)
        assert process.poll() is None, process.communicate()
    finally:
        process.terminate()
        out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, ""), (out, err)


def _address(process: subprocess.Popen[str]) -> str:
    """What the first line says."""
    assert process.stdout is not None
    until = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < until and process.poll() is None:
        if select.select([process.stdout], [], [], 0.5)[0]:
            found = re.search(r"http://\S+/", process.stdout.readline())
            assert found is not None
            return found[0]
    process.kill()
    raise AssertionError(f"no console: {process.communicate()}")


def children(pid: int) -> list[int]:
    """The processes that a process has started and that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
