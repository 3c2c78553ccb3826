"""How much of a node is used, and which pool it is in."""

from typing import Any

import pytest
from tests.compaction.clusters import (
    GKE,
    NOW,
    ROOMY,
    decided,
    names,
    pool_node,
)
from tests.factories import pod

from karpool.compaction.settings import CompactionSettings


@pytest.mark.parametrize(
    ("cpu", "memory"),
    [
        ("2", "4Gi"),
        ("2000m", "4096Mi"),
        ("2.0", "4194304Ki"),
        (2, 4294967296),
        ("2e0", "4294967296"),
        ("2000000u", "4294967296000m"),
        ("2000000000n", "4294967.296k"),
        ("0.002k", "4294.967296M"),
        ("2", "4.294967296G"),
        ("2", "0.00390625Ti"),
        ("2", "4294967296e0"),
        ("2", "0.000003814697265625Pi"),
    ],
)
def test_amounts_are_read_in_every_form(cpu: Any, memory: Any) -> None:
    (verdict,) = decided(pool_node("n1", pods=[pod("web-1", cpu=cpu, memory=memory, node="n1")])).nodes
    assert verdict.view.usage.cpu_ratio == 0.5
    assert verdict.view.usage.memory_ratio == 0.25
    (other,) = decided(
        pool_node("n1", pods=[pod("web-1", cpu="1", memory="1Gi", node="n1")], cpu=cpu, memory=memory)
    ).nodes
    assert other.view.usage.cpu_ratio == 0.5
    assert other.view.usage.memory_ratio == 0.25


def test_all_unfinished_pods_count_as_use() -> None:
    pods = (
        pod("agent-1", cpu="400m", node="n1", owner="DaemonSet"),
        pod("dns-1", cpu="400m", node="n1", namespace="kube-system"),
        pod("going-1", cpu="400m", node="n1", deleted=NOW),
        pod("done-1", cpu="400m", node="n1", phase="Succeeded"),
    )
    (verdict,) = decided(pool_node("n1", pods=[*pods])).nodes
    assert verdict.view.usage.cpu_ratio == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("labels", "label", "pool"),
    [
        ({GKE: "main"}, None, "main"),
        ({"eks.amazonaws.com/nodegroup": "main"}, None, "main"),
        ({"kubernetes.azure.com/agentpool": "main"}, None, "main"),
        ({"karpenter.sh/nodepool": "main"}, None, "main"),
        ({"team": "main"}, "team", "main"),
        ({GKE: "main", "team": "red"}, "team", "red"),
        ({GKE: "main"}, "team", ""),
        ({"team": "main"}, None, ""),
    ],
)
def test_a_label_names_the_pool(labels: dict[str, str], label: str | None, pool: str) -> None:
    decision = decided(pool_node("n1", pods=["1"], labels=labels), ROOMY, settings=CompactionSettings(pool_label=label))
    assert decision.nodes[0].view.pool == pool
    assert names(decision) == (["n1"] if pool == "main" else [])
