from karpool.disruption.command import Cause, Command, Method, Replacement
from karpool.model.requirements import Requirements


def new(*types: str) -> Replacement:
    return Replacement("default", Requirements(), types, "on-demand", (), 1.0)


def command(*replacements: Replacement) -> Command:
    return Command(Method.MULTI_NODE, Cause.UNDERUTILIZED, ("a", "b"), replacements, price=4.5)


def test_new_nodes_are_named_by_their_cheapest_types_and_equal_ones_counted() -> None:
    assert command(new("m"), new("s", "m"), new("m", "l")).launched == "2 m, s"


def test_a_command_saves_what_all_of_its_replacements_leave() -> None:
    assert command(new("m"), new("m"), new("s")).savings == 1.5
