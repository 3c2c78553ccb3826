"""Commands with several replacements: nothing goes before all of them are ready, and one that fails takes all back."""

from datetime import timedelta

import pytest
from tests.execution.runs import SETTINGS, Run, advanced, leftovers, small_world, split_command, start
from tests.execution.world import START, World

from karpool.execution.actions import Action, CreateClaim, DeleteClaim, RecordEvent
from karpool.execution.conditions import INITIALIZED
from karpool.execution.state import ExecutionState, nominate
from karpool.execution.tickets import REPLACES, nodes_in_commands, ticket_of, waiting_replacements

SECOND = timedelta(seconds=1)


def started() -> tuple[World, Run]:
    world = small_world()
    run = Run(world)
    run.start(split_command(world))
    return world, run


def new_claims(world: World) -> list[str]:
    return [name for name in world.claims if name not in "abc"]


def holding_back(world: World, name: str) -> None:
    """Let a claim's instance not be launched by itself."""
    world.due = [entry for entry in world.due if entry[2] != name]


def deleted(actions: tuple[Action, ...]) -> list[str]:
    return [action.name for action in actions if isinstance(action, DeleteClaim)]


def reconcile(world: World) -> tuple[Action, ...]:
    return advanced(world.objects(), ExecutionState(), world.now)[1]


def test_every_replacement_is_created_with_the_pods_that_it_is_for() -> None:
    world = small_world()
    created = [action.claim for action in start(world, split_command(world)) if isinstance(action, CreateClaim)]
    assert len({claim.name for claim in created}) == 3
    # Two pods, one and one, and the daemon that runs on every node; half a CPU each.
    assert [claim.spec.resources.requests["cpu"].milli for claim in created] == [1500, 1000, 1000]
    world.execute(start(world, split_command(world)))
    tickets = {ticket_of(world.claims[name]) for name in "ab"}
    (ticket,) = tickets
    assert ticket is not None
    assert ticket.replacements == tuple(claim.name for claim in created)
    assert {claim.metadata.annotations[REPLACES] for claim in created} == {ticket.id}


def test_no_node_goes_while_one_of_several_replacements_is_not_ready() -> None:
    world, run = started()
    late = new_claims(world)[1]
    holding_back(world, late)
    for _ in range(120):
        world.pass_time(world.now + SECOND)
        run.reconcile()
    ready = [name for name in new_claims(world) if world.claims[name].is_true(INITIALIZED)]
    assert ready == [name for name in new_claims(world) if name != late]
    assert {"a", "b"} <= set(world.claims)
    assert deleted(tuple(world.done)) == []
    world.later(SECOND, "launch", late)
    run.until_quiet()
    assert leftovers(world) == []
    assert not {"a", "b"} & set(world.claims)
    assert len(new_claims(world)) == 3


def test_a_ready_replacement_is_left_alone_until_the_others_are_ready() -> None:
    world, run = started()
    late = new_claims(world)[2]
    holding_back(world, late)
    for _ in range(60):
        world.pass_time(world.now + SECOND)
        run.reconcile()
    assert waiting_replacements(world.objects()) == {name for name in new_claims(world) if name != late}
    assert nodes_in_commands(world.objects()) == {"a", "b"}
    world.later(SECOND, "launch", late)
    run.until_quiet()
    assert waiting_replacements(world.objects()) == frozenset()


@pytest.mark.parametrize("number", range(3))
def test_one_replacement_that_is_deleted_takes_all_back(number: int) -> None:
    world, run = started()
    world.pass_time(START + 5 * SECOND)
    run.reconcile()
    failed = new_claims(world)[number]
    world.apply(DeleteClaim(failed, f"claim-{failed}"))
    others = sorted(name for name in new_claims(world) if name != failed)
    assert sorted(deleted(reconcile(world))) == others
    run.until_quiet()
    assert sorted(world.claims) == ["a", "b", "c"]
    assert leftovers(world) == []


def test_one_replacement_that_never_gets_ready_takes_all_back_in_time() -> None:
    world, run = started()
    late = new_claims(world)[0]
    holding_back(world, late)
    run.until_quiet()
    assert sorted(world.claims) == ["a", "b", "c"]
    assert leftovers(world) == []
    told = [action for action in world.done if isinstance(action, RecordEvent) and "rolled back" in action.message]
    assert [action.name for action in told] == ["a", "b"]
    # A claim whose launch takes too long is deleted.
    assert all(action.message.endswith(f"its replacement {late} is being deleted") for action in told)


def test_of_several_replacements_those_that_pods_use_survive_a_roll_back() -> None:
    world, run = started()
    used, *unused = new_claims(world)
    run.state = nominate(run.state, [used], START + timedelta(minutes=11), SETTINGS)
    holding_back(world, unused[0])
    world.pass_time(START + timedelta(minutes=11))
    run.until_quiet()
    assert sorted(world.claims) == sorted(["a", "b", "c", used])
    assert leftovers(world) == []
