"""What the documents say about the code is true: the picture of packages, names of files, words of the glossary."""

import ast
import re
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name
from typing import Final

import pytest

from karpool.compaction.reasons import CompactionReasonCode
from karpool.disruption.reasons import ReasonCode

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ROOT / "src" / "karpool"
ARCHITECTURE: Final = ROOT / "docs" / "architecture.md"
GLOSSARY: Final = ROOT / "docs" / "glossary.md"
GUIDES: Final = (ARCHITECTURE, GLOSSARY, ROOT / "CONTRIBUTING.md")
Layers = list[frozenset[str]]


def contract() -> Layers:
    """The layers that import-linter checks, outermost first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (layers,) = (
        entry["layers"] for entry in settings["tool"]["importlinter"]["contracts"] if entry["type"] == "layers"
    )
    return [frozenset(name.strip().removeprefix("karpool.") for name in layer.split("|")) for layer in layers]


def picture() -> Layers:
    """The layers in the picture: `a & b --> c` puts `a` and `b` above `c`."""
    (drawing,) = re.findall(r"```mermaid\n(.*?)```", ARCHITECTURE.read_text(), flags=re.DOTALL)
    arrows = [line.split("-->") for line in drawing.splitlines() if "-->" in line]
    pairs = [(_names(above), _names(below)) for above, below in arrows]
    assert all(pair[1] == following[0] for pair, following in pairwise(pairs))
    return [pairs[0][0], *(below for _, below in pairs)]


def _names(side: str) -> frozenset[str]:
    return frozenset(name.strip() for name in side.split("&"))


def packages() -> list[str]:
    return sorted(path.parent.name for path in PACKAGES.glob("*/__init__.py"))


def test_the_picture_shows_the_layers_that_are_checked() -> None:
    assert picture() == contract()


def test_every_package_has_its_layer() -> None:
    assert sorted(name for layer in contract() for name in layer) == packages()


@pytest.mark.parametrize("package", packages())
def test_a_package_says_what_it_is_what_it_may_import_and_what_it_is_not_for(package: str) -> None:
    docstring = ast.get_docstring(ast.parse((PACKAGES / package / "__init__.py").read_text())) or ""
    sentences = re.findall(r"[.?](?=\s|$)", docstring)
    assert 3 <= len(sentences) <= 5, docstring
    assert "import" in docstring


@pytest.mark.parametrize("package", packages())
def test_the_architecture_page_links_every_package(package: str) -> None:
    assert f"../src/karpool/{package}/__init__.py" in ARCHITECTURE.read_text()


def _links(page: Path) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            yield target


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert [target for target in _links(page) if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    """A file is named from the root of the repository, or from that of the package: `disruption/methods/search.py`."""
    named = set(re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|md|toml|yaml))`", page.read_text()))
    assert sorted(name for name in named if not any((base / name).exists() for base in (ROOT, PACKAGES))) == []


def _entries() -> list[tuple[str, str]]:
    """The words of the glossary, and the names in the code that they stand for."""
    return re.findall(r"^- \*\*(.+?)\*\* \(`([\w.]+)`\): ", GLOSSARY.read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize(("word", "name"), _entries(), ids=lambda value: value)
def test_a_word_of_the_glossary_is_a_name_in_the_code(word: str, name: str) -> None:
    assert resolve_name(f"karpool.{name}") is not None, word


def test_the_glossary_has_one_line_a_word_in_order() -> None:
    words = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("- ")]
    assert len(words) == len(re.findall(r"^- \*\*", GLOSSARY.read_text(), flags=re.MULTILINE))
    assert len(_entries()) > 20


@pytest.mark.parametrize(
    ("page", "codes"), [("decisions.md", ReasonCode), ("compactor.md", CompactionReasonCode)], ids=["plan", "compact"]
)
def test_every_reason_is_documented(page: str, codes: type[StrEnum]) -> None:
    text = (ROOT / "docs" / page).read_text()
    assert [code for code in codes if f"`{code}`" not in text] == []
