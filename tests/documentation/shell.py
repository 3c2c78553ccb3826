"""Executes a shown command as somebody types it: in a shell, in a folder with the files that it names."""

import http.client
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.documentation.commands import ROOT, Command
from tests.live.https import eventually
from tests.live.programs import Program, free_port

UI: str = "127.0.0.1:8088"


class Done(NamedTuple):
    status: int
    output: str


def environment(desk: Path, *folders: Path, **variables: str) -> dict[str, str]:
    """With the programs of this environment first, the desk as home, and no browser."""
    own = Path.home() / ".cache"
    return {
        **os.environ,
        "PATH": ":".join(map(str, (Path(sys.executable).parent, *folders, os.environ["PATH"]))),
        "HOME": str(desk),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(own)),
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", ""),
        "BROWSER": "true",
        **variables,
    }


def ensured(name: str, *options: str) -> Path:
    """The folder of a program that `make test` has fetched or built."""
    script = [str(ROOT / "scripts" / f"ensure-{name}"), *options]
    found = subprocess.run(script, capture_output=True, text=True, check=False)  # noqa: S603 - our own scripts
    if found.returncode:
        pytest.skip(f"NOT TESTED: commands of the documentation with {name}. {found.stderr.strip()}")
    return Path(found.stdout.splitlines()[-1]).parent


def has_its_programs(command: Command) -> None:
    """Skip a command whose programs this machine lacks."""
    for program in {"jq", "man", "git", "envsubst"} & set(command.text.split()):
        if shutil.which(program) is None:
            pytest.skip(f"NOT TESTED: commands of the documentation with {program}; install {program}")


def in_a_shell(text: str, desk: Path, variables: Mapping[str, str]) -> Done:
    script = ["bash", "-o", "pipefail", "-c", text]
    done = subprocess.run(script, cwd=desk, env=dict(variables), capture_output=True, text=True, check=False)  # noqa: S603
    return Done(done.returncode, done.stdout + done.stderr)


@contextmanager
def served(command: Command, desk: Path, variables: Mapping[str, str]) -> Iterator[str]:
    """What `run`, `compact` or `ui` serves, ready, or `record` while it writes; stopped as a kubelet does it.

    Ports are free ones of this machine: that is all that differs from what is shown.
    """
    text, port, page = command.text, free_port(), free_port()
    of_page = command.words[1] == "ui"
    if of_page:
        text += f" --port {port}"
    addresses = {
        "KARPOOL_METRICS_ADDRESS": f"127.0.0.1:{free_port()}",
        "KARPOOL_HEALTH_ADDRESS": f"127.0.0.1:{port}",
    }
    if command.words[1] == "compact":
        addresses["KARPOOL_METRICS_ADDRESS"] = f"127.0.0.1:{port}"
    log = desk / f"served-{port}.log"
    script = ["bash", "-c", f"cd {desk} && exec env {text.replace(UI, f'127.0.0.1:{page}')}"]
    program = Program(script, log, environment={**variables, **addresses})
    program.start()
    try:
        if command.words[1] == "record":
            eventually(lambda: '"event":"recording"' in log.read_text())
        else:
            program.wait_until_healthy(f"http://127.0.0.1:{port}{'/' if of_page else '/readyz'}")
        if UI in text:
            eventually(lambda: asked(f"127.0.0.1:{page}")[0] == http.HTTPStatus.OK)
        yield f"127.0.0.1:{port}"
        status = program.stop()
    finally:
        program.stop()
    assert status == 0, log.read_text()
    assert not re.search(r"Traceback|\"level\": ?\"error\"", log.read_text()), log.read_text()


def asked(address: str) -> tuple[int, str]:
    """The status and the text of the page at an address; 0 where nobody answers."""
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError:
        return 0, ""
    finally:
        connection.close()
