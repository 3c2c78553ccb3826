"""Provisioners of older clusters, among them every one that the proposal for weights showed."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.tables import row, table

from karpool.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS
from karpool.model.nodepool import NodePool
from karpool.model.reading.decoding import read_provisioner
from karpool.model.reading.loading import load
from karpool.model.validation import validate
from karpool.wire.duration import NEVER, parse_duration
from karpool.wire.problems import InputError
from karpool.wire.quantity import parse_quantity

EXAMPLES = Path(__file__).parent / "provisioners"
DEFECTS = {
    "04-spot.yaml": "document 1: line 2, column 7: mapping values are not allowed in this context",
    "09-unnamed.yaml": "Provisioner in document 1: metadata.name: is missing; every object needs a name",
    "11-preference.yaml": "Provisioner preference: spec.preferences: Provisioners have no preferences; use weight",
}
NAMES = sorted(path.name for path in EXAMPLES.iterdir())


def converted(**spec: Any) -> NodePool:
    text = json.dumps(
        {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "a"}, "spec": spec}
    )
    (pool,) = load(["-"], stdin=io.BytesIO(text.encode())).objects.node_pools
    return pool


@pytest.mark.parametrize("name", [name for name in NAMES if name not in DEFECTS])
def test_every_sound_example_becomes_a_node_pool(name: str) -> None:
    loaded = load([str(EXAMPLES / name)], stdin=io.BytesIO())
    assert loaded.kinds == {"Provisioner": 1}
    assert len(loaded.objects.node_pools) == 1
    assert [warning.rule for warning in loaded.warnings] == ["Converted"]
    assert validate(loaded) == ()


@pytest.mark.parametrize("name", DEFECTS)
def test_every_broken_example_is_refused_for_its_defect(name: str) -> None:
    with pytest.raises(InputError) as caught:
        load([str(EXAMPLES / name)], stdin=io.BytesIO())
    assert DEFECTS[name] in str(caught.value)


def test_a_provisioner_keeps_its_template_and_policy() -> None:
    pool = converted(
        weight=50,
        requirements=[{"key": "kubernetes.io/arch", "operator": "Exists"}],
        labels={"team": "a"},
        annotations={"note": "b"},
        taints=[{"key": "t", "effect": "NoSchedule"}],
        startupTaints=[{"key": "s", "effect": "NoExecute"}],
        limits={"resources": {"cpu": "20"}},
        providerRef={"name": "default"},
    )
    claim = pool.spec.template.spec
    assert (pool.name, pool.weight, pool.spec.limits) == ("a", 50, {"cpu": parse_quantity("20")})
    assert (pool.spec.template.metadata.labels, pool.spec.template.metadata.annotations) == (
        {"team": "a"},
        {"note": "b"},
    )
    assert [str(taint) for taint in (*claim.taints, *claim.startup_taints)] == ["t:NoSchedule", "s:NoExecute"]
    assert [entry.key for entry in claim.requirements][:1] == ["kubernetes.io/arch"]
    assert (claim.node_class_ref.group, claim.node_class_ref.name) == ("karpenter.k8s.aws", "default")


ADDED = {OS: ("linux",), ARCH: ("amd64",), CAPACITY_TYPE: ("on-demand",)}
CATEGORY, GENERATION = "karpenter.k8s.aws/instance-category", "karpenter.k8s.aws/instance-generation"
TYPES = {CATEGORY: ("c", "m", "r"), GENERATION: ("2",)}


@table(
    row("nothing", given={}, expected=ADDED | TYPES),
    row("its own", given={CAPACITY_TYPE: ("spot",), OS: ("windows",), ARCH: ("arm64",)}, expected=TYPES),
    row("types", given={INSTANCE_TYPE: ("t3.small",)}, expected=ADDED),
    row("families", given={"karpenter.k8s.aws/instance-family": ("t3",)}, expected=ADDED),
    row("categories", given={CATEGORY: ("t",)}, expected=ADDED),
    row("generations", given={GENERATION: ("5",)}, expected=ADDED),
    row("sizes only", given={"karpenter.k8s.aws/instance-size": ("large",)}, expected=ADDED | TYPES),
)
def test_what_a_provisioner_leaves_out_is_what_the_webhook_added(
    given: dict[str, tuple[str, ...]], expected: dict[str, tuple[str, ...]]
) -> None:
    requirements = [{"key": key, "operator": "In", "values": values} for key, values in given.items()]
    found = converted(requirements=requirements).spec.template.spec.requirements
    assert {entry.key: entry.values for entry in found} == given | expected
    assert [entry.operator for entry in found if entry.key == GENERATION and GENERATION not in given] in ([], ["Gt"])


def test_labels_of_a_provisioner_and_other_clouds_get_no_defaults_that_contradict_them() -> None:
    labelled = converted(labels={CAPACITY_TYPE: "spot"}).spec.template.spec.requirements
    assert CAPACITY_TYPE not in {entry.key for entry in labelled}
    other = converted(providerRef={"apiVersion": "karpenter.azure.com/v1alpha1", "name": "a"})
    assert {entry.key: entry.values for entry in other.spec.template.spec.requirements} == ADDED


def test_preferences_are_refused_and_not_said_to_be_ignored() -> None:
    text = json.dumps({"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "spec": {"preferences": []}})
    reading = read_provisioner(text.encode())
    assert [flaw.rule for flaw in reading.refused] == ["Preferences"]
    assert [flaw.rule for flaw in reading.warnings] == ["Converted"]


def test_limits_may_be_written_without_resources() -> None:
    assert converted(limits={"cpu": 20}).spec.limits == {"cpu": parse_quantity("20")}


@pytest.mark.parametrize(
    ("spec", "policy", "after"),
    [
        ({}, "WhenEmpty", "Never"),
        ({"ttlSecondsAfterEmpty": 30}, "WhenEmpty", "30s"),
        ({"consolidation": {"enabled": True}}, "WhenEmptyOrUnderutilized", "0s"),
        ({"consolidation": {"enabled": False}, "ttlSecondsAfterEmpty": 0}, "WhenEmpty", "0s"),
    ],
)
def test_times_to_live_and_consolidation_become_a_policy(spec: dict[str, Any], policy: str, after: str) -> None:
    disruption = converted(**spec).spec.disruption
    assert (disruption.consolidation_policy, disruption.consolidate_after) == (policy, parse_duration(after))


def test_nodes_expire_only_when_a_provisioner_says_so() -> None:
    assert converted().spec.template.spec.expire_after == NEVER
    assert converted(ttlSecondsUntilExpired=3600).spec.template.spec.expire_after == parse_duration("1h")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"weight": 0}, "spec.weight: 0 is out of range"),
        (
            {"requirements": [{"key": "a", "operator": "Near"}]},
            "spec.requirements[0].operator: 'Near' is not an operator",
        ),
        ({"limits": {"resources": {"cpu": "-1"}}}, "spec.limits.cpu: '-1' is negative"),
        ({"ttlSecondsAfterEmpty": -1}, "spec.ttlSecondsAfterEmpty: -1 is out of range"),
        (
            {"ttlSecondsAfterEmpty": 30, "consolidation": {"enabled": True}},
            "spec.ttlSecondsAfterEmpty: is not allowed together with consolidation.enabled",
        ),
    ],
)
def test_a_provisioner_that_breaks_a_rule_is_refused(spec: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        converted(**spec)
    assert f"Provisioner a: {expected}" in str(caught.value)


def beta_pool(**disruption: Any) -> bytes:
    claim = {
        "nodeClassRef": {"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [],
        "kubelet": {"maxPods": 50},
    }
    spec = {"template": {"spec": claim}, "disruption": disruption}
    return json.dumps(
        {"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool", "metadata": {"name": "a"}, "spec": spec}
    ).encode()


def test_a_v1beta1_node_pool_is_read_as_v1() -> None:
    text = beta_pool(consolidationPolicy="WhenUnderutilized", expireAfter="48h")
    loaded = load(["-"], stdin=io.BytesIO(text))
    (pool,) = loaded.objects.node_pools
    assert pool.spec.disruption.consolidation_policy == "WhenEmptyOrUnderutilized"
    assert pool.spec.template.spec.expire_after == parse_duration("48h")
    assert pool.spec.template.spec.node_class_ref.group == "karpenter.k8s.aws"
    assert [(warning.rule, warning.message) for warning in loaded.warnings] == [
        ("Converted", "karpenter.sh/v1beta1 is read as karpenter.sh/v1")
    ]
    assert validate(loaded) == ()
