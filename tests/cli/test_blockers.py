"""`karpool blockers`: options that do not go together."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from karpool.cli.main import cli

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("option", [("--effort", "2"), ("--search", "prefix")])
def test_looking_longer_for_some_is_of_the_quick_look(option: tuple[str, str]) -> None:
    result = CliRunner().invoke(cli, ["blockers", "-f", str(EXAMPLES), "--refine", "30", *option])
    assert result.exit_code == 2
    assert result.stderr.startswith("karpool: --refine: is of the quick look;")
