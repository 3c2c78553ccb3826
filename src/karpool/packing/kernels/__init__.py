"""Compiled inner loops of the engine: they see arrays, never objects.

Numba keeps what it compiles on disk, but looks only at the file of the function that is called. Kernels are therefore
kept in a folder named after everything in this package: any change here compiles anew. Nothing else is asked of that
folder: it may be copied, and, as in an image, be one that cannot be written to.
"""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache


def _folder() -> Path:
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    name = f"kernels-{digest.hexdigest()}"
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given) / name
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "karpool" / name


FOLDER: Final = _folder()
"""Where kernels are kept."""


class _Locator:
    """Where one kernel is kept; its freshness is that of the folder."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Callable[..., Any], _file: str) -> "_Locator":
        return cls(function)

    def get_cache_path(self) -> str:
        return str(FOLDER)

    def get_source_stamp(self) -> str:
        return FOLDER.name

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)


class _Located(CompileResultCacheImpl):
    _locator_classes: Any = [_Locator]


class _Kept(FunctionCache):
    _impl_class = _Located

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, where that is possible."""
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def compiled(function: Any) -> Any:
    """Compile a function that Python calls, and keep the result on disk."""
    kernel = numba.njit(error_model="numpy")(function)
    # What `cache=True` would do, but that one refuses to read where it cannot write.
    kernel._cache = _Kept(function)  # type: ignore[no-untyped-call]
    return kernel


def inner(function: Any) -> Any:
    """Compile a function that only other compiled functions call, which saves the ways in from Python and from C."""
    return numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
