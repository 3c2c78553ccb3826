"""The promtool that `scripts/ensure-promtool` has found or fetched."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def promtool(*arguments: str) -> str:
    """What promtool prints; it fails the test if promtool finds a fault."""
    found = subprocess.run(  # noqa: S603
        [str(ROOT / "scripts" / "ensure-promtool"), "--no-fetch"], capture_output=True, text=True, check=False
    )
    if found.returncode:
        pytest.skip(
            "NOT TESTED: Prometheus' rules and the queries of dashboards; `scripts/ensure-promtool` gets promtool"
        )
    done = subprocess.run([found.stdout.strip(), *arguments], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
