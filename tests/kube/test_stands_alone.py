"""The client imports nothing of Karpool but `wire`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import karpool.kube

FILES = sorted(Path(karpool.kube.__file__).parent.glob("*.py"))
IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(f"karpool.kube.{name}")
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("karpool.")}))
"""


def test_it_loads_no_other_package_than_wire() -> None:
    names = [file.stem for file in FILES if file.stem != "__init__"]
    run = subprocess.run([sys.executable, "-c", IMPORT_ALL, *names], capture_output=True, text=True, check=True)  # noqa: S603 - ourselves
    assert run.stdout.split() == ["kube", "wire"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_says_nothing_of_karpool(file: Path) -> None:
    text = re.sub(r"^ *from karpool\.(kube|wire)\.\w+ import ", "", file.read_text(), flags=re.MULTILINE)
    assert file.stem == "__init__" or "karpool" not in text.lower()
