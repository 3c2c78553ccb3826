"""The policies where a provider has none of its own: a node that is down, or that its agents say is broken."""

from typing import Final

from karpool.disruption.repair.policies import RepairPolicies, RepairPolicy
from karpool.wire.duration import parse_duration

_PATIENCE: Final = parse_duration("30m")
_DRAIN: Final = parse_duration("5m")
_AGENT_CONDITIONS: Final = ("ContainerRuntimeReady", "KernelReady", "NetworkingReady", "StorageReady")
"""As the node monitoring agent of EKS writes them; where nobody does, they are never seen."""

DEFAULT_POLICIES: Final = RepairPolicies.checked(
    [
        RepairPolicy(
            condition_type="Ready",
            condition_status="False",
            toleration_duration=_PATIENCE,
            termination_grace_period=_DRAIN,
        ),
        RepairPolicy(
            condition_type="Ready",
            condition_status="Unknown",
            reason_regex=".*",
            toleration_duration=_PATIENCE,
            termination_grace_period=_DRAIN,
        ),
        *(
            RepairPolicy(
                condition_type=kind,
                condition_status="False",
                reason_regex=".*",
                toleration_duration=_PATIENCE,
                termination_grace_period=_DRAIN,
            )
            for kind in _AGENT_CONDITIONS
        ),
        RepairPolicy(
            condition_type="AcceleratedHardwareReady",
            condition_status="False",
            reason_regex=".*",
            toleration_duration=parse_duration("10m"),
            termination_grace_period=_DRAIN,
        ),
    ]
)
