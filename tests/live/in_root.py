"""Becomes a program in another root: `unshare --mount --pid --fork [--net] python in_root.py DESCRIPTION`, as root.

What is mounted here goes with the process: its mount namespace is its own. Nothing is left behind, however it ends.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_DEVICES = ("null", "zero", "full", "random", "urandom")


def main(description: dict[str, Any]) -> None:
    root = Path(description["root"])
    lower, upper, work = (description[name] for name in ("lower", "upper", "work"))
    mount("--make-rprivate", "/")
    if work:
        mount("-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", root)
    else:
        mount("--bind", upper, root)
    mount("-t", "proc", "proc", root / "proc")
    devices(root / "dev")
    for place, source in description["folders"].items():  # those that may be written to
        mount("--bind", source, root / place.lstrip("/"))
    for place, source in description["files"].items():  # those that may not
        mount("--bind", source, root / place.lstrip("/"))
        mount("-o", "remount,bind,ro", root / place.lstrip("/"))
    if not description["writable"]:
        mount("-o", "remount,bind,ro", root)
    for listen, connect in description["bridges"].items():
        bridge(listen, connect)
    os.chroot(root)
    os.chdir(description["directory"])
    user = description["user"]
    # Like the security context of the manifests: nobody in particular, no capabilities, and no way to get any.
    dropped = ("--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")
    privileges = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *dropped) if user else ()
    command = [*privileges, *description["command"]]
    os.execvpe(command[0], command, description["environment"])  # noqa: S606 - as the test has written it


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *arguments], check=True)  # noqa: S603, S607 - as written here


def devices(folder: Path) -> None:
    """Those of a container."""
    mount("-t", "tmpfs", "-o", "mode=755,size=64k", "devices", folder)
    for name in _DEVICES:
        (folder / name).touch()
        mount("--bind", f"/dev/{name}", folder / name)
    (folder / "fd").symlink_to("/proc/self/fd")
    (folder / "shm").mkdir()
    mount("-t", "tmpfs", "-o", "mode=1777,size=64m", "shared", folder / "shm")


def bridge(listen: str, connect: str) -> None:
    """The loopback interface of this network, which has nothing else, leads out through a socket, or a socket in."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)  # noqa: S607 - of the machine
    command = [sys.executable, str(Path(__file__).with_name("bridge.py")), listen, connect]
    carrier = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - it ends with this namespace
    if carrier.stdout is None or carrier.stdout.readline() != "ready\n":
        raise OSError(f"nobody listens on {listen}")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
