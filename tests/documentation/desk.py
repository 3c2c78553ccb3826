"""A folder with the files that documentation speaks of, made of the example cluster."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml
from click.testing import CliRunner
from tests.documentation.commands import ROOT

from karpool.cli.main import cli

NODE: Final = "ip-10-0-0-7"
"""The node of the documentation; in the examples it is called otherwise, and so is its pod."""
POD: Final = "cart-0"
_READY: Final = {"conditionType": "Ready", "conditionStatus": "False", "tolerationDuration": "30m"}
_SCENARIO: Final = {
    "pools": [{"metadata": {"name": "general"}}],
    "workloads": [{"name": "web", "cpu": "500m", "memory": "1Gi", "replicas": 3}],
    "policies": {
        "today": {"decisions": {"search": "prefix"}},
        "tomorrow": {
            "pools": {"*": {"spec": {"disruption": {"consolidateAfter": "5m"}}}},
            "decisions": {"search": "prefix"},
        },
    },
    "length": "1h",
}
_COMPACTOR: Final = {"nodePools": {"general": {"enabled": True, "scaleDownCPURequestRatioLimit": 0.75}}}


def example_objects() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in sorted((ROOT / "examples").glob("*.*")):
        if file.suffix in {".json", ".yaml"}:
            text = file.read_text().replace("general-7", NODE).replace("web-2567a5ec-08993", POD)
            for document in yaml.safe_load_all(text):
                found += document.get("items", [document])
    return found


def furnish(desk: Path) -> None:
    """Put there what the commands of the documentation read."""
    for name in ("examples", "quick-starts", "deploy", "charts", "scenarios", "benchmarks", "docs", "scripts"):
        (desk / name).symlink_to(ROOT / name)
    (desk / ".venv").symlink_to(sys.prefix)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": example_objects()})
    for name in ("cluster.json", "everything.json"):
        (desk / name).write_text(text)
    pools = (ROOT / "examples" / "nodepools.yaml").read_text()
    for folder in ("nodepools", "snapshots", ".zfunc", ".config/fish/completions"):
        (desk / folder).mkdir(parents=True)
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
    (desk / "mine.yaml").write_text(json.dumps(_SCENARIO))
    (desk / "decisions.jsonl").touch()
    (desk / "repair.yaml").write_text(json.dumps({"policies": [_READY]}))
    (desk / "FILE").write_text(json.dumps({"spec": {"disruption": {"consolidateAfter": "30s"}}}))
    if shutil.which("git"):
        _make_a_repository(desk)


def _make_a_repository(desk: Path) -> None:
    """One whose branch `main` has been fetched."""
    who = ("-c", "user.name=reader", "-c", "user.email=reader@example.com")
    for words in (
        ("init", "--quiet"),
        ("add", "nodepools.yaml"),
        (*who, "commit", "--quiet", "--message", "Pools"),
        ("update-ref", "refs/remotes/origin/main", "HEAD"),
    ):
        subprocess.run(["git", *words], cwd=desk, check=True)  # noqa: S603, S607
