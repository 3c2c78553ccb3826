"""A command whose pods go to the replacement of another one: nothing of it goes before that is there."""

from datetime import timedelta

from msgspec.structs import replace
from tests.execution.runs import SETTINGS, Run, advanced, leftovers, small_world
from tests.execution.world import START, World

from karpool.cluster.daemons import daemons
from karpool.disruption.command import Cause, Command, Method, Move, Replacement
from karpool.execution.actions import DeleteClaim
from karpool.execution.start import start_command
from karpool.execution.state import ExecutionState
from karpool.execution.tickets import COMMAND, awaited_nodes, coming_replacements, ticket_of
from karpool.model.requirements import Requirements

SECOND = timedelta(seconds=1)
NEW = Replacement("default", Requirements(), ("m6i.xlarge",), "on-demand", (), 0.1)


def moves(world: World, leaving: str, target: str | int) -> tuple[Move, ...]:
    pods = [pod for pod in world.pods.values() if pod.spec.node_name == leaving and not pod.is_daemon]
    return tuple(Move(pod.key, leaving, target) for pod in pods)


def begun(world: World, command: Command, coming: dict[str, str] | None = None) -> None:
    objects = world.objects()
    running = daemons(objects.daemon_sets, objects.pods)
    world.execute(start_command(command, objects, world.now, SETTINGS, running, coming=coming))


def two_commands(*, launches: bool = True) -> tuple[World, Run, str]:
    """Node a is replaced, and the pods of node b go to what replaces it."""
    world = small_world(launches=launches)
    first = Command(Method.SINGLE_NODE, Cause.UNDERUTILIZED, ("a",), (NEW,), moves(world, "a", 0))
    begun(world, first)
    (new,) = [name for name in world.claims if name not in "abc"]
    second = Command(Method.SINGLE_NODE, Cause.UNDERUTILIZED, ("b",), moves=moves(world, "b", new))
    begun(world, second, {new: new})
    return world, Run(world), new


def test_nodes_stay_until_the_replacement_of_another_command_is_there() -> None:
    world, run, new = two_commands()
    ticket = ticket_of(world.claims["b"])
    assert ticket is not None
    assert (ticket.replacements, ticket.awaits) == ((), (new,))
    assert coming_replacements(world.objects()) == {new: new}
    run.reconcile()
    assert not any(isinstance(action, DeleteClaim) for action in world.done)
    run.until_quiet()
    assert leftovers(world) == []
    assert not {"a", "b"} & set(world.claims)
    assert coming_replacements(world.objects()) == {}


def test_a_replacement_that_another_command_waits_for_is_not_disrupted_itself() -> None:
    world, run, new = two_commands()
    while not world.claims[new].is_true("Initialized"):
        world.pass_time(world.now + SECOND)
        run.reconcile()
    # The command that launched it is gone without a trace.
    annotations = {key: value for key, value in world.claims["a"].metadata.annotations.items() if key != COMMAND}
    metadata = replace(world.claims["a"].metadata, annotations=annotations)
    world.claims["a"] = replace(world.claims["a"], metadata=metadata)
    assert world.claims[new].status.node_name in awaited_nodes(world.objects())


def test_a_command_is_taken_back_when_what_it_waits_for_is_gone() -> None:
    world, run, new = two_commands(launches=False)
    world.pass_time(START + timedelta(minutes=11))
    run.until_quiet()
    assert new not in world.claims
    assert {"a", "b"} <= set(world.claims)
    assert leftovers(world) == []


def test_a_rollback_spares_a_replacement_that_pods_of_another_command_are_on_their_way_to() -> None:
    world, _, new = two_commands(launches=False)
    waiting = ticket_of(world.claims["b"])
    assert waiting is not None
    world.apply(replace(waiting, committed=True).on("b"))
    world.pass_time(START + timedelta(minutes=11))
    _, actions = advanced(world.objects(), ExecutionState(), world.now)
    assert new not in [action.name for action in actions if isinstance(action, DeleteClaim)]
