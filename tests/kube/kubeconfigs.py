"""Kubeconfig files and credential plugins for tests."""

import asyncio
import json
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from karpool.kube.kubeconfig import find_target
from karpool.kube.target import Target

SECRET = "hush-hush-9c1f"  # noqa: S105 - to be looked for where it must not be
SERVER = "https://10.0.0.1:6443"
V1 = "client.authentication.k8s.io/v1"


def written(
    folder: Path,
    *,
    user: Mapping[str, Any] | None = None,
    cluster: Mapping[str, Any] | None = None,
    name: str = "dev",
    file: str = "config",
    **more: Any,
) -> Path:
    """A kubeconfig with one context, user and cluster of this name."""
    path = folder / file
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": name, "user": dict(user or {})}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"{name}-space"}}],
        "current-context": name,
        **more,
    }
    path.write_text(yaml.safe_dump(content))
    return path


def plugin(folder: Path, code: str, name: str = "plugin") -> Path:
    """A credential plugin in Python."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def answering(token: str, **status: str) -> str:
    """Code of a plugin that gives a token and counts its runs in a file beside it."""
    answer = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": token, **status}})
    return f"with open(sys.argv[0] + '.runs', 'a') as file: file.write('x')\nprint('{answer}')"


def runs(path: Path) -> int:
    counted = Path(f"{path}.runs")
    return len(counted.read_text()) if counted.exists() else 0


def exec_user(command: str | Path, **more: Any) -> dict[str, Any]:
    return {"exec": {"apiVersion": V1, "command": str(command), "interactiveMode": "Never", **more}}


def headers_of(target: Target) -> dict[str, str]:
    async def headers() -> Mapping[str, str]:
        return await target.credentials.headers()

    return dict(asyncio.run(headers()))


def target_of(path: Path, context: str | None = None) -> Target:
    return find_target(context, path, environ={})
