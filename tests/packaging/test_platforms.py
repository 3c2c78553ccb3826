"""The page of dependencies says the truth about wheels for every machine and Python: that of the index of packages."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
NO_INDEX = 3
"""The exit status of the script where the index does not answer."""


@pytest.mark.long
def test_the_table_of_wheels_is_what_the_index_says() -> None:
    command = [sys.executable, ROOT / "scripts" / "wheels", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode == NO_INDEX:
        pytest.skip(f"NOT TESTED: wheels of other machines. {done.stderr.strip()}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_karpool_itself_has_wheels_wherever_it_is_said_to_run() -> None:
    """The one exception has to stay known: whoever reads the table finds it explained below."""
    page = (ROOT / "docs" / "dependencies.md").read_text()
    (line,) = (line for line in page.splitlines() if line.startswith("| `karpool` |"))
    assert [cell.strip() for cell in line.split("|")[3:-1]] == ["all", "all", "all", "not 3.14: llvmlite, numba"]
