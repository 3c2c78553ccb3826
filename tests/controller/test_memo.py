"""What is kept from pass to pass is what a fresh pass finds, whatever happened in between."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.controller.restless import Restless
from tests.disruption.scenarios import CATALOG, NOW, POOL, NodeWithPods, ago, node
from tests.examples import examples
from tests.factories import affinity_to, pdb, pod
from tests.inflight import with_claims_launched
from tests.packing.test_what_ifs import columns

from karpool.cluster.snapshot import Snapshot
from karpool.controller.cluster_state import ClusterState
from karpool.controller.controller import Controller
from karpool.controller.store import ClusterStore
from karpool.disruption.candidates.eligibility import consolidation_refusal, emptiness_refusal, refusal
from karpool.disruption.command import Cause, Command
from karpool.disruption.context import DecisionContext
from karpool.disruption.decide import decide, first_commands
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.settings import PREFIX, DisruptionSettings, Order
from karpool.execution.settings import ExecutionSettings
from karpool.execution.state import nominate
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.nodepool import NodeClaim
from karpool.operator.pdb_source import StorePdbSource
from karpool.packing.engine import Engine
from karpool.packing.options import Options
from karpool.provisioning.inflight import as_launched
from karpool.virtual.facts import VirtualFacts

QUESTIONS = (refusal, partial(refusal, eventual=True), emptiness_refusal, consolidation_refusal)


class Idle:
    """A clock that forgets its tasks, an actuator that does nothing, and a provider."""

    catalog = CATALOG
    doubt = ""

    def __init__(self) -> None:
        self.moment = NOW

    @property
    def earliest(self) -> datetime:
        return self.moment

    @property
    def latest(self) -> datetime:
        return self.moment

    def after(self, delay: float, task: Callable[[], object]) -> None:
        """Nothing happens by itself."""

    def when(self, moment: datetime, task: Callable[[], object]) -> None:
        """Nothing happens by itself."""

    def execute(self, actions: Sequence[object], *, alive: Callable[[], bool], in_order: bool = False) -> None:
        """The world changes by chance alone."""


def expected_launch(claim: NodeClaim) -> NodeClaim:
    return as_launched(claim, CATALOG)


def controller(store: ClusterStore, idle: Idle, order: Order = Order.RATIO) -> Controller:
    made = Controller(
        store,
        idle,
        ClusterState(store, expected_launch),
        idle,
        catalog_source=idle,
        pdb_source=StorePdbSource(store),
        facts=VirtualFacts(store),
        settings=DisruptionSettings(search=PREFIX, order=order),
        options=Options(),
    )
    made.start()
    return made


def fresh(world: Restless, made: Controller) -> DecisionContext:
    """A context that knows nothing of earlier passes, on a snapshot built anew."""
    snapshot = Snapshot(with_claims_launched(world.store.objects(), CATALOG))
    return DecisionContext(Engine(snapshot, CATALOG, Options()), made._disruption.policies(world.now), world.now)


def kept(made: Controller) -> DecisionContext:
    """The context of the next pass, with what earlier ones kept."""
    assert made.session is not None
    now = made.session.clock.moment
    return DecisionContext(made.session.engine(), made._disruption.policies(now), now, made._disruption._memo)


def shared_columns(made: Controller) -> dict[str, bytes]:
    """The columns that everybody shares, except for the order of the pods of a node, which means nothing."""
    assert made.session is not None
    engine = made.session.engine()
    engine.refresh()
    return {name: column for name, column in columns(engine).items() if name not in {"head", "next_pod"}}


def outline(commands: Sequence[Command]) -> list[Any]:
    return [(command.method, command.nodes, len(command.replacements), command.savings) for command in commands]


def view(context: DecisionContext) -> dict[str, Any]:
    """Everything that decisions ask about each node alone, and what budgets of pools allow."""
    snapshot, found = context.snapshot, {}
    for name, row in snapshot.nodes.rows.items():
        one = context.candidate(row)
        pods, movers = (sorted(snapshot.pods.get(at).key for at in rows) for rows in (one.pods, context.movers(one)))
        answers = [question(context, one) for question in QUESTIONS]
        drift = context.drift(one)
        windows = int(context.closed[row]), int(context.unready[row])
        costs = round(one.cost, 9), round(one.eviction_cost, 9), one.price
        found[name] = (pods, movers, costs, one.pool_name, windows, answers, None if drift is None else drift.reason)
    allowed = {(name, cause): context.allowance(pool, cause) for name, pool in context.pools.items() for cause in Cause}
    return {"nodes": found, "allowed": allowed, "expected": (context.pending, context.leaving)}


def expect_eligible_as_refusals_say(context: DecisionContext) -> None:
    """The columns and the rules agree on who may be disrupted."""
    nodes = [context.candidate(row) for row in context.rows()]
    allowed = {node.row for node in nodes if refusal(context, node) is None}
    overruled = {node.row for node in nodes if refusal(context, node, eventual=True) is None}
    assert set(context.eligible_rows()) == allowed
    assert set(context.eligible_rows(eventual=True)) == overruled - allowed
    for row in allowed.difference(context.eligible_rows(open_only=True)):
        assert emptiness_refusal(context, context.candidate(row)) is not None
        assert consolidation_refusal(context, context.candidate(row)) is not None


@pytest.mark.slow
@examples(25)
@given(st.randoms(use_true_random=False), st.sampled_from(Order))
def test_what_a_memo_keeps_is_what_a_fresh_context_finds(chance: Random, order: Order) -> None:
    world, idle = Restless(chance), Idle()
    made = controller(world.store, idle, order)
    for _ in range(25):
        for _ in range(chance.randrange(4)):
            world.step()
        idle.moment = world.now = world.now + timedelta(seconds=chance.choice([0, 5, 15, 60, 310]))
        if chance.random() < 0.05:
            made.stop()
            made.start()
        assert made.session is not None
        node = chance.choice(world.store.nodes.listed()) if len(world.store.nodes) else None
        if node is not None and chance.random() < 0.1:
            made.session.state = nominate(made.session.state, [node.name], world.now, ExecutionSettings())
        before = shared_columns(made)
        with fresh(world, made) as anew, kept(made) as known:
            known.memo.forget_refusals(known.closed)
            commands = outline(first_commands(DecisionPass(known, known.memo.refusals)))
            assert commands == outline(first_commands(DecisionPass(anew)))
            assert view(known) == view(anew)
            expect_eligible_as_refusals_say(known)
            made._disruption._memo = known.memo
        assert shared_columns(made) == before


def test_a_budget_that_shuts_keeps_its_nodes_at_once() -> None:
    store, held = ClusterStore(), node("a", "small", pods=[{"labels": {"app": "web"}}])
    assert held.node is not None
    assert held.claim is not None
    store.pools.put(POOL)
    store.nodes.put(held.node)
    store.claims.put(held.claim)
    store.pods.put(held.pods[0])
    store.pdbs.put(pdb("web", {"app": "web"}, allowed=1, max_unavailable=1))
    made = controller(store, Idle())
    for allowed in (1, 0, 1):
        store.pdbs.put(pdb("web", {"app": "web"}, allowed=allowed, max_unavailable=1))
        with kept(made) as context:
            reason = refusal(context, context.candidate(context.snapshot.nodes.rows["a"]))
            assert (None if reason is None else reason.code) == (None if allowed else ReasonCode.POD_DISRUPTION_BUDGET)
            made._disruption._memo = context.memo


KEPT = {DO_NOT_DISRUPT: "true"}
DRIFTED = {"drifted": ago(hours=1), "termination_grace_period": "1h"}


def expect_same_as_fresh(
    made: Controller, idle: Idle, moments: Iterable[datetime], change: Callable[[], object]
) -> None:
    """Decisions with what earlier passes kept are those without it, before and after a change."""
    assert made.session is not None
    memo = None
    for number, moment in enumerate(moments):
        if number:
            change()
        idle.moment = moment
        engine, policies = made.session.engine(), made._disruption.policies(moment)
        known = decide(engine, policies, moment, memo, explain=lambda _commands: True)
        fresh_ = decide(engine, policies, moment, explain=lambda _commands: True)
        assert outline(known.commands) == outline(fresh_.commands)
        assert known.reasons == fresh_.reasons
        memo = known.memo


def filled(*nodes: NodeWithPods) -> ClusterStore:
    store = ClusterStore()
    store.pools.put(POOL)
    for entry in nodes:
        assert entry.node is not None
        assert entry.claim is not None
        store.nodes.put(entry.node)
        store.claims.put(entry.claim)
        for bound in entry.pods:
            store.pods.put(bound)
    return store


def test_a_drift_refusal_ends_with_the_do_not_disrupt_of_a_pod_that_others_follow() -> None:
    follower = {"name": "b-1", "cpu": 1, "near": [affinity_to({"app": "a"}, "topology.kubernetes.io/zone")]}
    leader = {"name": "a-1", "labels": {"app": "a"}, "cpu": 2, "annotations": {DO_NOT_DISRUPT: "2h"}}
    store = filled(
        node("n", "large", pods=[{**leader, "started": ago(hours=1)}, follower], claim=DRIFTED),
        node("m", "huge", pods=[{"name": "k-1", "cpu": 1, "annotations": KEPT}]),
    )
    idle = Idle()
    moments = [NOW, NOW + timedelta(minutes=1), NOW + timedelta(minutes=62)]
    expect_same_as_fresh(controller(store, idle), idle, moments, lambda: None)


def test_a_drift_refusal_ends_when_a_budget_keeps_the_pod_that_found_no_place() -> None:
    nowhere = {"name": "b-1", "labels": {"app": "b"}, "cpu": 1, "selector": {"no": "such"}}
    store = filled(
        node("n", "large", pods=[{"name": "a-1", "cpu": 2, "annotations": KEPT}, nowhere], claim=DRIFTED),
        node("m", "huge", pods=[{"name": "k-1", "cpu": 1, "annotations": KEPT}]),
    )
    idle = Idle()
    budget = pdb("b", {"app": "b"}, allowed=0, max_unavailable=0)
    moments = [NOW, NOW + timedelta(minutes=1)]
    expect_same_as_fresh(controller(store, idle), idle, moments, lambda: store.pdbs.put(budget))


def test_a_refusal_ends_when_a_host_port_is_let_go() -> None:
    store = filled(
        node("c", "tiny", pods=[{"name": "x-1", "cpu": "500m", "ports": [80]}]),
        node(
            "m",
            "huge",
            pods=[{"name": "k-1", "cpu": "60", "annotations": KEPT}, {"name": "p-1", "cpu": "500m", "ports": [80]}],
        ),
    )
    idle = Idle()

    def replace_the_pod() -> None:
        store.pods.remove("default/p-1")
        store.pods.put(pod("q-1", cpu="500m", node="m"))

    moments = [NOW, NOW + timedelta(seconds=10)]
    expect_same_as_fresh(controller(store, idle), idle, moments, replace_the_pod)


def test_waiting_pods_are_put_back_when_a_pass_fails() -> None:
    store = filled(node("a", "small", pods=[{"cpu": "100m"}]))
    store.pods.put(pod("waits", cpu="100m", memory="10Mi"))
    made = controller(store, Idle())
    before = shared_columns(made)

    def fail() -> None:
        with kept(made) as context:
            assert context.pending == {"default/waits"}
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert shared_columns(made) == before
