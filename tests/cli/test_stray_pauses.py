"""A pause where nobody looks for it."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from karpool.cli.main import cli

EXAMPLES = str(Path(__file__).parents[2] / "examples")
PAUSE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: karpool-pause, namespace: %s}\n"


@pytest.mark.slow
@pytest.mark.parametrize("namespace", ["default", "karpool"])
def test_a_pause_in_another_namespace_is_named(tmp_path: Path, namespace: str) -> None:
    (tmp_path / "pause.yaml").write_text(PAUSE % namespace)
    arguments = [
        "plan",
        "-f",
        EXAMPLES,
        "-f",
        str(tmp_path / "pause.yaml"),
        "--effort",
        "0",
        "--at",
        "2026-11-15T12:00:00Z",
    ]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0
    stray = "karpool: ConfigMap default/karpool-pause pauses nothing: the one that does is in namespace karpool\n"
    assert result.stderr == (stray if namespace == "default" else "")
    assert ("Paused" in result.stdout) == (namespace == "karpool")
