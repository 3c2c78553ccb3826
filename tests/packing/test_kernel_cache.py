"""Compiled kernels are used again only if everything that was compiled into them is the same."""

import shutil
from pathlib import Path

import pytest

import karpool
from karpool.packing.kernels import cache_key, folder_of


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
