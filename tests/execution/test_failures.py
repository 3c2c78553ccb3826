"""What is told and remembered of commands that fail, and what a brake does to those under way."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.execution.runs import SETTINGS, Run, advanced, delete_command, leftovers, replace_command, small_world
from tests.execution.test_commands import kinds, replacement_of, started
from tests.execution.world import START, World
from tests.factories import pod

from karpool.disruption.brakes.failures import FailureCause, failed_command
from karpool.disruption.brakes.ledger import ledger_of
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.disruption.command import Command
from karpool.execution.actions import Action, DeleteClaim
from karpool.execution.advance import advance
from karpool.execution.fresh_facts import FreshNode
from karpool.execution.state import ExecutionState, RefusedAction, RolledBack
from karpool.execution.tickets import COMMAND

PAUSE = Stop("Paused", "is paused", "NodePool default", "default", halts=True)


def halted(world: World, state: ExecutionState | None = None) -> tuple[ExecutionState, tuple[Action, ...]]:
    """A pass while the pool is paused."""
    return advance(
        world.objects(),
        state or ExecutionState(),
        world.now,
        settings=SETTINGS,
        pods_on=lambda name: [pod for pod in world.pods.values() if pod.spec.node_name == name],
        pdbs=PdbLimits(()),
        everywhere=world.pods.values,
        halting=lambda pool: PAUSE if pool == "default" else None,
        facts={
            node.name: FreshNode(node, tuple(pod for pod in world.pods.values() if pod.spec.node_name == node.name))
            for node in world.nodes.values()
        },
    )


def test_a_failure_is_told_once_however_long_the_rollback_takes() -> None:
    world, run = started(replace_command, launches=False)
    world.pass_time(START + timedelta(minutes=11))
    told = []
    for _ in range(6):
        run.reconcile()
        told += run.state.rolled_back
        world.pass_time(world.now + timedelta(seconds=1))
    assert [entry.failure.cause for entry in told] == [FailureCause.TIMED_OUT]
    assert leftovers(world) == []
    for name in "ab":
        known = failed_command(world.claims[name])
        assert known is not None
        assert (known.cause, known.tries, known.message[:15]) == ("TimedOut", 1, "it was not done")


def test_a_process_that_forgot_everything_does_not_tell_it_again() -> None:
    world = small_world(launches=False)
    run = Run(world, forgetful=True)
    run.start(replace_command(world))
    world.pass_time(START + timedelta(minutes=11))
    told = []
    for _ in range(6):
        run.reconcile()
        told += run.state.rolled_back
    assert len(told) == 1


def test_a_replacement_that_was_refused_ends_the_command_at_once_and_says_what_was_said() -> None:
    world, _ = started(replace_command)
    name = replacement_of(world)
    del world.claims[name]
    state = ExecutionState(refused={name: RefusedAction("exceeded quota", final=True)})
    state, actions = advanced(world.objects(), state, world.now)
    world.execute(actions)
    assert [entry.failure.message for entry in state.rolled_back] == [
        f"its replacement {name} was refused: exceeded quota"
    ]
    assert [entry.failure.cause for entry in state.rolled_back] == [FailureCause.REPLACEMENT_REFUSED]
    assert leftovers(world) == []


def test_a_replacement_that_may_have_been_created_is_waited_for() -> None:
    world, _ = started(replace_command)
    name = replacement_of(world)
    claim = world.claims.pop(name)
    state = ExecutionState(refused={name: RefusedAction("the server failed", final=False)})
    state, actions = advanced(world.objects(), state, world.now)
    assert kinds(actions) == []
    world.pass_time(START + timedelta(seconds=5))
    failed, _ = advanced(world.objects(), state, world.now)
    assert failed.rolled_back[0].failure.message.endswith("could not be created: the server failed")
    world.claims[name] = claim
    assert advanced(world.objects(), state, world.now)[0].rolled_back == ()


def test_a_pause_rolls_back_what_has_not_begun_to_delete() -> None:
    world, _ = started(replace_command)
    state, told = ExecutionState(), []
    for _ in range(10):
        state, actions = halted(world, state)
        told += state.rolled_back
        world.execute(actions)
        world.pass_time(world.now + timedelta(seconds=30))
    assert [(entry.failure.cause, entry.failure.message) for entry in told] == [
        ("Stopped", "Paused: NodePool default is paused")
    ]
    assert sorted(world.claims) == ["a", "b", "c"]
    assert leftovers(world) == []


def committed(make: Callable[[World], Command]) -> World:
    """A world in which a command has committed and nothing is deleted yet."""
    world, run = started(make)
    for _ in range(100):
        if any("committed" in claim.metadata.annotations.get(COMMAND, "") for claim in world.claims.values()):
            break
        run.reconcile()
        world.pass_time(world.now + timedelta(seconds=1))
    assert not any(claim.terminating for claim in world.claims.values())
    return world


def paused_for(world: World, passes: int) -> list[RolledBack]:
    """What is told of commands that fail while the pool is paused for some passes."""
    state, told = ExecutionState(), []
    for _ in range(passes):
        state, actions = halted(world, state)
        told += state.rolled_back
        world.execute(actions)
        world.pass_time(world.now + timedelta(seconds=10))
    return told


@pytest.mark.parametrize("make", [delete_command, replace_command])
def test_a_pause_rolls_back_a_committed_command_that_has_deleted_nothing(make: Callable[[World], Command]) -> None:
    world = committed(make)
    assert [entry.failure.cause for entry in paused_for(world, 10)] == ["Stopped"]
    assert sorted(world.claims) == ["a", "b", "c"]
    assert leftovers(world) == []
    assert ledger_of(world.others.node_pools[0]) == ()


def test_a_replacement_that_pods_run_on_stays_when_a_committed_command_is_rolled_back() -> None:
    world = committed(replace_command)
    name = replacement_of(world)
    other = pod("early", node=name, created=world.now)
    world.pods[other.key] = other
    paused_for(world, 10)
    assert sorted(world.claims) == sorted(["a", "b", "c", name])
    assert leftovers(world) == []


def test_a_rollback_goes_on_though_the_pause_is_over_when_replacements_are_going() -> None:
    world = committed(replace_command)
    paused_for(world, 1)
    run = Run(world)
    run.until_quiet()
    assert sorted(world.claims) == ["a", "b", "c"]
    assert leftovers(world) == []


def test_a_pause_lets_a_command_finish_that_deletes_already() -> None:
    world = committed(replace_command)
    world.apply(DeleteClaim("a", world.claims["a"].metadata.uid))
    assert paused_for(world, 60) == []
    assert {"a", "b"}.isdisjoint(world.claims)
    assert leftovers(world) == []
