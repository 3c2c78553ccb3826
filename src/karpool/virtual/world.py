"""What every part of the virtual cluster shares: the store, the agenda, the seed and the timings."""

from dataclasses import dataclass

from karpool.controller.store import ClusterStore
from karpool.virtual.curves import seconds
from karpool.virtual.event_queue import EventQueue
from karpool.virtual.random_streams import share
from karpool.virtual.scenario import Timings
from karpool.wire.duration import Duration


@dataclass(frozen=True, slots=True)
class VirtualWorld:
    """The ground that all parts stand on."""

    store: ClusterStore
    queue: EventQueue
    seed: int
    timings: Timings

    def strayed(self, length: Duration, *concern: str) -> float:
        """A length of time in seconds, a little longer or shorter, as the seed has it for a name."""
        return seconds(length) * (1.0 + self.timings.spread * (2.0 * share(self.seed, *concern) - 1.0))
