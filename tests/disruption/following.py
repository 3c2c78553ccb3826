"""Random clusters with pools of every policy, and plans for them that are followed with the independent checker."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace as changed
from tests.checker import BoundPod, Machine, State, narrowed, problems, state_of, template_of
from tests.disruption.scenarios import NOW, ago
from tests.strategies import Cluster, clusters

from karpool.disruption.command import Method
from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import Plan, Planner, PlanStep, context_of
from karpool.disruption.predict import predicted_node
from karpool.disruption.refusal_cache import RefusalCache
from karpool.disruption.settings import PREFIX, DisruptionSettings, Order, Partition
from karpool.model.labels import BALANCED_K, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, MINIMUM_SAVINGS, ZONE
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.packing.options import Options
from karpool.wire.objects import Condition


@st.composite
def moody(draw: st.DrawFn, *, in_motion: bool = False, choosy: bool = True) -> tuple[Cluster, DisruptionSettings]:
    """A cluster with pools of every policy and some drifted nodes, and settings of a run with prefixes."""
    cluster = draw(clusters(in_motion=in_motion, choosy=choosy))
    pools = tuple(_with_mood(draw, pool) for pool in cluster.objects.node_pools)
    drifted = draw(st.sets(st.integers(0, 11), max_size=2))
    claims = tuple(_drifted(claim) if n in drifted else claim for n, claim in enumerate(cluster.objects.node_claims))
    chosen = DisruptionSettings(
        search=PREFIX, order=draw(st.sampled_from(Order)), partition=draw(st.sampled_from(Partition)),
        spot_to_spot=draw(st.booleans()),
        spot_floor=draw(st.sampled_from((1, 3, 15))),
        eviction_price=draw(st.sampled_from((None, None, 0.01, 0.1))),
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
    return Planner(context(cluster, chosen), refusals=refusals, afresh=lambda: context(cluster, chosen)).plan()


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


def check_that_the_price_falls(made: Plan) -> None:
    """Every consolidation of a plan saves, replacing more than nothing, and together that is what the plan says."""
    price = made.before.price
    for step in made.steps:
        command = step.command
        price -= command.savings
        if command.method is not Method.DRIFT:
            assert command.savings >= 0
        if command.replacements and command.method is not Method.DRIFT:
            assert command.savings > 0
    assert math.isclose(price, made.after.price, abs_tol=1e-9)


def over_budget(cluster: Cluster, chosen: DisruptionSettings, made: Plan) -> Iterator[str]:
    """Every step of a plan that takes more nodes of a pool than its budget allows, counted anew."""
    at_first = context(cluster, chosen)
    nodes = {state.name: state for row in at_first.rows() if (state := at_first.candidate(row).state).managed}
    for step in made.steps:
        for pool in cluster.objects.node_pools:
            mine = [state for state in nodes.values() if state.pool == pool.name and state.initialized]
            left = _allowed(str(pool.spec.disruption.budgets[0].nodes), len(mine)) - sum(s.deleting for s in mine)
            taken = sum(state.name in step.command.nodes for state in mine)
            if taken > max(left, 0):
                yield f"step {step.number}: {taken} nodes of {pool.name}, and {left} may go"
        for name in step.command.nodes:
            del nodes[name]
        for new, name in zip(step.command.replacements, step.replacement_names, strict=True):
            nodes[name] = predicted_node(at_first, new, name)


def _allowed(text: str, nodes: int) -> int:
    return math.ceil(int(text[:-1]) * nodes / 100) if text.endswith("%") else int(text)
