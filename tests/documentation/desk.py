"""A folder with the files that documentation speaks of, made of the example cluster."""

import json
from pathlib import Path
from typing import Any, Final

import yaml
from click.testing import CliRunner
from tests.documentation.commands import ROOT

from karpool.cli.main import cli

NODE: Final = "ip-10-0-0-7"
"""The node of the documentation; in the examples it is called otherwise."""
_COMPACTOR: Final = {"nodePools": {"general": {"enabled": True, "scaleDownCPURequestRatioLimit": 0.75}}}


def example_objects() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in sorted((ROOT / "examples").glob("*.*")):
        if file.suffix in {".json", ".yaml"}:
            text = file.read_text().replace("general-7", NODE)
            for document in yaml.safe_load_all(text):
                found += document.get("items", [document])
    return found


def furnish(desk: Path) -> None:
    """Put there what the commands of the documentation read."""
    for name in ("examples", "quick-starts", "deploy", "scenarios", "benchmarks", "docs"):
        (desk / name).symlink_to(ROOT / name)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": example_objects()})
    for name in ("cluster.json", "everything.json"):
        (desk / name).write_text(text)
    pools = (ROOT / "examples" / "nodepools.yaml").read_text()
    for folder in ("nodepools", "snapshots"):
        (desk / folder).mkdir()
    for name in ("nodepools/general.yaml", "nodepools.yaml", "old-pools.yaml", "old.yaml"):
        (desk / name).write_text(pools)
    for name in ("new-pools.yaml", "new.yaml"):
        (desk / name).write_text(pools.replace("WhenEmptyOrUnderutilized", "WhenEmpty"))
    for name in ("pools.json", "compactor.json"):
        (desk / name).write_text(json.dumps(_COMPACTOR))
    snapshot = CliRunner().invoke(
        cli, ["snapshot", "-f", str(desk / "cluster.json"), "-o", str(desk / "cluster.json.zst")]
    )
    assert snapshot.exit_code == 0, snapshot.output
    (desk / "snapshots" / "monday.json.zst").write_bytes((desk / "cluster.json.zst").read_bytes())
    (desk / "decisions.jsonl").touch()
