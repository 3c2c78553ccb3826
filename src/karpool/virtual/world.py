"""What every part of the virtual cluster shares: the store, the event queue, the seed and the timings."""

from dataclasses import dataclass

from karpool.controller.store import ClusterStore
from karpool.virtual.curves import seconds
from karpool.virtual.event_queue import EventQueue
from karpool.virtual.random_streams import random_fraction
from karpool.virtual.scenario import Timings
from karpool.wire.duration import Duration


@dataclass(frozen=True, slots=True)
class VirtualWorld:
    store: ClusterStore
    queue: EventQueue
    seed: int
    timings: Timings

    def jittered(self, length: Duration, *concern: str) -> float:
        """A duration in seconds, a little longer or shorter, as the seed has it for a name."""
        return seconds(length) * (1.0 + self.timings.spread * (2.0 * random_fraction(self.seed, *concern) - 1.0))
