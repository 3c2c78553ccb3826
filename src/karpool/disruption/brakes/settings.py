"""What a user may choose about brakes."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from karpool.disruption.brakes.readiness import Pacing

_MOST_DOUBLINGS: Final = 20
_LAUNCHES_IN_A_ROW: Final = 5
_AFTER_DROP: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class BrakeSettings:
    """Settings of all brakes; the defaults are those of the command line."""

    pause_namespace: str = "karpool"
    """Where the ConfigMap is that pauses everything."""
    opt_in: bool = False
    """Whether another controller has a say in the pools, so that they have to ask for Karpool."""
    launched_by_others: bool = False
    """Whether another controller launches and terminates NodeClaims."""
    answered_within: timedelta = timedelta(seconds=20)
    """How soon that controller has to be heard of for a NodeClaim that was created or deleted; 0: never."""
    all_pools: bool = False
    """Act on all pools, whether they ask or not."""
    most_unready_percent: float = 45.0
    """Of all nodes, and of those of a zone: when more are unready, nothing is disrupted."""
    unready_nodes_allowed: int = 3
    """So many nodes may be unready whatever their part of all nodes is."""
    least_nodes_of_zone: int = 2
    """A zone with fewer nodes is not looked at alone."""
    after_failure: timedelta = timedelta(minutes=3)
    """How long the nodes and the pool of a failed command are left alone; twice as long after each further failure."""
    longest_after_failure: timedelta = timedelta(hours=1)
    """The longest that failures in a row come to."""
    most_nodes_per_hour: int | None = None
    """How many nodes may be disrupted within an hour, in all; None: any number."""
    most_evictions_per_hour: int | None = None
    """How many pods may be evicted within an hour, in all; None: any number."""
    harm_after: timedelta = timedelta(minutes=10)
    """When a pod that was moved and does not run counts as harmed, and one whose eviction is refused."""
    harmed_pods: int = 3
    """So many harmed pods stop their pool; 0: the harm check is off."""
    harmed_pods_everywhere: int = 10
    """So many harmed pods in all stop everything, and so do two pools that are stopped."""
    harm_cool_down: timedelta = timedelta(minutes=15)
    """How long all pods have to be well before a pool goes on."""
    longest_harm: timedelta = timedelta(hours=24)
    """When a pool goes on though harmed pods are not well: people have had their time to look."""
    after_scale_up: timedelta = timedelta(0)
    """How long a pool is left alone after it grew for pods that waited; `consolidateAfter` is that for single nodes."""
    after_replacement: timedelta = timedelta(minutes=10)
    """Beside another controller: how long a node that a command launched is kept while pods are on it."""
    after_failed_launch: timedelta = timedelta(minutes=3)
    """How long a pool is left alone after a launch of it failed; five times as long while launches go on failing."""
    pacing: Pacing = field(default_factory=Pacing)
    """How many pods that were moved may be away while nodes drain."""

    released: frozenset[tuple[str, str]] = frozenset()
    """For questions only: brakes that hold nothing, by their code and the object that is to blame."""

    @property
    def opted_in_only(self) -> bool:
        """Whether only pools that ask for it are Karpool's business."""
        return self.opt_in and not self.all_pools

    def after_failures(self, last: datetime, tries: int) -> datetime:
        """Until when to wait after so many failures in a row, the last of them at a moment."""
        return last + min(self.longest_after_failure, _doubled(self.after_failure, tries))

    @property
    def failures_forgotten_after(self) -> timedelta:
        """When a failed command no longer counts: not before its nodes have had a chance to do better."""
        return max(timedelta(hours=2), 2 * self.longest_after_failure)

    def after_drops(self, last: datetime, tries: int) -> datetime:
        """Until when to wait after so many dropped commands in a row: they changed nothing, and wait no longer."""
        return last + min(self.after_failure, _doubled(_AFTER_DROP, tries))

    @property
    def drops_forgotten_after(self) -> timedelta:
        """When a dropped command no longer counts."""
        return max(timedelta(minutes=10), 2 * self.after_failure)

    @property
    def failed_launches_apart(self) -> timedelta:
        """Failed launches that are less than this apart are one row."""
        return max(timedelta(hours=1), 2 * self.after_failed_launch)

    def after_failed_launches(self, last: datetime, since: datetime) -> datetime:
        """Until when to wait after launches that failed in a row, since a moment."""
        return min(last + self.after_failed_launch, since + _LAUNCHES_IN_A_ROW * self.after_failed_launch)


def _doubled(first: timedelta, tries: int) -> timedelta:
    return first * (1 << min(max(tries - 1, 0), _MOST_DOUBLINGS))
