"""All brakes together."""

import inspect

from karpool.disruption.brakes import stops_of


def test_the_brakes_that_are_asked_about_commands_under_way_are_those_that_may_halt_them() -> None:
    may_halt = {brake for brake in stops_of.BRAKES if "halts=True" in inspect.getsource(brake)}
    assert may_halt == stops_of._MAY_HALT
