"""What commands say of pods that keep to a host: by its name, its label, or a volume that is a directory of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.factories.clouds import Manifest, eks_node, pod

from karpool.cli.main import cli

AT = ("--at", "2026-11-16T12:00:00Z")
QUICK = {command: {"effort": 0} for command in ("plan", "explain")}


def affinity(**terms: Any) -> Manifest:
    required = {"nodeSelectorTerms": [terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def expression(key: str) -> list[Manifest]:
    return [{"key": key, "operator": "In", "values": ["c"]}]


PINNED: dict[str, Manifest] = {
    "selector": {"nodeSelector": {"kubernetes.io/hostname": "c"}},
    "label": {"affinity": affinity(matchExpressions=expression("kubernetes.io/hostname"))},
    "name": {"affinity": affinity(matchFields=expression("metadata.name"))},
}


def volume_of(host: str) -> list[Manifest]:
    """A volume that is a directory of a host, and the claim that is bound to it."""
    at = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}]
    reach = {"required": {"nodeSelectorTerms": [{"matchExpressions": at}]}}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "disk"},
            "spec": {"local": {"path": "/data"}, "nodeAffinity": reach},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "shop"},
            "spec": {"volumeName": "disk"},
            "status": {"phase": "Bound"},
        },
    ]


def run(file: Path, *command: str) -> str:
    result = CliRunner().invoke(cli, [*command, "-f", str(file), *AT], default_map=QUICK)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("how", PINNED)
def test_a_pod_that_keeps_to_a_host_beside_a_volume_of_a_host_stays_for_the_reason(how: str, tmp_path: Path) -> None:
    pinned = pod("web-1", "c")
    pinned["spec"].update(PINNED[how])
    database = pod("db-1", "a", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    manifests = [*(eks_node(name, "web") for name in "abcd"), *volume_of("a"), database, pinned]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    plan = json.loads(run(file, "plan", "-o", "json"))
    stays = {entry["name"]: entry["reasons"][0]["message"] for entry in plan["nodes"] if entry["verdict"] == "keep"}
    assert stays.keys() == {"a", "c"}
    assert "its volumes require kubernetes.io/hostname In [a]" in stays["a"]
    assert ": requires kubernetes.io/hostname In [c]" in stays["c"]
    assert ": requires kubernetes.io/hostname In [c]" in " ".join(run(file, "explain", "c").split())
    assert "requires kubernetes.io/hostname In [c]" in " ".join(run(file, "compact", "--plan", "--node", "c").split())
