"""The version that pages, manifests and scripts name is that of these sources."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import karpool

ROOT: Final = Path(__file__).parents[2]
PLACES: Final = ("README.md", "CONTRIBUTING.md", "docs", "deploy", "charts", "scripts/image", "scripts/sbom")
NAMED: Final = re.compile(r"""(?:karpool[-:/]|\bVERSION=|^ *(?:appV|v)ersion: "?)(\d+\.\d+\.\d+)\b""", re.MULTILINE)
"""A wheel, an image, a folder of releases, a variable of a manifest, a label, a field of a chart."""


def named() -> Iterator[tuple[str, str]]:
    """Each place that names a version of Karpool, and which."""
    for place in PLACES:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix not in {".json", ".tgz"} and file.is_file():
                for found in NAMED.findall(file.read_text(encoding="utf-8", errors="replace")):
                    yield str(file.relative_to(ROOT)), found


def test_every_place_names_the_version_of_these_sources() -> None:
    found = list(named())
    assert [place for place in found if place[1] != karpool.__version__] == []
    files = {file for file, _ in found}
    assert {"README.md", "CONTRIBUTING.md", "docs/running.md", "charts/karpool/Chart.yaml"} <= files
    assert {"deploy/Dockerfile", "deploy/compactor/kubernetes.yaml", "deploy/controller/kubernetes.yaml"} <= files
