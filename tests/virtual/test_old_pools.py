"""Provisioners of v1alpha5 among the pools of a scenario."""

import pytest
from click.testing import CliRunner

from karpool.cli.main import cli
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


def test_a_provisioner_is_the_pool_that_it_became() -> None:
    text = PROVISIONER % "ttlSecondsAfterEmpty: 60\n    limits: {resources: {cpu: 20}}"
    assert list(flaws(text.encode())) == []
    old, new = read_scenario(text).pools
    assert (old.name, old.weight, new.name) == ("default", 10, "new")
    assert old.spec.disruption.consolidation_policy == "WhenEmpty"
    assert old.spec.disruption.consolidate_after == parse_duration("1m")
    assert old.spec.template.spec.expire_after == NEVER
    assert str(old.spec.limits["cpu"]) == "20"


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
