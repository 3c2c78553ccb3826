"""The clusters that benchmarks run on are legal, alike for a seed, and survive being written to files."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from karpool.catalog.kwok_file import read_types
from karpool.model.objects import Objects
from karpool.model.requests import effective_requests
from tests.checker import Placement, state_of, violations

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)


def made(nodes: int, seed: int) -> Objects:
    from clusters import generate

    return generate(nodes, seed)


@pytest.mark.parametrize(("nodes", "seed"), [(1, 0), (12, 1), (40, 2)])
def test_every_pod_of_a_generated_cluster_runs_where_it_may(nodes: int, seed: int) -> None:
    cluster = made(nodes, seed)
    empty = state_of(replace(cluster, pods=()))
    placements = [Placement(pod, empty.machines[pod.spec.node_name]) for pod in cluster.pods]
    assert violations(empty, placements) == []


def test_a_seed_makes_the_same_cluster_again_and_another_seed_another() -> None:
    assert made(30, 7) == made(30, 7)
    assert made(30, 7) != made(30, 8)


def test_a_generated_cluster_gives_consolidation_work() -> None:
    cluster = made(300, 1)
    used: Counter[str] = Counter()
    for pod in cluster.pods:
        used[pod.spec.node_name] += effective_requests(pod)["cpu"].milli
    shares = [used[node.name] / node.status.allocatable["cpu"].milli for node in cluster.nodes]
    assert 14 <= len(cluster.pods) / len(cluster.nodes) <= 24
    assert sum(share < 0.2 for share in shares) >= 15
    assert sum(share > 0.4 for share in shares) >= 150
    assert len({node.metadata.labels["karpenter.sh/nodepool"] for node in cluster.nodes}) == 6


def test_the_command_writes_a_list_and_a_catalogue(tmp_path: Path) -> None:
    cluster, catalog = tmp_path / "cluster.json", tmp_path / "catalog.json"
    asked = ["--nodes", "6", "--seed", "3", "-o", str(cluster), "--catalog", str(catalog)]
    subprocess.run([sys.executable, BENCHMARKS / "clusters.py", *asked], check=True, capture_output=True)  # noqa: S603 - our own script
    items = json.loads(cluster.read_bytes())["items"]
    kinds = Counter(item["kind"] for item in items)
    assert kinds["Node"] == kinds["NodeClaim"] == kinds["NodePool"] == 6
    assert kinds["Pod"] == len(made(6, 3).pods)
    assert len(read_types(catalog.read_bytes(), "catalog.json")) == 30


def test_the_scheduling_workload_is_a_five_way_mix() -> None:
    from workloads import diverse, preferring

    pods = diverse(103).objects.pods
    spread = Counter(c.topology_key for pod in pods for c in pod.spec.topology_spread_constraints)
    affine = [pod.spec.affinity for pod in pods if pod.spec.affinity]
    assert sorted(spread.values()) == [20, 20]
    assert sum(entry.pod_affinity is not None for entry in affine) == 20
    assert sum(entry.pod_anti_affinity is not None for entry in affine) == 20
    assert len(pods) == 103
    assert all(pod.provisionable for pod in pods)
    assert len(preferring().objects.pods) == 4000
