"""Packages that are installed for one test: a module, and the metadata that pip would write beside it."""

import sys
from pathlib import Path

import pytest


def install(
    monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, *, code: str, group: str, entries: dict[str, str]
) -> None:
    """Install version 1.0 of a package with one module, which is forgotten after the test."""
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    (folder / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))
    # Set, so that the module that is imported meanwhile is removed afterwards.
    monkeypatch.setitem(sys.modules, name, None)
    del sys.modules[name]
