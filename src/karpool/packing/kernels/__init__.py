"""Compiled inner loops of the engine: they see arrays, never objects.

Numba caches what it compiles on disk, but compares only the file of the function that is called. The cache is therefore
a folder for each package of kernels, named after a hash of the package and of every module of Karpool that it imports
from: a change in any of them compiles all of its kernels again. The folder may be copied, and may be read-only, as in
an image. What is in it are pickles, which can do anything when they are loaded: a folder that others can write is
neither read nor written, and the kernels are compiled in memory.
"""

import ast
import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache

from karpool.packing import compilation
from karpool.wire.ownership import distrusted
from karpool.wire.problems import one_line

_log = logging.getLogger(__name__)


def cache_key(root: Path, package: str = __name__) -> str:
    """A hash of the version of Numba and of all sources that kernels are compiled from; `root` contains `karpool`."""
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    folder = root.joinpath(*package.split("."))
    pending = sorted(source for source in folder.glob("*.py") if source.name != "__main__.py")
    sources = set(pending)
    while pending:
        imported = set(_imports(root, pending.pop())) - sources
        sources |= imported
        pending += imported
    for source in sorted(sources):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _imports(root: Path, source: Path) -> Iterator[Path]:
    """The files of Karpool's modules that a module imports, or imports names from.

    Numba and NumPy are below the same folder where Karpool is installed from a wheel: reading them takes seconds.
    """
    own = f"{__name__.partition('.')[0]}."
    for statement in ast.walk(ast.parse(source.read_bytes())):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            modules = [statement.module, *(f"{statement.module}.{name.name}" for name in statement.names)]
        elif isinstance(statement, ast.Import):
            modules = [name.name for name in statement.names]
        else:
            continue
        files = (root.joinpath(*name.split(".")).with_suffix(".py") for name in modules if name.startswith(own))
        yield from (file for file in files if file.is_file())


@cache
def folder_of(package: str) -> Path:
    """Where the compiled kernels of a package are cached."""
    name = f"kernels-{cache_key(Path(__file__).parents[3], package)}"
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given) / name
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "karpool" / name


def _is_trusted(folder: Path) -> bool:
    """Whether a folder may be used; one that is not there yet is looked at again when it is."""
    return _is_found_trusted(folder) if folder.exists() else distrusted(folder) is None


@cache
def _is_found_trusted(folder: Path) -> bool:
    """Whether a folder that is there may be used; says why not, once."""
    problem = distrusted(folder)
    if problem is not None:
        _log.warning(
            "the compiled kernels in %s are not used, because %s; they are compiled in memory at every start,"
            " which takes about half a minute; remove that folder, or let nobody else write it",
            folder,
            one_line(problem),
        )
    return problem is None


class _Locator:
    """Where one kernel is cached; it is as fresh as the folder."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._folder = folder_of(function.__module__.rpartition(".")[0])
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Callable[..., Any], _file: str) -> "_Locator":
        return cls(function)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        with _writable_by_nobody_else():
            self._folder.mkdir(parents=True, exist_ok=True)


class _Located(CompileResultCacheImpl):
    _locator_classes: Any = [_Locator]


class _DiskCache(FunctionCache):
    _impl_class = _Located

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled before, if nobody else can have written it."""
        found = None
        if _is_trusted(Path(self.cache_path)):
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is None:
            compilation.begun()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write what was compiled, unless the folder is read-only or not ours."""
        compilation.finished(self._name)
        if not _is_trusted(Path(self.cache_path)):
            return
        try:
            with _writable_by_nobody_else():
                super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            compilation.not_kept(error)


@contextmanager
def _writable_by_nobody_else() -> Iterator[None]:
    """Files that are made meanwhile, by any thread, are written by this user only, whatever the process is set to."""
    before = os.umask(0o077)
    os.umask(before | 0o022)
    try:
        yield
    finally:
        os.umask(before)


def compiled(function: Any) -> Any:
    """Compile a function that Python calls, and cache the result on disk; other threads run beside it."""
    compilation.declared(function.__qualname__)
    kernel = numba.njit(error_model="numpy", nogil=True)(function)
    # As `cache=True`, which refuses to read from a folder that it cannot write to.
    kernel._cache = _DiskCache(function)  # type: ignore[no-untyped-call]
    return kernel


def inner(function: Any) -> Any:
    """Compile a function that only other compiled functions call, without wrappers for Python and C."""
    return numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def inlined(function: Any) -> Any:
    """The same for one that is made part of its caller: a call with many arrays costs more than most of them do."""
    return numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)(function)
