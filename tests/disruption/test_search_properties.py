"""What holds for plans of a global search on any cluster, followed step by step with the independent checker."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed
from tests.disruption.following import Follower, check_that_the_price_falls, context, moody, over_budget, planned
from tests.examples import examples
from tests.strategies import Cluster

from karpool.disruption.command import Method
from karpool.disruption.plan import Plan
from karpool.disruption.settings import GLOBAL, PREFIX, DisruptionSettings, Weights
from karpool.model.nodepool import NodePool
from karpool.model.pod import Pod
from karpool.model.workloads import PodDisruptionBudget

Drawn = tuple[Cluster, DisruptionSettings]


@st.composite
def searched(draw: st.DrawFn, *, in_motion: bool = False) -> Drawn:
    """A cluster with pools of every policy, and settings of a global search."""
    cluster, chosen = draw(moody(in_motion=in_motion))
    return cluster, replace(
        chosen,
        search=GLOBAL,
        effort=draw(st.integers(0, 1)),
        eviction_price=draw(st.sampled_from((None, 0.0, 0.02))),
        weights=draw(st.sampled_from(Weights)),
        seed=draw(st.integers(0, 3)),
    )


@examples(12)
@given(searched())
def test_a_whole_plan_leaves_every_pod_placed_and_every_rule_intact(given_: Drawn) -> None:
    cluster, chosen = given_
    follower = Follower(cluster, context(cluster, chosen))
    ran = {bound.pod.key for bound in follower.state.bound_pods if bound.pod.reschedulable}
    for step in planned(cluster, chosen).steps:
        assert list(follower.follow(step)) == []
        bound_pods = Counter(bound.pod.key for bound in follower.state.bound_pods)
        assert all(bound_pods[key] == 1 for key in ran)


@examples(12)
@given(searched(in_motion=True))
def test_the_price_falls_with_every_command_by_what_it_says(given_: Drawn) -> None:
    check_that_the_price_falls(planned(*given_))


@examples(12)
@given(searched(in_motion=True))
def test_no_command_takes_more_nodes_of_a_pool_than_its_budget_allows(given_: Drawn) -> None:
    cluster, chosen = given_
    assert list(over_budget(cluster, chosen, planned(cluster, chosen))) == []


@examples(12)
@given(searched())
def test_pods_that_share_a_pdb_leave_in_as_many_waves_as_it_needs(given_: Drawn) -> None:
    cluster, chosen = given_
    assert list(wrong_waves(cluster, planned(cluster, chosen))) == []


def wrong_waves(cluster: Cluster, made: Plan) -> Iterator[str]:
    """Every PodDisruptionBudget that a command breaks, or whose waves it does not count, counted anew."""
    pods = {pod.key: pod for pod in cluster.objects.pods}
    for step in made.steps:
        if step.command.method is Method.DRIFT:
            continue  # a node past its termination grace period takes its pods with it
        moved = [pods[move.pod] for move in step.command.moves if move.source is not None and not move.leaving]
        for pdb in cluster.objects.pod_disruption_budgets:
            sharing = sum(_covers(pdb, pod) for pod in moved)
            allowed = pdb.status.disruptions_allowed
            if sharing and not allowed:
                yield f"step {step.number}: {pdb.key} lets none of {sharing} pods go"
            elif sharing:
                waves = step.command.waves[pdb.key]
                if (waves.pods, waves.allowed, waves.waves) != (sharing, allowed, math.ceil(sharing / allowed)):
                    yield f"step {step.number}: {pdb.key}: {waves} for {sharing} pods"


def _covers(pdb: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether a pod counts: one that tolerates everything is not evicted, but ends with its node."""
    selector = pdb.spec.selector
    here = pod.metadata.namespace == pdb.metadata.namespace
    stays = any(entry.operator == "Exists" and not entry.key for entry in pod.spec.tolerations)
    return here and selector is not None and not stays and selector.match_labels.items() <= pod.metadata.labels.items()


@examples(8)
@given(searched(in_motion=True))
def test_the_same_cluster_and_seed_give_the_same_plan(given_: Drawn) -> None:
    assert planned(*given_) == planned(*given_)


@examples(12)
@given(moody(), st.integers(0, 3))
def test_where_evictions_cost_nothing_a_plan_never_ends_dearer_than_with_prefixes(given_: Drawn, seed: int) -> None:
    cluster, chosen = given_
    prefix = planned(cluster, replace(chosen, search=PREFIX, eviction_price=0.0))
    found = planned(cluster, replace(chosen, search=GLOBAL, effort=1, eviction_price=0.0, seed=seed))
    assert found.after.price <= prefix.after.price + 1e-9


# -- larger clusters -------------------------------------------------------------------------------------------------

OPEN = DisruptionSettings(search=GLOBAL, effort=0, ignore_budgets=True, eviction_price=0.0)
CHOICES = [
    DisruptionSettings(search=GLOBAL, effort=1),
    OPEN,
    replace(OPEN, effort=1),
    replace(OPEN, weights=Weights.STRICT, seed=7),
    replace(OPEN, spot_to_spot=True, spot_floor=3),
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_whole_plan_for_thirty_nodes_breaks_no_rule(generated: Any, seed: int) -> None:
    cluster, chosen = generated(30, seed), CHOICES[seed]
    made = planned(cluster, chosen)
    follower = Follower(cluster, context(cluster, chosen))
    assert [problem for step in made.steps for problem in follower.follow(step)] == []
    assert list(wrong_waves(cluster, made)) == []
    assert made.after.pods == made.before.pods
    assert made.after.price < made.before.price


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_for_thirty_nodes_ends_cheaper_than_with_prefixes(generated: Any, seed: int) -> None:
    cluster = generated(30, 30 + seed)
    found, prefix = (planned(cluster, replace(OPEN, search=search)) for search in (GLOBAL, PREFIX))
    assert found.after.price < prefix.after.price


@pytest.mark.parametrize("seed", range(1))
def test_a_price_on_evictions_buys_fewer_of_them(generated: Any, seed: int) -> None:
    cluster = generated(30, 40 + seed)
    free, priced, dear = (planned(cluster, replace(OPEN, eviction_price=price)) for price in (0.0, 0.01, 1.0))
    assert evictions(dear) < evictions(priced) < evictions(free)
    assert free.after.price < priced.after.price < dear.after.price


def evictions(made: Plan) -> int:
    return sum(move.source is not None for step in made.steps for move in step.command.moves)


def test_a_pool_whose_budget_allows_one_node_loses_one_with_every_command(generated: Any) -> None:
    cluster = generated(30, 50)
    pools = tuple(_with_budget(pool, "1") for pool in cluster.objects.node_pools)
    narrow = Cluster(changed(cluster.objects, node_pools=pools), cluster.catalog)
    chosen = replace(OPEN, ignore_budgets=False)
    made = planned(narrow, chosen)
    assert made.steps
    assert list(over_budget(narrow, chosen, made)) == []


def _with_budget(pool: NodePool, nodes: str) -> NodePool:
    disruption = pool.spec.disruption
    budgets = (changed(disruption.budgets[0], nodes=nodes),)
    return changed(pool, spec=changed(pool.spec, disruption=changed(disruption, budgets=budgets)))
