"""The configuration: what it may look like, and what is said when it is wrong."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from karpool.compaction.config import KEY, Config, PoolConfig, TimeWindow, parse_config
from karpool.wire.duration import parse_duration
from karpool.wire.problems import InputError

SEED = """
{
    "nodePools": {
        "nodepool1": {
            "enabled": true,
            "scaleDownCPURequestRatioLimit": 0.75,
            "scaleDownRequiredUnderutilizedNodeCount": 5
        },
        "nodepool2": {
            "enabled": true,
            "scaleDownCPURequestRatioLimit": 0.6,
            "scaleDownRequiredUnderutilizedNodeCount": 3
        }
    }
}
"""
READ = Config(
    node_pools={
        "nodepool1": PoolConfig(enabled=True, cpu_limit=0.75, required_count=5),
        "nodepool2": PoolConfig(enabled=True, cpu_limit=0.6, required_count=3),
    }
)
YAML = """
nodePools:
  nodepool1: {enabled: true, scaleDownCPURequestRatioLimit: 0.75, scaleDownRequiredUnderutilizedNodeCount: 5}
  nodepool2:
    enabled: yes
    scaleDownCPURequestRatioLimit: 0.6
    scaleDownRequiredUnderutilizedNodeCount: 3
"""
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "any"}, "data": {KEY: SEED}}
SEVERAL = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: x}}\n---\n{json.dumps(CONFIG_MAP)}\n"


@pytest.mark.parametrize(
    "text",
    [SEED, YAML, json.dumps(CONFIG_MAP), json.dumps({"kind": "List", "items": [CONFIG_MAP]}), SEVERAL, SEED.encode()],
    ids=["json", "yaml", "config map", "list", "several documents", "bytes"],
)
def test_every_form_of_the_configuration_means_the_same(text: str | bytes) -> None:
    assert parse_config(text) == READ


def test_what_is_left_out_has_defaults() -> None:
    assert parse_config("{}") == Config()
    pool = parse_config('{"nodePools": {"a": {}}}').pool("a")
    assert (pool.enabled, pool.check_fit, pool.respect_pdbs) == (False, True, True)
    assert (pool.required_count, pool.max_in_progress, pool.memory_limit, pool.windows) == (0, None, None, ())
    assert not parse_config("{}").pool("nobody").enabled


def test_what_karpool_adds() -> None:
    given = {
        "enabled": True,
        "scaleDownCPURequestRatioLimit": 1,
        "scaleDownMemoryRequestRatioLimit": 0.5,
        "maxConcurrentScaleDowns": 2,
        "scaleDownWindows": [{"schedule": "0 20 * * mon-fri", "duration": "10h"}],
        "respectPodDisruptionBudgets": False,
        "checkFit": False,
        "skipNodesWithSystemPods": True,
    }
    pool = parse_config(json.dumps({"nodePools": {"a": given}})).pool("a")
    assert pool == PoolConfig(
        enabled=True,
        cpu_limit=1.0,
        memory_limit=0.5,
        max_in_progress=2,
        windows=(TimeWindow(schedule="0 20 * * mon-fri", duration=parse_duration("10h")),),
        respect_pdbs=False,
        check_fit=False,
        skip_system_pods=True,
    )


@pytest.mark.parametrize(
    ("moment", "is_open"),
    [("2026-06-15T20:00", True), ("2026-06-16T05:59", True), ("2026-06-16T06:00", False), ("2026-06-15T19:59", False)],
)
def test_a_window_is_open_from_its_hit_for_its_duration(moment: str, *, is_open: bool) -> None:
    window = TimeWindow(schedule="0 20 * * mon-fri", duration=parse_duration("10h"))
    assert window.open(datetime.fromisoformat(moment).replace(tzinfo=UTC)) is is_open


def pool_text(**fields: Any) -> str:
    return json.dumps({"nodePools": {"main": {"scaleDownCPURequestRatioLimit": 0.5, **fields}}})


WINDOW = {"schedule": "0 20 * * *", "duration": "10h"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("{", "cut short"),
        ("[]", "expected an object"),
        ("just text", "expected an object"),
        ("{}\n{}", "holds 2 documents"),
        ('{"nodePools": 1e999}', "Number out of range"),
        ('{"nodePools": []}', "nodePools: expected a mapping, got a list"),
        ('{"nodepools": {}}', "nodepools: is not a known field; did you mean nodePools?"),
        ('{"nodePools": {"a": {"enabled": true}}}', "nodePools.a.scaleDownCPURequestRatioLimit: is missing"),
        (pool_text(enabled="true"), "nodePools.main.enabled: expected true or false, got text"),
        (pool_text(scaleDownCPURequestRatioLimit=75), "scaleDownCPURequestRatioLimit: 75 is not a part of a whole"),
        (pool_text(scaleDownCPURequestRatioLimit=-0.1), "-0.1 is not a part"),
        (pool_text(scaleDownMemoryRequestRatioLimit=1.5), "scaleDownMemoryRequestRatioLimit: 1.5 is not a part"),
        (pool_text(scaleDownRequiredUnderutilizedNodeCount=-1), "NodeCount: -1 is not allowed; write 0 or more"),
        (pool_text(scaleDownRequiredUnderutilizedNodeCount=1.5), "NodeCount: expected a whole number, got a number"),
        (pool_text(scaleDownRequiredUnderutilizedNodeCout=5), "did you mean scaleDownRequiredUnderutilizedNodeCount?"),
        (pool_text(maxConcurrentScaleDowns=0), "maxConcurrentScaleDowns: 0 is not allowed; write 1 or more"),
        (pool_text(scaleDownWindows=[{"schedule": "@daily"}]), "scaleDownWindows[0].duration: is missing"),
        (pool_text(scaleDownWindows=[{**WINDOW, "schedule": "nightly"}]), "[0].schedule: 'nightly' is not a schedule"),
        (pool_text(scaleDownWindows=[WINDOW, {**WINDOW, "duration": "Never"}]), "[1].duration: 'Never' is not"),
        (pool_text(scaleDownWindows=[{**WINDOW, "duration": "-1h"}]), "[0].duration: '-1h' is not"),
        ('{"kind": "ConfigMap", "data": {"other": "{}"}}', f"no ConfigMap in it has the key {KEY}"),
        (json.dumps({"kind": "ConfigMap", "data": {KEY: "{"}}), f"data[{KEY}]: the JSON is cut short"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_config(text, file="compactor.json")
    assert str(caught.value).startswith("compactor.json: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
