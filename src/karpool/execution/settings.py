"""What execution may be told to do differently."""

from dataclasses import dataclass
from datetime import timedelta

from karpool.model.labels import DISRUPTED_TAINT
from karpool.model.scheduling import Taint


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of execution; the defaults are those of a cluster that Karpool runs alone."""

    taint_key: str = DISRUPTED_TAINT
    """The key of the taint that keeps new pods off nodes that are to go."""
    terminates: bool = True
    """Whether drain and termination are ours; False where another controller ends what is deleted."""
    missing_after: timedelta = timedelta(seconds=5)
    """How long a replacement may be missing from the objects before it counts as gone."""
    shortest_timeout: timedelta = timedelta(minutes=10)
    longest_timeout: timedelta = timedelta(hours=1)
    timeout_per_node: timedelta = timedelta(milliseconds=80)
    nomination: timedelta = timedelta(seconds=20)
    """How long a node counts as expected by pods that were sent there."""

    @property
    def taint(self) -> Taint:
        """The taint of nodes that are to go."""
        return Taint(key=self.taint_key, effect="NoSchedule")
