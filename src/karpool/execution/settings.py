"""Settings of execution."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from karpool.disruption.brakes.readiness import Pacing
from karpool.model.labels import DISRUPTED_TAINT
from karpool.model.nodepool import NodeClaim
from karpool.model.scheduling import Taint

LAUNCH_TIMEOUT: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class ExecutionSettings:
    """Taint, duties and timeouts; the defaults suit a cluster without another node controller."""

    node_classes: frozenset[str] = frozenset()
    """The kinds of node classes that are launched here; a NodeClaim of another is left to others. None: all."""
    taint_key: str = DISRUPTED_TAINT
    """The key of the taint that keeps new pods off nodes to be disrupted."""
    terminates: bool = True
    """Whether Karpool drains and terminates deleted nodes; False where another controller does."""
    missing_after: timedelta = timedelta(seconds=5)
    """How long a replacement may be missing from the objects before it counts as gone."""
    shortest_timeout: timedelta = timedelta(minutes=10)
    longest_timeout: timedelta = timedelta(hours=1)
    timeout_per_node: timedelta = timedelta(milliseconds=80)
    nomination: timedelta = timedelta(seconds=20)
    """How long a node is kept for pods that were nominated to it."""
    launch_timeout: timedelta = LAUNCH_TIMEOUT
    """When a claim that does not launch is deleted."""
    registration_timeout: timedelta = timedelta(minutes=15)
    """When a launched claim whose node does not register is deleted."""
    shortest_drain: timedelta = timedelta(seconds=5)
    """The least duration of a drain, for pods that were bound just before the taint."""
    instance_retry: timedelta = timedelta(seconds=5)
    """How often the provider is asked whether a terminating instance is gone."""
    failures_forgotten_after: timedelta = timedelta(hours=2)
    """When a failed command no longer counts, so that the next one is the first of a row; as the brakes have it."""
    pacing: Pacing = field(default_factory=Pacing)
    """How many pods may be away while nodes drain; as the brakes have it."""

    awaits_devices: bool = False
    """Whether a node is initialized only when the devices are published that its pods count on."""

    def ours(self, claim: NodeClaim | None) -> bool:
        """Whether a claim, or a node without one, is looked after here."""
        kinds = self.node_classes
        return claim is None or not kinds or claim.unreadable != "" or claim.spec.node_class_ref.kind in kinds

    @property
    def taint(self) -> Taint:
        return Taint(key=self.taint_key, effect="NoSchedule")
