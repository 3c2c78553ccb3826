"""Whatever happens to the process: a command ends finished or rolled back, and leaves nothing behind."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.execution.runs import (
    Crash,
    Run,
    delete_command,
    leftovers,
    never,
    replace_command,
    small_world,
    split_command,
)
from tests.execution.world import World

from karpool.disruption.command import Command
from karpool.execution.actions import CreateClaim

Make = Callable[[World], Command]
COMMANDS = pytest.mark.parametrize("make", [delete_command, replace_command, split_command])


def check_end(run: Run) -> str:
    """Check that nothing is left over and no budget was exceeded; how the command ended."""
    world = run.world
    assert leftovers(world) == []
    assert run.least_healthy["default/web"] >= 3
    left = {"a", "b"} & set(world.claims)
    assert left in (set(), {"a", "b"}), "a command takes all its nodes or none"
    assert set(world.nodes) == set(world.claims)
    new = set(world.claims) - {"a", "b", "c"}
    made = {action.claim.name for action in world.done if isinstance(action, CreateClaim)}
    if left:
        assert not new, "a roll-back takes every replacement along"
        return "rolled back"
    assert new == made, "a finished command keeps its replacements"
    assert sum(pod.active and bool(pod.spec.node_name) for pod in world.pods.values() if not pod.is_daemon) == 4
    return "finished"


def run_with(make: Make, *, forgetful: bool = False, crash: Crash = never, fail: Crash = never) -> Run:
    world = small_world()
    run = Run(world, forgetful=forgetful, crash=crash, fail=fail)
    run.start(make(world))
    run.until_quiet()
    return run


@COMMANDS
def test_a_command_runs_to_its_end(make: Make) -> None:
    assert check_end(run_with(make)) == "finished"


@COMMANDS
def test_a_process_without_memory_comes_to_the_same_end(make: Make) -> None:
    assert check_end(run_with(make, forgetful=True)) == "finished"


@pytest.mark.slow
@COMMANDS
def test_a_cut_between_any_two_actions_leaves_nothing_behind(make: Make) -> None:
    total = run_with(make).count
    ends = [check_end(run_with(make, crash=lambda n, at=at: n == at)) for at in range(1, total + 1)]
    # Only a command that had not begun completely is given up.
    assert ends == sorted(ends, reverse=True)
    assert ends[-1] == "finished"
    assert ends.count("rolled back") <= 1 + 1 + 2 + 2 + 2 + 2


@pytest.mark.slow
@COMMANDS
def test_an_action_that_fails_leaves_nothing_behind(make: Make) -> None:
    total = run_with(make).count
    for at in range(1, total + 1):
        check_end(run_with(make, fail=lambda n, at=at: n == at))


@COMMANDS
@pytest.mark.parametrize("every", [2, 3, 5])
def test_actions_that_fail_often_leave_nothing_behind(make: Make, every: int) -> None:
    check_end(run_with(make, fail=lambda n: n % every == 0))


@pytest.mark.slow
@COMMANDS
def test_two_cuts_leave_nothing_behind(make: Make) -> None:
    total = run_with(make).count
    for first in range(1, total + 1, 3):
        for second in (first + 1, first + 2, first + 5):
            check_end(run_with(make, crash=lambda n, cuts=(first, second): n in cuts))


@COMMANDS
@pytest.mark.parametrize("every", [2, 3, 5])
def test_a_process_that_keeps_crashing_comes_to_an_end(make: Make, every: int) -> None:
    check_end(run_with(make, crash=lambda n: n % every == 0))


@pytest.mark.parametrize("make", [replace_command, split_command])
def test_a_cut_roll_back_is_taken_up_again(make: Make) -> None:
    def run(crash: Crash) -> Run:
        world = small_world()
        going = Run(world, crash=crash)
        going.start(make(world))
        world.pass_time(world.now + timedelta(seconds=10))
        going.reconcile()
        for name in [name for name in world.claims if name not in "abc"][:1]:
            del world.claims[name]
        going.until_quiet()
        return going

    total = run(lambda _: False).count
    assert total > 10
    for at in range(1, total + 1):
        assert check_end(run(lambda n, at=at: n == at)) == "rolled back"


@pytest.mark.parametrize("make", [replace_command, split_command])
def test_a_launch_that_never_comes_ends_in_a_roll_back(make: Make) -> None:
    world = small_world(launches=False)
    run = Run(world)
    run.start(make(world))
    run.until_quiet()
    assert check_end(run) == "rolled back"
    assert run.world.refused == 0
