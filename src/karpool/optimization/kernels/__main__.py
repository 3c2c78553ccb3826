"""Compile all kernels and cache them on disk: `python -m karpool.optimization.kernels`."""

import sys
import time
from typing import Final

from karpool.optimization.kernels import __name__ as package
from karpool.optimization.warmup import warm_up
from karpool.packing.kernels import folder_of

_LONG: Final = 5.0

if __name__ == "__main__":
    start = time.perf_counter()
    warm_up()
    took = time.perf_counter() - start
    if took > _LONG:
        sys.stdout.write(f"kernels compiled in {took:.0f} s and cached in {folder_of(package).parent}\n")
