"""Pools of older APIs in a scenario: Provisioners of v1alpha5, NodePools of v1beta1, and what is no pool at all."""

import msgspec
import pytest
from click.testing import CliRunner
from tests.tables import row, table

from karpool.cli.main import cli
from karpool.model.labels import ARCH, CAPACITY_TYPE, OS
from karpool.virtual.scenario import Policy, patched, read_scenario
from karpool.virtual.scenario_checks import flaws
from karpool.wire.duration import NEVER, parse_duration

PROVISIONER = """
pools:
- apiVersion: karpenter.sh/v1alpha5
  kind: Provisioner
  metadata: {name: default}
  spec:
    weight: 10
    requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
    %s
- metadata: {name: new}
workloads: [{name: web, cpu: 500m, memory: 1Gi, replicas: 2}]
policies: {only: {}}
length: 1h
"""

NODE_POOL = """
pools:
- metadata: {name: default}
  %s
  %s
workloads: [{name: web, cpu: 500m, memory: 1Gi, replicas: 2}]
policies: {only: {}}
length: 1h
"""


def test_a_provisioner_is_the_pool_that_it_became() -> None:
    text = PROVISIONER % "ttlSecondsAfterEmpty: 60\n    limits: {resources: {cpu: 20}}"
    assert list(flaws(text.encode())) == []
    old, new = read_scenario(text).pools
    assert (old.name, old.weight, new.name) == ("default", 10, "new")
    assert old.spec.disruption.consolidation_policy == "WhenEmpty"
    assert old.spec.disruption.consolidate_after == parse_duration("1m")
    assert old.spec.template.spec.expire_after == NEVER
    assert str(old.spec.limits["cpu"]) == "20"


def test_a_provisioner_without_a_capacity_type_launches_no_spot_nodes() -> None:
    """As the webhook had it that added defaults; a simulation of spot nodes would cost a fraction."""
    text = (
        (PROVISIONER % "weight: 5").replace("    weight: 10\n", "").replace("[{key: karpenter.sh/capacity-type, ", "[{")
    )
    text = text.replace("operator: In, values: [on-demand]", "key: node.kubernetes.io/instance-type, operator: Exists")
    old, new = read_scenario(text).pools
    written = {entry.key: entry.values for entry in old.spec.template.spec.requirements[1:]}
    assert written == {OS: ("linux",), ARCH: ("amd64",), CAPACITY_TYPE: ("on-demand",)}
    assert new.spec.template.spec.requirements == ()


def test_a_v1beta1_node_pool_is_read_as_v1() -> None:
    beta = "{consolidationPolicy: WhenUnderutilized, expireAfter: 48h}"
    text = NODE_POOL % ("apiVersion: karpenter.sh/v1beta1", f"spec: {{disruption: {beta}}}")
    assert list(flaws(text.encode())) == []
    (pool,) = read_scenario(text).pools
    assert pool.spec.disruption.consolidation_policy == "WhenEmptyOrUnderutilized"
    assert pool.spec.template.spec.expire_after == parse_duration("48h")


@table(
    row(
        "another kind", api="kind: Deployment", said="pools[0].kind: 'Deployment' is no kind of pool; write NodePool or"
    ),
    row("a slip", api="kind: provisioner", said="did you mean Provisioner?"),
    row("no word", api="kind: 3", said="pools[0].kind: '3' is no kind of pool"),
    row(
        "a version that never was",
        api="{kind: Provisioner, apiVersion: karpenter.sh/v1alpha6}",
        said="pools[0].apiVersion: 'karpenter.sh/v1alpha6' is no version of a Provisioner that can be read; "
        "write karpenter.sh/v1alpha5",
    ),
    row("another group", api="apiVersion: apps/v1", said="write karpenter.sh/v1 or karpenter.sh/v1beta1"),
)
def test_what_is_no_pool_is_refused(api: str, said: str) -> None:
    text = NODE_POOL % (api.strip("{}").replace(", ", "\n  "), "spec: {}")
    (flaw,) = flaws(text.encode())
    assert said in f"{flaw.field}: {flaw.message}"
    with pytest.raises(msgspec.ValidationError, match=r"pools\[0\]"):
        read_scenario(text)


def test_fields_that_v1beta1_never_had_are_named() -> None:
    text = NODE_POOL % ("apiVersion: karpenter.sh/v1beta1", "spec: {disruption: {consolidateAftr: 1m}}")
    (flaw,) = flaws(text.encode())
    assert flaw.field == "pools[0].spec.disruption.consolidateAftr"


def test_policies_patch_it_like_any_pool() -> None:
    pools = read_scenario(PROVISIONER % "consolidation: {enabled: true}").pools
    change = {"spec": {"disruption": {"consolidateAfter": "5m"}}}
    (old, _) = patched(pools, Policy(pools={"default": change}))
    assert old.spec.disruption.consolidate_after == parse_duration("5m")


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("ttlSecondsAfterEmpt: 60", "pools[0].spec.ttlSecondsAfterEmpt: is not a known field"),
        ("ttlSecondsAfterEmpty: -1", "pools[0].spec.ttlSecondsAfterEmpty: -1 is out of range"),
        ("preferences: []", "pools[0].spec.preferences: Provisioners have no preferences"),
        ("taints: [{key: a, effect: Never}]", "pools[0].spec.taints[0].effect"),
    ],
)
def test_what_is_wrong_with_one_is_named(field: str, said: str) -> None:
    (flaw, *_) = flaws((PROVISIONER % field).encode())
    assert f"{flaw.field}: {flaw.message}".startswith(said)


def test_a_scenario_with_one_runs() -> None:
    text = PROVISIONER % "consolidation: {enabled: true}"
    result = CliRunner().invoke(cli, ["simulate", "-", "--catalog", "sample"], input=text)
    assert result.exit_code == 0, result.stderr
