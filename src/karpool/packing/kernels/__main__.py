"""Compile all kernels and keep them on disk: `python -m karpool.packing.kernels`."""

import sys
import time
from typing import Final

from karpool.packing.kernels import FOLDER
from karpool.packing.warmup import warm_up

_WORTH_TELLING: Final = 5.0

if __name__ == "__main__":
    start = time.perf_counter()
    warm_up()
    took = time.perf_counter() - start
    if took > _WORTH_TELLING:
        sys.stdout.write(f"kernels compiled in {took:.0f} s and kept in {FOLDER}\n")
