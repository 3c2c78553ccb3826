"""What holds for plans on any cluster, followed step by step with the independent checker."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace as changed
from tests.disruption.following import Follower, check_that_the_price_falls, context, moody, over_budget, planned
from tests.examples import examples
from tests.strategies import Cluster

from karpool.disruption.command import Command, Method
from karpool.disruption.plan import Planner, PlanStep
from karpool.disruption.refusal_cache import Footprint, RefusalCache, SingleNodeRefusals
from karpool.disruption.revalidate import revalidate
from karpool.disruption.settings import PREFIX, DisruptionSettings, Order, Partition
from karpool.model.labels import NODEPOOL
from karpool.model.reasons import Reason
from karpool.packing.scan import Scan


@examples(30)
@given(moody())
def test_a_whole_plan_leaves_every_pod_placed_and_every_rule_intact(given_: tuple[Cluster, DisruptionSettings]) -> None:
    cluster, chosen = given_
    follower = Follower(cluster, context(cluster, chosen))
    ran = {bound.pod.key for bound in follower.state.bound_pods if bound.pod.reschedulable}
    for step in planned(cluster, chosen).steps:
        assert list(follower.follow(step)) == []
        bound_pods = Counter(bound.pod.key for bound in follower.state.bound_pods)
        assert all(bound_pods[key] == 1 for key in ran)


@examples(30)
@given(moody(in_motion=True))
def test_each_step_lists_exactly_the_pods_that_need_another_place(given_: tuple[Cluster, DisruptionSettings]) -> None:
    cluster, chosen = given_
    place = {pod.key: pod.spec.node_name for pod in cluster.objects.pods if pod.reschedulable}
    taken = set(context(cluster, chosen).leaving)
    for step in planned(cluster, chosen).steps:
        wanted = {key for key, node in place.items() if node in step.command.nodes} - taken
        listed = [move for move in step.command.moves if not move.leaving]
        assert {move.pod for move in listed if move.source is not None} == wanted
        assert all(move.source == place[move.pod] for move in listed if move.source is not None)
        for move in listed:
            target = move.target
            place[move.pod] = step.replacement_names[target] if isinstance(target, int) else target


@examples(30)
@given(moody(in_motion=True))
def test_the_price_falls_with_every_consolidation(given_: tuple[Cluster, DisruptionSettings]) -> None:
    check_that_the_price_falls(planned(*given_))


@examples(30)
@given(moody(in_motion=True))
def test_no_step_takes_more_nodes_of_a_pool_than_its_budget_allows(given_: tuple[Cluster, DisruptionSettings]) -> None:
    cluster, chosen = given_
    assert list(over_budget(cluster, chosen, planned(cluster, chosen))) == []


def _by_name(step: PlanStep) -> tuple[Any, ...]:
    return step.command.nodes, step.command.replacements, step.command.moves


@examples(30)
@given(moody(in_motion=True))
def test_the_same_cluster_gets_the_same_plan_in_whatever_order_it_is_told(
    given_: tuple[Cluster, DisruptionSettings],
) -> None:
    cluster, chosen = given_
    told = cluster.objects
    backwards = changed(
        told,
        pods=told.pods[::-1],
        nodes=told.nodes[::-1],
        node_claims=told.node_claims[::-1],
        node_pools=told.node_pools[::-1],
    )
    one, same, other = (planned(c, chosen) for c in (cluster, cluster, Cluster(backwards, cluster.catalog)))
    assert one == same
    assert list(map(_by_name, one.steps)) == list(map(_by_name, other.steps))


class Forgetful(RefusalCache):
    """Remembers nothing, so that everything is worked out anew in each step."""

    def __init__(self) -> None:
        super().__init__()
        self.single = ForgetfulAlone()

    def put(self, key: Hashable, reason: Reason, footprint: Footprint) -> None:
        """Forget it at once."""


class ForgetfulAlone(SingleNodeRefusals):
    """Remembers nothing of single nodes either."""

    def put(self, scan: Scan, rows: Sequence[int], chosen: slice) -> None:
        """Forget it at once."""


@examples(30)
@given(moody(in_motion=True))
def test_what_is_recalled_is_what_would_be_found_again(given_: tuple[Cluster, DisruptionSettings]) -> None:
    recalled, anew = planned(*given_), planned(*given_, refusals=Forgetful())
    assert recalled.steps == anew.steps
    assert recalled.after == anew.after
    codes = [[sorted({reason.code for reason in fate.reasons}) for fate in made.fates] for made in (recalled, anew)]
    assert codes[0] == codes[1]


@examples(30)
@given(moody(in_motion=True))
def test_a_fresh_command_stands_and_one_whose_node_is_gone_falls(given_: tuple[Cluster, DisruptionSettings]) -> None:
    cluster, chosen = given_
    made = Planner(context(cluster, chosen)).plan(1)
    for step in made.steps:
        assert revalidate(step.command, context(cluster, chosen)) == step.command
        gone = step.command.nodes[0]
        rest = changed(
            cluster.objects,
            nodes=tuple(node for node in cluster.objects.nodes if node.name != gone),
            node_claims=tuple(claim for claim in cluster.objects.node_claims if claim.status.node_name != gone),
        )
        found = revalidate(step.command, context(Cluster(rest, cluster.catalog), chosen))
        if step.command.method is Method.EMPTINESS:
            assert not isinstance(found, Command) or gone not in found.nodes
        elif step.command.method is not Method.DRIFT:
            assert isinstance(found, Reason)


@examples(30)
@given(moody(in_motion=True))
def test_every_node_of_today_has_a_verdict_with_a_reason(given_: tuple[Cluster, DisruptionSettings]) -> None:
    cluster, chosen = given_
    made = Planner(context(cluster, chosen)).plan(1)
    assert all(fate.reasons for fate in made.fates)
    names = {fate.candidate.name for fate in made.fates}
    assert {node.name for node in cluster.objects.nodes} <= names
    assert all(node.metadata.labels.get(NODEPOOL) or node.name in names for node in cluster.objects.nodes)


# -- larger clusters -------------------------------------------------------------------------------------------------


BY_PREFIXES = DisruptionSettings(search=PREFIX)
OPEN = replace(BY_PREFIXES, ignore_budgets=True)
CHOICES = [
    BY_PREFIXES, OPEN, replace(OPEN, partition=Partition.NONE, order=Order.COST),
    replace(OPEN, partition=Partition.POOL),
    replace(OPEN, spot_to_spot=True, spot_floor=3, eviction_price=0.01),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_whole_plan_for_forty_nodes_breaks_no_rule(generated: Any, seed: int) -> None:
    cluster, chosen = generated(40, seed), CHOICES[seed]
    follower = Follower(cluster, context(cluster, chosen))
    made = planned(cluster, chosen)
    assert [problem for step in made.steps for problem in follower.follow(step)] == []
    assert made.after.pods == made.before.pods
    assert made.after.price < made.before.price


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_recalling_makes_no_difference_on_larger_clusters(generated: Any, seed: int) -> None:
    cluster, chosen = generated(90, 20 + seed), CHOICES[seed]
    made = planned(cluster, chosen)
    assert len(made.steps) > 5
    assert made.steps == planned(cluster, chosen, refusals=Forgetful()).steps
