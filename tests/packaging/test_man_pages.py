"""The man pages are those of the commands as they are, and roff understands them."""

import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from karpool.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "packaging" / "man"


def test_the_pages_are_what_the_help_says_now() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "man-pages"))["pages"]()
    kept = {file.name: file.read_text() for file in PAGES.glob("*.1")}
    assert sorted(kept) == sorted(made)
    old = [name for name, text in made.items() if kept[name] != text]
    assert not old, f"these differ from the help; run scripts/man-pages: {old}"


def test_every_command_has_a_page() -> None:
    assert {"karpool.1", *(f"karpool-{name}.1" for name in COMMANDS)} <= {file.name for file in PAGES.iterdir()}


@pytest.mark.slow
def test_roff_formats_every_page_without_a_warning() -> None:
    program = shutil.which("groff")
    if program is None:
        pytest.skip("NOT TESTED: man pages in roff; install it with `apt-get install groff`")
    for page in sorted(PAGES.glob("*.1")):
        command = [program, "-man", "-ww", "-z", "-K", "utf8", str(page)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        assert (done.returncode, done.stderr) == (0, ""), page.name
