"""What every part of the virtual cluster shares: the store, the agenda, the seed and the timings."""

from dataclasses import dataclass

from karpool.controller.store import Store
from karpool.model.duration import Duration
from karpool.virtual.agenda import Agenda
from karpool.virtual.chance import share
from karpool.virtual.curves import seconds
from karpool.virtual.scenario import Timings


@dataclass(frozen=True, slots=True)
class World:
    """The ground that all parts stand on."""

    store: Store
    agenda: Agenda
    seed: int
    timings: Timings

    def strayed(self, length: Duration, *concern: str) -> float:
        """A length of time in seconds, a little longer or shorter, as the seed has it for a name."""
        return seconds(length) * (1.0 + self.timings.spread * (2.0 * share(self.seed, *concern) - 1.0))
