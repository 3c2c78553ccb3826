"""What holds for plans on any cluster, followed step by step with the independent checker."""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed
from tests.checker import BoundPod, Machine, State, narrowed, problems, state_of, template_of
from tests.disruption.scenarios import NOW, ago
from tests.examples import examples
from tests.strategies import Cluster, clusters

from karpool.disruption.command import Command, Method
from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import Plan, Planner, PlanStep, context_of
from karpool.disruption.predict import predicted_node
from karpool.disruption.refusal_cache import Footprint, RefusalCache, SingleNodeRefusals
from karpool.disruption.revalidate import revalidate
from karpool.disruption.settings import DisruptionSettings, Order, Partition
from karpool.model.labels import BALANCED_K, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, MINIMUM_SAVINGS, NODEPOOL, ZONE
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.packing.options import Options
from karpool.packing.scan import Scan
from karpool.wire.objects import Condition


@st.composite
def moody(draw: st.DrawFn, *, in_motion: bool = False, choosy: bool = True) -> tuple[Cluster, DisruptionSettings]:
    """A cluster with pools of every policy and some drifted nodes, and settings of a run."""
    cluster = draw(clusters(in_motion=in_motion, choosy=choosy))
    pools = tuple(_with_mood(draw, pool) for pool in cluster.objects.node_pools)
    drifted = draw(st.sets(st.integers(0, 11), max_size=2))
    claims = tuple(_drifted(claim) if n in drifted else claim for n, claim in enumerate(cluster.objects.node_claims))
    chosen = DisruptionSettings(
        order=draw(st.sampled_from(Order)), partition=draw(st.sampled_from(Partition)),
        spot_to_spot=draw(st.booleans()),
        spot_floor=draw(st.sampled_from((1, 3, 15))),
    )  # fmt: skip
    return Cluster(changed(cluster.objects, node_pools=pools, node_claims=claims), cluster.catalog), chosen


def _with_mood(draw: st.DrawFn, pool: NodePool) -> NodePool:
    wanted = draw(st.sampled_from((None, None, None, "Balanced", "Balanced")))
    notes = draw(st.sampled_from(({}, {}, {BALANCED_K: "4"}, {MINIMUM_SAVINGS: "0.1"}, {MINIMUM_SAVINGS: "20%"})))
    policy = wanted or pool.spec.disruption.consolidation_policy
    disruption = changed(pool.spec.disruption, consolidation_policy=policy)
    metadata = changed(pool.metadata, annotations={**pool.metadata.annotations, **notes})
    return changed(pool, metadata=metadata, spec=changed(pool.spec, disruption=disruption))


def _drifted(claim: NodeClaim) -> NodeClaim:
    told = (*claim.status.conditions, Condition(type="Drifted", status="True", last_transition_time=ago(hours=1)))
    return changed(claim, status=changed(claim.status, conditions=told))


def context(cluster: Cluster, chosen: DisruptionSettings) -> DecisionContext:
    return context_of(cluster.objects, cluster.catalog, now=NOW, settings=chosen, options=Options())


def planned(cluster: Cluster, chosen: DisruptionSettings, refusals: RefusalCache | None = None) -> Plan:
    return Planner(context(cluster, chosen), refusals=refusals).plan()


# -- following a plan ------------------------------------------------------------------------------------------------


class Follower:
    """The cluster after each step of a plan, as the checker sees it."""

    def __init__(self, cluster: Cluster, at_first: DecisionContext) -> None:
        self.cluster = cluster
        self.context = at_first
        self.pods = {pod.key: pod for pod in cluster.objects.pods}
        self.state = state_of(_with_seats(cluster.objects, at_first), types=cluster.catalog.types)

    def follow(self, step: PlanStep) -> Iterator[str]:
        """Carry out a step, and tell every rule that it broke."""
        command = step.command
        machines = {name: held for name, held in self.state.machines.items() if name not in command.nodes}
        for new, name in zip(command.replacements, step.replacement_names, strict=True):
            machines[name] = self._machine(name, new.pool, new.requirements, new.instance_types)
        moved = {move.pod: self._target(step, move.target) for move in command.moves}
        left = [s for s in self.state.bound_pods if s.machine.name in machines and s.pod.key not in moved]
        bound_pods = [*left, *(BoundPod(_alive(self.pods[key]), machines[name]) for key, name in moved.items())]
        self.state = replace(self.state, machines=machines, bound_pods=tuple(bound_pods))
        for key, name in moved.items():
            others = replace(self.state, bound_pods=tuple(bound for bound in bound_pods if bound.pod.key != key))
            for problem in problems(_alive(self.pods[key]), machines[name], others):
                yield f"step {step.number}: {key} on {name}: {problem}"
        self._settle(step)

    @staticmethod
    def _target(step: PlanStep, target: str | int) -> str:
        return step.replacement_names[target] if isinstance(target, int) else target

    def _machine(self, name: str, pool: str, requirements: Any, types: tuple[str, ...]) -> Machine:
        owner = next(entry for entry in self.cluster.objects.node_pools if entry.name == pool)
        template = template_of(owner, self.cluster.catalog.types, name)
        assert template is not None
        return narrowed(template, requirements, types)

    def _settle(self, step: PlanStep) -> None:
        """New machines become what the plan predicts: the first type, where it is cheapest."""
        for new, name in zip(step.command.replacements, step.replacement_names, strict=True):
            labels = predicted_node(self.context, new, name).labels
            open_ = self.state.machines[name]
            keys = (INSTANCE_TYPE, ZONE, CAPACITY_TYPE)
            (option, *_) = [o for o in open_.options if all(o.labels.get(k) == labels.get(k) for k in keys)]
            named = replace(option, labels={**option.labels, HOSTNAME: name})
            settled = replace(open_, options=(named,), new=False)
            bound_pods = tuple(BoundPod(s.pod, settled) if s.machine.name == name else s for s in self.state.bound_pods)
            self.state = State(
                **{**_fields(self.state), "machines": {**self.state.machines, name: settled}, "bound_pods": bound_pods}
            )


