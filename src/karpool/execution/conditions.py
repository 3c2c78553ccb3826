"""Names of a NodeClaim's conditions and of the reasons written into them."""

from typing import Final

from karpool.model.nodepool import NodeClaim
from karpool.wire.objects import condition

LAUNCHED: Final = "Launched"
REGISTERED: Final = "Registered"
INITIALIZED: Final = "Initialized"
READY: Final = "Ready"
DRIFTED: Final = "Drifted"
DISRUPTION_REASON: Final = "DisruptionReason"
DRAINED: Final = "Drained"
VOLUMES_DETACHED: Final = "VolumesDetached"
INSTANCE_TERMINATING: Final = "InstanceTerminating"

REBOOT_REQUESTED: Final = "RebootRequested"
REBOOT_ISSUED: Final = "RebootIssued"
REBOOT_SUCCEEDED: Final = "RebootSucceeded"
REBOOT_FAILED: Final = "RebootFailed"
REBOOT_STOPPED: Final = "RebootStopped"
TERMINATING: Final = "Terminating"
TERMINATED: Final = "Terminated"


def instance_terminated(claim: NodeClaim) -> bool:
    current = condition(claim.status.conditions, INSTANCE_TERMINATING)
    return current is not None and current.status == "True" and current.reason == TERMINATED
