"""After every event of any history the kept state equals a snapshot built anew, and so does every decision."""

from datetime import timedelta
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.cluster.semantics import semantics
from tests.controller.test_memo import Idle, expected_launch
from tests.controller.watch_history import WatchHistory
from tests.disruption.scenarios import CATALOG
from tests.examples import examples
from tests.inflight import with_claims_launched

from karpool.cluster.constraints import Preferences
from karpool.cluster.snapshot import Snapshot
from karpool.controller.cluster_state import ClusterState
from karpool.controller.controller import Controller
from karpool.controller.store import ClusterStore
from karpool.disruption.decide import Decision, decide
from karpool.disruption.memo import Memo
from karpool.disruption.settings import PREFIX, DisruptionSettings
from karpool.operator.pdb_source import StorePdbSource
from karpool.packing.engine import Engine
from karpool.packing.options import Options
from karpool.virtual.facts import VirtualFacts

STORIES, EVENTS = 25, 60
"""A seed is not shrunk: a history of other events would say nothing."""


def built_anew(world: WatchHistory, preferences: Preferences) -> Snapshot:
    return Snapshot(with_claims_launched(world.store.objects(), CATALOG), preferences=preferences)


def started(world: WatchHistory, state: ClusterState, preferences: Preferences) -> Controller:
    controller = Controller(
        world.store,
        Idle(),
        state,
        Idle(),
        catalog_source=Idle(),
        pdb_source=StorePdbSource(world.store),
        facts=VirtualFacts(world.store),
        settings=DisruptionSettings(search=PREFIX),
        options=Options(preferences=preferences),
    )
    controller.start()
    return controller


def decisions(decision: Decision) -> Any:
    commands = [(command.method, command.nodes, command.moves, command.savings) for command in decision.commands]
    return commands, decision.reasons


def expect_same_decisions(controller: Controller, world: WatchHistory, memo: Memo | None) -> Memo:
    """A pass on the kept state, with what earlier ones remember, decides as one that starts from nothing."""
    assert controller.session is not None
    policies = controller._disruption.policies(world.now)
    kept = decide(controller.session.engine(), policies, world.now, memo, explain=lambda _: True)
    engine = Engine(built_anew(world, controller.options.preferences), CATALOG, controller.options)
    assert decisions(kept) == decisions(decide(engine, policies, world.now, explain=lambda _: True))
    return kept.memo


def expect_same_columns(state: ClusterState, anew: Snapshot) -> None:
    kept, expected = semantics(state.current(), anew), semantics(anew, anew)
    for part, column in expected.items():
        assert kept[part] == column, part


def copied(store: ClusterStore) -> ClusterStore:
    """A store of its own with the nodes and claims of another."""
    copy = ClusterStore()
    for node in store.nodes:
        copy.nodes.put(node)
    for claim in store.claims:
        copy.claims.put(claim)
    return copy


def open_nodes(state: ClusterState) -> set[str]:
    return {state.snapshot.nodes.get(row).name for row in np.flatnonzero(state.open).tolist()}


def expect_open(state: ClusterState, world: WatchHistory) -> None:
    """Which nodes take pods, and which claim is behind which node, as a state made anew has it."""
    anew = ClusterState(copied(world.store), expected_launch)
    rows, others = state.snapshot.nodes.rows, anew.snapshot.nodes.rows
    assert {name: state.open[row] for name, row in rows.items()} == {
        name: anew.open[row] for name, row in others.items()
    }
    assert not state.open[np.setdiff1d(np.arange(len(state.open)), list(rows.values()))].any()
    for node in world.store.nodes:
        assert state.claim_of(node) is anew.claim_of(node)
    for claim in world.store.claims:
        assert state.node_name(claim) == anew.node_name(claim)


@pytest.mark.slow
@settings(examples(STORIES), phases=(Phase.generate,))
@given(st.integers(0, 2**32), st.sampled_from(Preferences))
def test_the_kept_state_equals_a_snapshot_built_anew(seed: int, preferences: Preferences) -> None:
    chance = Random(seed)
    world = WatchHistory(chance)
    state = ClusterState(world.store, expected_launch, preferences=preferences)
    controller, memo = started(world, state, preferences), None
    for _ in range(EVENTS):
        world.step()
        world.now += timedelta(seconds=chance.choice([0, 5, 60]))
        expect_same_columns(state, built_anew(world, preferences))
        if chance.random() < 0.1:
            memo = expect_same_decisions(controller, world, memo)
            expect_open(state, world)


@pytest.mark.slow
@settings(examples(5), phases=(Phase.generate,))
@given(st.integers(0, 2**32))
def test_a_state_that_forgot_what_is_dead_equals_a_snapshot_built_anew(seed: int) -> None:
    """Jobs with labels, rules and volumes of their own come and go between other events."""
    chance = Random(seed)
    world = WatchHistory(chance)
    state = ClusterState(world.store, expected_launch)
    state.spare = 0
    controller, memo = started(world, state, Preferences.RESPECT), None
    lives, before = 0, state.current()
    for _ in range(12):
        world.pass_jobs(30)
        world.step()
        world.now += timedelta(seconds=chance.choice([0, 5, 60]))
        lives += state.current() is not before
        before = state.current()
        expect_same_columns(state, built_anew(world, Preferences.RESPECT))
        memo = expect_same_decisions(controller, world, memo)
    assert lives >= 3
    assert before.interned <= 3 * built_anew(world, Preferences.RESPECT).interned
