"""What lives on from pass to pass is what a fresh look at the cluster finds, whatever happened in between."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.controller.restless import Restless
from tests.disruption.scenarios import CATALOG, NOW, POOL, node
from tests.examples import examples
from tests.factories import pdb

from karpool.cluster.snapshot import Snapshot
from karpool.controller.cluster_state import ClusterState
from karpool.controller.controller import Controller
from karpool.controller.store import ClusterStore
from karpool.disruption.candidates import consolidation_refusal, emptiness_refusal, refusal
from karpool.disruption.command import Cause, Command
from karpool.disruption.context import DecisionContext
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.refusal_cache import RefusalCache
from karpool.disruption.settings import DisruptionSettings, Order
from karpool.execution.settings import ExecutionSettings
from karpool.execution.state import nominate, nominated
from karpool.execution.tickets import nodes_in_commands
from karpool.model.nodepool import NodeClaim
from karpool.operator.pdb_source import StorePdbSource
from karpool.packing.engine import Engine
from karpool.packing.options import Options
from karpool.provisioning.inflight import as_launched, with_claims_launched

QUESTIONS = ((refusal, False), (refusal, True), (emptiness_refusal,), (consolidation_refusal,))


class Idle:
    """A clock that forgets what is to be done, hands that do nothing, and a provider."""

    catalog = CATALOG

    def __init__(self) -> None:
        self.moment = NOW

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
        settings=DisruptionSettings(order=order),
        options=Options(),
    )
    made.start()
    return made


def fresh(world: Restless, made: Controller) -> DecisionContext:
    assert made.session is not None
    objects = with_claims_launched(world.store.objects(), CATALOG)
    snapshot = Snapshot(objects)
    return DecisionContext(
        snapshot,
        CATALOG,
        Engine(snapshot, CATALOG, Options()),
        now=world.now,
        settings=made.settings,
        in_command=nodes_in_commands(objects),
        nominated=nominated(made.session.state, world.store.claims.get, world.now),
    )


def outline(commands: Sequence[Command]) -> list[Any]:
    return [(command.method, command.nodes, len(command.replacements), command.savings) for command in commands]


def view(context: DecisionContext) -> dict[str, Any]:
    """Everything that decisions ask about each node alone, and what budgets of pools allow."""
    snapshot, found = context.snapshot, {}
    for name, row in snapshot.nodes.rows.items():
        one = context.candidate(row)
        pods, movers = (sorted(snapshot.pods.get(at).key for at in rows) for rows in (one.pods, one.movers))
        answers = [context.once(row, *question) for question in QUESTIONS]
        drift = context.drift(one)
        windows = int(context.closed[row]), int(context.unready[row])
        costs = round(one.cost, 9), round(one.eviction_cost, 9), one.price
        found[name] = (pods, movers, costs, one.pool_name, windows, answers, None if drift is None else drift.reason)
    allowed = {(name, cause): context.allowance(pool, cause) for name, pool in context.pools.items() for cause in Cause}
    return {"nodes": found, "allowed": allowed, "expected": (context.pending, context.leaving)}


@examples(25)
@given(st.randoms(use_true_random=False), st.sampled_from(Order))
def test_a_situation_that_lives_on_is_the_same_as_a_fresh_one(chance: Random, order: Order) -> None:
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
        anew = fresh(world, made)
        expected = DecisionPass(anew, RefusalCache()).decide()
        with made._disruption._context() as living:
            assert outline(DecisionPass(living, made._disruption._recalled(living)).decide()) == outline(expected)
            assert view(living) == view(anew)


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
        with made._disruption._context() as living:
            found = living.once(living.snapshot.nodes.rows["a"], *QUESTIONS[0])
            assert (None if found is None else found.code) == (None if allowed else ReasonCode.POD_DISRUPTION_BUDGET)
