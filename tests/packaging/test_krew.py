"""The plugin for krew: a manifest with what krew asks for, and a program that finds Karpool or says what to install."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "packaging" / "krew"
PLUGIN = FOLDER / "kubectl-karpool"


def manifest() -> str:
    values = {
        "@VERSION@": "0.1.0",
        "@HOMEPAGE@": "https://example.com/karpool",
        "@URL@": "https://example.com/karpool",
        "@SHA256@": "0" * 64,
    }
    text = (FOLDER / "karpool.yaml").read_text()
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for name, value in values.items():
        assert name in body
        body = body.replace(name, value)
    return body


def test_the_manifest_has_what_krew_requires() -> None:
    plugin = yaml.safe_load(manifest())
    assert (plugin["apiVersion"], plugin["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert re.fullmatch(r"[\w-]+", plugin["metadata"]["name"])
    spec = plugin["spec"]
    assert re.fullmatch(r"v\d+\.\d+\.\d+", spec["version"])
    assert len(spec["shortDescription"]) <= 50
    (platform,) = spec["platforms"]
    assert re.fullmatch(r"[0-9a-f]{64}", platform["sha256"])
    assert platform["bin"] in [entry["from"] for entry in platform["files"]]
    assert PLUGIN.name == platform["bin"]
    assert (ROOT / "LICENSE").is_file()


def fake(folder: Path, name: str) -> None:
    """A program that prints its name and its arguments."""
    program = folder / name
    program.write_text(f'#!/bin/sh\necho {name} "$@"\n')
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("there", "runs"),
    [
        (["karpool", "uvx", "pipx"], "karpool plan --steps 1"),
        (["uvx", "pipx"], "uvx --from karpool==@VERSION@ karpool plan --steps 1"),
        (["pipx"], "pipx run --spec karpool==@VERSION@ karpool plan --steps 1"),
    ],
)
def test_the_plugin_runs_what_is_there(there: list[str], runs: str, tmp_path: Path) -> None:
    for name in there:
        fake(tmp_path, name)
    command = ["/bin/sh", str(PLUGIN), "plan", "--steps", "1"]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == runs


def test_the_plugin_says_what_to_install_where_there_is_nothing(tmp_path: Path) -> None:
    command = ["/bin/sh", str(PLUGIN)]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 1
    assert "pipx install karpool" in done.stderr
    assert os.access(PLUGIN, os.X_OK)
