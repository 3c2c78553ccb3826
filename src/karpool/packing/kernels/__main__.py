"""Compile all kernels and keep them on disk: `python -m karpool.packing.kernels`."""

import sys

import numba

from karpool.packing.warmup import warm_up

if __name__ == "__main__":
    warm_up()
    sys.stdout.write(f"kernels are compiled and kept in {numba.config.CACHE_DIR}\n")