def _fields(state: State) -> dict[str, Any]:
    return {name: getattr(state, name) for name in state.__dataclass_fields__}


def _alive(pod: Pod) -> Pod:
    """Who runs in the new place: for a pod that is about to end, the one that comes after it."""
    return changed(pod, metadata=changed(pod.metadata, deletion_timestamp=None))


def _with_seats(objects: Objects, at_first: DecisionContext) -> Objects:
    """Objects in which pods that wait for room have what they find."""
    rows, nodes = at_first.snapshot.pods, at_first.snapshot.nodes

    def where(pod: Pod) -> Pod:
        if not at_first.expected(pod):
            return pod
        return changed(pod, spec=changed(pod.spec, node_name=nodes.get(int(rows.node_of[rows.rows[pod.key]])).name))

    return changed(objects, pods=tuple(where(pod) for pod in objects.pods))


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
    made = planned(*given_)
    price = made.before.price
    for step in made.steps:
        command = step.command
        price -= command.savings
        if command.method is not Method.DRIFT:
            assert command.savings >= 0
        if command.replacements and command.method is not Method.DRIFT:
            assert command.savings > 0
    assert math.isclose(price, made.after.price, abs_tol=1e-9)


@examples(30)
@given(moody(in_motion=True))
def test_no_step_takes_more_nodes_of_a_pool_than_its_budget_allows(given_: tuple[Cluster, DisruptionSettings]) -> None:
    cluster, chosen = given_
    at_first = context(cluster, chosen)
    nodes = {state.name: state for row in at_first.rows() if (state := at_first.candidate(row).state).managed}
    for step in planned(cluster, chosen).steps:
        for pool in cluster.objects.node_pools:
            mine = [state for state in nodes.values() if state.pool == pool.name and state.initialized]
            allowed = _allowed(str(pool.spec.disruption.budgets[0].nodes), len(mine))
            busy = sum(state.deleting for state in mine)
            taken = sum(state.name in step.command.nodes for state in mine)
            assert taken == 0 or taken <= allowed - busy
        for name in step.command.nodes:
            del nodes[name]
        for new, name in zip(step.command.replacements, step.replacement_names, strict=True):
            nodes[name] = predicted_node(at_first, new, name)


def _allowed(text: str, nodes: int) -> int:
    return math.ceil(int(text[:-1]) * nodes / 100) if text.endswith("%") else int(text)


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


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes clusters of the size and unevenness that benchmarks use."""
    monkeypatch.syspath_prepend(Path(__file__).parent.parent.parent / "benchmarks")
    from clusters import catalog, generate

    return lambda nodes, seed: Cluster(generate(nodes, seed), catalog())


OPEN = DisruptionSettings(ignore_budgets=True)
CHOICES = [
    DisruptionSettings(), OPEN, replace(OPEN, partition=Partition.NONE, order=Order.COST),
    replace(OPEN, partition=Partition.POOL),
    replace(OPEN, spot_to_spot=True, spot_floor=3),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_a_whole_plan_for_forty_nodes_breaks_no_rule(generated: Any, seed: int) -> None:
    cluster, chosen = generated(40, seed), CHOICES[seed]
    follower = Follower(cluster, context(cluster, chosen))
    made = planned(cluster, chosen)
    assert [problem for step in made.steps for problem in follower.follow(step)] == []
    assert made.after.pods == made.before.pods
    assert made.after.price < made.before.price


@pytest.mark.parametrize("seed", range(5))
def test_recalling_makes_no_difference_on_larger_clusters(generated: Any, seed: int) -> None:
    cluster, chosen = generated(90, 20 + seed), CHOICES[seed]
    made = planned(cluster, chosen)
    assert len(made.steps) > 5
    assert made.steps == planned(cluster, chosen, refusals=Forgetful()).steps
