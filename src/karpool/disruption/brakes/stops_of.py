"""All brakes, asked one after the other."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from karpool.disruption.brakes.answers import nobody_answers
from karpool.disruption.brakes.cool_down import after_failed_launch, after_replacement, after_scale_up
from karpool.disruption.brakes.failed_commands import backs_off
from karpool.disruption.brakes.harm import harms
from karpool.disruption.brakes.health import unhealthy
from karpool.disruption.brakes.opt_in import not_opted_in
from karpool.disruption.brakes.pause import pauses
from karpool.disruption.brakes.rates import rate_stops
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stop import Stop, Stops
from karpool.model.objects import Objects

Brake = Callable[[Objects, BrakeSettings, datetime], Iterable[Stop]]
"""What a brake stops, as it sees the objects of a cluster at a moment."""
BRAKES: Final[tuple[Brake, ...]] = (
    not_opted_in,
    pauses,
    harms,
    unhealthy,
    nobody_answers,
    rate_stops,
    backs_off,
    after_failed_launch,
    after_scale_up,
    after_replacement,
)
"""In the order in which a node that several of them stop names one: what a person said comes first."""
_MAY_HALT: Final = frozenset((not_opted_in, pauses, harms, unhealthy))
"""Those of them that may roll back commands under way."""


def stops_of(objects: Objects, settings: BrakeSettings, now: datetime) -> Stops:
    """Everything that stops voluntary disruption at a moment."""
    return _asked(BRAKES, objects, settings, now)


def halts_of(objects: Objects, settings: BrakeSettings, now: datetime) -> Stops:
    """At least all of it that rolls commands under way back, which takes less time to tell."""
    return _asked([brake for brake in BRAKES if brake in _MAY_HALT], objects, settings, now)


def _asked(brakes: Iterable[Brake], objects: Objects, settings: BrakeSettings, now: datetime) -> Stops:
    stops = (stop for brake in brakes for stop in brake(objects, settings, now))
    return Stops(stop for stop in stops if (stop.code, stop.object) not in settings.released)
