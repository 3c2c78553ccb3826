"""Compile all kernels and keep them on disk: `python -m karpool.packing.kernels`."""

from karpool.packing.warmup import warm_up

if __name__ == "__main__":
    warm_up()
