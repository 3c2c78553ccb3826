"""Compile all kernels and cache them on disk: `python -m karpool.packing.kernels`."""

import sys
import time
from typing import Final

from karpool.packing.kernels import FOLDER
from karpool.packing.warmup import warm_up

_LONG: Final = 5.0

if __name__ == "__main__":
    start = time.perf_counter()
    warm_up()
    took = time.perf_counter() - start
    if took > _LONG:
        sys.stdout.write(f"kernels compiled in {took:.0f} s and cached in {FOLDER}\n")
