"""What execution may be told to do differently."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from karpool.model.labels import DISRUPTED_TAINT
from karpool.model.scheduling import Taint

LAUNCH_TIMEOUT: Final = timedelta(minutes=5)
REGISTRATION_TIMEOUT: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class ExecutionSettings:
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
    launch_timeout: timedelta = LAUNCH_TIMEOUT
    """When a claim that does not launch is given up."""
    registration_timeout: timedelta = REGISTRATION_TIMEOUT
    """When a launched claim whose node does not come is given up."""
    shortest_drain: timedelta = timedelta(seconds=5)
    """How long a drain takes at least, for pods that raced the taint."""
    instance_retry: timedelta = timedelta(seconds=5)
    """How often the provider is asked whether a machine that is to end is gone."""

    @property
    def taint(self) -> Taint:
        """The taint of nodes that are to go."""
        return Taint(key=self.taint_key, effect="NoSchedule")
