"""The table of what can go wrong names tests that there are."""

import re
from pathlib import Path

from tests.robustness import test_broken_controllers

TESTS = Path(__file__).parents[1]
TABLE = TESTS.parent / "docs" / "operations.md"
COLUMN = 3


def rows() -> dict[str, str]:
    """What goes wrong, and what is said of how that is tested."""
    section = TABLE.read_text().partition("### What can go wrong")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.split("|")] for line in section.splitlines() if line.startswith("| ")]
    return {row[1]: row[COLUMN] for row in cells[1:]}


def deprived() -> set[str]:
    """What the broken controllers lack."""
    return set(re.findall(r'row\("([^"]+)", spoil', Path(test_broken_controllers.__file__).read_text()))


def test_every_row_names_a_test_or_says_that_there_is_none() -> None:
    assert len(rows()) > 20
    for wrong, tested in rows().items():
        assert re.search(r"`[a-z_/]+\.py`", tested) or tested == "not tested", wrong


def test_every_file_that_is_named_has_tests() -> None:
    named = {name for tested in rows().values() for name in re.findall(r"`([^`]+)`", tested)}
    for name in named:
        assert "\ndef test_" in (TESTS / name).read_text(), name


def test_every_controller_in_brackets_is_found_out() -> None:
    named = {name for tested in rows().values() for name in re.findall(r"\*([^*]+)\*", tested)}
    assert named
    assert named <= deprived()
