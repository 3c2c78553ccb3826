"""Compiled kernels are used again only if everything that was compiled into them is the same."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import karpool
from karpool.packing.kernels import cache_key, folder_of

PROGRAM = """
from karpool.packing.kernels import compiled

@compiled
def doubled(number):
    return 2 * number

print(doubled(4))
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    shutil.copytree(Path(karpool.__file__).parent, tmp_path / "karpool", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize("package", ["karpool.packing.kernels", "karpool.optimization.kernels"])
def test_the_cache_is_named_after_the_sources(sources: Path, package: str) -> None:
    assert folder_of(package).name == f"kernels-{cache_key(sources, package)}"


def test_each_package_has_a_folder_of_its_own(sources: Path) -> None:
    key = cache_key(sources, "karpool.optimization.kernels")
    source = sources / "karpool/optimization/kernels/ruin.py"
    source.write_text(f"{source.read_text()}\n")
    assert cache_key(sources, "karpool.optimization.kernels") != key
    assert cache_key(sources) == cache_key(Path(karpool.__file__).parents[1])


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("packing/kernels/columns.py", "BATCHES = 128", "BATCHES = 64"),
        ("cluster/codes.py", "PRESENT: Final = 2", "PRESENT: Final = 3"),
        ("cluster/codes.py", "INVERSE = 3", "INVERSE = 4"),
    ],
)
def test_a_constant_that_kernels_compile_in_changes_the_name(sources: Path, file: str, before: str, after: str) -> None:
    key, source = cache_key(sources), sources / "karpool" / file
    text = source.read_text()
    assert before in text
    source.write_text(text.replace(before, after))
    assert cache_key(sources) != key


def test_what_kernels_do_not_import_does_not_change_the_name(sources: Path) -> None:
    key, source = cache_key(sources), sources / "karpool/packing/engine.py"
    source.write_text(f"{source.read_text()}\n")
    assert cache_key(sources) == key


def test_packages_beside_karpool_as_a_wheel_has_them_are_not_read(sources: Path) -> None:
    key = cache_key(sources)
    (sources / "numba").mkdir()
    (sources / "numba" / "core.py").write_text("not Python")
    (sources / "numba.py").write_text("not Python")
    (sources / "numpy.py").write_text("not Python")
    assert cache_key(sources) == key


class Planted:
    """What makes a folder when it is loaded, in place of anything worse."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> object:
        return os.mkdir, (str(self._mark),)


def run_program(cache: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(  # noqa: S603
        [sys.executable, program], env=environment, capture_output=True, text=True, check=True
    )


@pytest.mark.slow
def test_kernels_that_others_can_have_written_are_not_loaded_but_compiled(tmp_path: Path) -> None:
    cache, mark = tmp_path / "cache", tmp_path / "loaded"
    assert (run_program(cache, tmp_path).stdout, run_program(cache, tmp_path).stderr) == ("8\n", "")
    (index,) = cache.rglob("*.nbi")
    assert index.parent.stat().st_mode & 0o022 == index.stat().st_mode & 0o022 == 0
    index.write_bytes(pickle.dumps(Planted(mark)))
    index.parent.chmod(0o777)
    ended = run_program(cache, tmp_path)
    assert ended.stdout == "8\n"
    assert f"the compiled kernels in {index.parent} are not used, because everybody can write" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert not mark.exists()
