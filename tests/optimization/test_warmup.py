"""After `warm_up`, no kernel is left to be compiled in the middle of a decision."""

import subprocess
import sys

import pytest

PROGRAM = """
import importlib, pkgutil
from karpool.optimization import kernels as searching
from karpool.optimization.warmup import warm_up
from karpool.packing import kernels as packing

warm_up()
modules = [
    importlib.import_module(f"{package.__name__}.{module.name}")
    for package in (packing, searching)
    for module in pkgutil.iter_modules(package.__path__)
    if module.name != "__main__"
]
kernels = {value for module in modules for value in vars(module).values() if hasattr(value, "_cache")}
cached = {kernel for kernel in kernels if isinstance(kernel._cache, packing._DiskCache)}
print(len(cached), sorted(kernel.__name__ for kernel in cached if not kernel.signatures))
"""


@pytest.mark.slow
def test_warming_up_runs_every_kernel() -> None:
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own program
    count, _, missing = result.stdout.strip().partition(" ")
    assert int(count) >= 15
    assert missing == "[]"
