"""What commands write into the ledgers of pools: never less than they disrupt."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.execution.runs import delete_command, leftovers, small_world, start
from tests.execution.test_commands import kinds, reconcile, started
from tests.execution.world import START, World
from tests.factories import pod

from karpool.disruption.brakes.ledger import LedgerEntry, ledger_of
from karpool.disruption.brakes.short_ledgers import with_entry
from karpool.execution.start import NotStartedError

SECOND = timedelta(seconds=1)


def entries(world: World) -> tuple[LedgerEntry, ...]:
    (pool,) = world.others.node_pools
    return ledger_of(pool)


def test_a_place_is_kept_before_anything_is_marked_and_the_deletion_is_noted_with_it() -> None:
    world, run = started(delete_command)
    (kept,) = entries(world)
    assert (kept.committed, kept.nodes, kept.names) == (False, 2, "a, b")
    world.pass_time(START + 30 * SECOND)
    run.reconcile()
    (noted,) = entries(world)
    assert (noted.command, noted.committed, noted.at) == (kept.command, True, START + 30 * SECOND)
    assert noted.evictions == len([each for each in world.pods.values() if each.spec.node_name in ("a", "b")])


def test_a_commitment_whose_note_was_lost_is_noted_again() -> None:
    world, run = started(delete_command)
    run.reconcile()
    lost = replace(entries(world)[0], committed=False)
    world._note("default", lambda text: with_entry(text, lost.command, lost, START))
    assert not entries(world)[0].committed
    run.reconcile()
    assert entries(world)[0].committed


def test_whether_pods_were_well_is_judged_when_they_go() -> None:
    world, run = started(delete_command)
    key, chosen = next((key, each) for key, each in world.pods.items() if each.spec.node_name == "a")
    (ready,) = chosen.status.conditions
    bad = replace(chosen.status, conditions=(replace(ready, status="False"),))
    world.pods[key] = replace(chosen, status=bad)
    run.reconcile()
    assert [moved.unwell for moved in entries(world)[0].owners.values()] == [1]


def test_pods_of_the_same_controller_on_other_nodes_are_part_of_how_it_was_before() -> None:
    world, run = started(delete_command)
    world.pods["default/web-c1"] = pod("web-c1", node="c", ready=False)
    world.pods["default/web-c2"] = pod("web-c2", node="c")
    run.reconcile()
    assert list(entries(world)[0].owners.values()) == [(4, 1, 6)]


def test_nothing_goes_that_the_ledger_does_not_know() -> None:
    world, run = started(delete_command)
    world._note("default", lambda _: None)
    assert kinds(reconcile(world)) == ["NoteDisruption"]
    run.reconcile()
    assert entries(world)
    assert kinds(reconcile(world)) == ["NoteDisruption", "Annotate", "Annotate"]


def test_a_command_of_a_pool_that_is_gone_is_rolled_back_because_it_can_be_noted_nowhere() -> None:
    world, run = started(delete_command)
    world.others = replace(world.others, node_pools=())
    run.reconcile()
    assert leftovers(world) == []
    assert not any(claim.metadata.deletion_timestamp for claim in world.claims.values())
    (told,) = run.state.rolled_back
    assert (told.failure.cause, told.failure.message) == ("Stopped", "NodePool default is gone")


def test_a_command_of_a_pool_that_is_gone_does_not_start() -> None:
    world = small_world()
    world.others = replace(world.others, node_pools=())
    with pytest.raises(NotStartedError, match="its NodePool default does not exist, so that nothing"):
        start(world, delete_command(world))


def test_a_command_that_is_rolled_back_counts_nothing() -> None:
    world, run = started(delete_command)
    assert entries(world)
    world.pods["default/late-1"] = pod("late-1", node="a", created=START + SECOND)
    world.pass_time(START + 2 * SECOND)
    run.reconcile()
    assert entries(world) == ()


def test_an_entry_counts_as_long_as_nodes_drain() -> None:
    world, run = started(delete_command)
    run.reconcile()
    assert run.state.requeue_at is not None
    world.pass_time(START + timedelta(minutes=3))
    run.reconcile()
    (entry,) = entries(world)
    assert (entry.since, entry.at) == (START, START + timedelta(minutes=3))


def test_a_ledger_that_cannot_be_read_holds_the_command_back() -> None:
    world, _ = started(delete_command)
    world._note("default", lambda _: "?")
    assert with_entry("?", "c", None, START) == "?"
    assert kinds(reconcile(world)) == ["NoteDisruption"]
