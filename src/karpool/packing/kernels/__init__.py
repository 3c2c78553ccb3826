"""Compiled inner loops of the engine: they see arrays, never objects.

Numba keeps what it compiles on disk, but looks only at the file of the function that is called. The cache is therefore
kept in a folder named after everything in this package: any change here compiles anew.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

import numba


def _cache_folder() -> Path:
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "karpool" / f"kernels-{digest.hexdigest()}"


if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = str(_cache_folder())


def compiled(function: Any) -> Any:
    """Compile a function that Python calls, and keep the result on disk."""
    return numba.njit(cache=True, error_model="numpy")(function)


def inner(function: Any) -> Any:
    """Compile a function that only other compiled functions call, which saves the ways in from Python and from C."""
    return numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
