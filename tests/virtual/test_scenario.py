"""Scenarios as YAML, policies as patches, curves over the day."""

import pickle
from datetime import UTC, datetime

import msgspec
import pytest
from tests.virtual.worlds import CATALOG, POOL, scenario

from karpool.disruption.settings import Weights
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.compare import ScenarioSource
from karpool.virtual.curves import Bursts, Curve, CurveEvaluator, CurveStep, Hour, Noise
from karpool.virtual.random_streams import random_stream
from karpool.virtual.scenario import Policy, ScenarioError, patched, read_scenario
from karpool.wire.duration import parse_duration
from karpool.wire.merge_patch import merged

MIDNIGHT = datetime(2025, 1, 6, tzinfo=UTC)


def test_a_policy_patches_pools() -> None:
    pools = read_scenario(POOL).pools
    change = {"spec": {"disruption": {"consolidationGracePeriod": "30m", "budgets": None}}}
    (changed,) = patched(pools, Policy(pools={"*": change, "other": {"spec": {"weight": 5}}}))
    assert changed.spec.disruption.consolidation_grace_period == parse_duration("30m")
    assert changed.spec.disruption.consolidate_after == parse_duration("30s")
    assert str(changed.spec.disruption.budgets[0].nodes) == "10%"
    assert changed.spec.weight is None


def test_merging_replaces_lists_and_removes_nulls() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": [1, 2]}, {"a": {"b": None}, "d": [3]}) == {"a": {"c": 2}, "d": [3]}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("workloads: [{name: web, replica: 3}]", "replica"),
        ("workloads: [{name: web, replicas: -1}]", "replicas"),
        ("workloads: [{name: web, replicas: {hours: [{at: '25:00', value: 1}]}}]", "at"),
        ("faults: [{kind: flood}]", "flood"),
        ("a: 1\n---\nb: 2", "one document"),
        ("[]", "one document"),
        ("{apiVersion: v1, kind: Node}\n---\n{apiVersion: v1, kind: Pod}", r"not a scenario; name it in one"),
        ("{apiVersion: v1, kind: List, items: []}", r"not a scenario; name it in one, as `cluster: \[FILE\]`"),
    ],
)
def test_what_is_wrong_is_named(text: str, named: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=named):
        read_scenario(text)


def values(curve: Curve, times: list[float], seed: int = 0) -> list[int]:
    evaluator = CurveEvaluator(curve, MIDNIGHT, random_stream(seed, "test"))
    return [evaluator.whole(time * 3600.0) for time in times]


def test_hours_are_joined_by_ramps_across_midnight() -> None:
    day = Curve(hours=(Hour(at="08:00", value=40), Hour(at="20:00", value=16)))
    assert values(day, [0, 8, 14, 20, 26]) == [24, 40, 28, 16, 28]


def test_hours_may_be_steps() -> None:
    day = Curve(hours=(Hour(at="08:00", value=40), Hour(at="20:00", value=10)), shape="steps")
    assert values(day, [0, 7.99, 8, 19.9, 20]) == [10, 10, 40, 40, 10]


def test_steps_since_the_start_hold_until_the_next() -> None:
    steps = Curve(
        base=3, steps=(CurveStep(after=parse_duration("1h"), value=9), CurveStep(after=parse_duration("2h"), value=0))
    )
    assert values(steps, [0, 1, 1.5, 2, 30]) == [3, 9, 9, 0, 0]


def test_bursts_come_and_go() -> None:
    curve = Curve(base=5, bursts=Bursts(every=parse_duration("1h"), length=parse_duration("10m"), height=20))
    seen = values(curve, [minute / 60 for minute in range(600)])
    assert min(seen) == 5
    assert max(seen) >= 25
    assert 20 < sum(value > 5 for value in seen) < 250


def test_noise_stays_for_its_while_and_is_the_same_for_a_seed() -> None:
    curve = Curve(base=100, noise=Noise(share=0.1))
    times = [minute / 60 for minute in range(60)]
    assert values(curve, times) == values(curve, times)
    assert values(curve, times) != values(curve, times, seed=1)
    assert len(set(values(curve, times))) <= 12


def test_an_error_of_a_worker_process_keeps_its_field() -> None:
    error = pickle.loads(pickle.dumps(ScenarioError("nodeGroups", "no such type")))  # noqa: S301 - our own bytes
    assert (error.field, str(error)) == ("nodeGroups", "no such type")


def test_options_of_the_search_replace_those_of_every_policy() -> None:
    text = b"pools: [{metadata: {name: a}}]\npolicies: {x: {decisions: {evictionPrice: 0.5, order: cost}}, y: {}}"
    source = ScenarioSource(text, lambda: CATALOG, decisions=(("eviction_price", 0.1), ("effort", 0)))
    decisions = {name: policy.decisions for name, policy in source.scenario().policies.items()}
    assert {(entry.eviction_price, entry.effort) for entry in decisions.values()} == {(0.1, 0)}
    assert decisions["x"].order == "cost"


def test_a_virtual_cluster_decides_by_the_options_of_its_policy() -> None:
    made = scenario("policies: {a: {decisions: {effort: 3, evictionPrice: 0.02, weights: strict}}}")
    settings = VirtualCluster(made, CATALOG, policy=made.policies["a"], seed=7).controller.settings
    assert (settings.effort, settings.eviction_price, settings.weights) == (3, 0.02, Weights.STRICT)
    assert settings.seed == 7
