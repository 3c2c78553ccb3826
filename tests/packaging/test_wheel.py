"""What a wheel installs besides the package: commands, the plugin of kubectl, and man pages."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_wheel_brings_commands_and_man_pages(tmp_path: Path) -> None:
    program = f"from hatchling.build import build_wheel; print(build_wheel({str(tmp_path)!r}))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    with zipfile.ZipFile(tmp_path / done.stdout.split()[-1]) as wheel:
        names = wheel.namelist()
        points = wheel.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    assert {"karpool", "kubectl-karpool", "kubectl_complete-karpool"} <= {
        line.partition(" = ")[0] for line in points.splitlines()
    }
    pages = {name.rpartition("/")[2] for name in names if "data/share/man/man1/" in name}
    assert pages == {file.name for file in (ROOT / "packaging" / "man").iterdir()}
    assert [name for name in names if name.startswith("karpool/report/assets/budgets")]
