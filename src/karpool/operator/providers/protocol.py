"""What a provider is: what can be had, who does what, and, where Karpool starts machines itself, how."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from karpool.controller.ports import CatalogSource, Duties
from karpool.execution.settings import ExecutionSettings
from karpool.kube.client import Client
from karpool.live.caches import ClusterCaches
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.operator.observed_catalog import CatalogFor
from karpool.wire.quantity import Quantity


class InsufficientCapacityError(Exception):
    """None of the machines that a claim would take can be had now; the claim is given up and its pods ask anew."""


class LaunchError(Exception):
    """A launch failed for a reason that may pass; it is tried again until the claim's time is over."""


@dataclass(frozen=True, slots=True)
class LaunchedInstance:
    """A machine that starts: what is written into its claim."""

    provider_id: str
    labels: Mapping[str, str]
    capacity: Mapping[str, Quantity]
    allocatable: Mapping[str, Quantity]


class Instances(Protocol):
    """Starts and ends machines. Every call may be repeated, by another process too, and has the effect of one."""

    async def launch(self, claim: NodeClaim) -> LaunchedInstance:
        """Start the machine of a claim; if it was started before, see to it that its node comes."""

    async def terminate(self, claim: NodeClaim) -> bool:
        """End the machine of a claim; whether it is gone."""

    async def existing(self) -> Mapping[str, str]:
        """All machines that exist and are Karpool's: the names of their claims, by provider id."""

    async def end(self, provider_id: str) -> None:
        """End a machine that no claim stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderContext:
    """What a provider may stand on. It is made before anything is read: kinds to follow are named then or never."""

    client: Client
    """Can be used once the controller runs."""
    caches: ClusterCaches
    catalog_for: CatalogFor
    execution: ExecutionSettings
    clock: Callable[[], datetime]


def _nobody_can_tell(_pool: NodePool) -> bool | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider; without `machines`, somebody else in the cluster launches what NodeClaims ask for."""

    offers: CatalogSource
    machines: Instances | None = None
    duties: Duties = field(default_factory=Duties)
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    annotated_budgets: bool = False
    """Whether budgets stand in the pool's annotation, because its own are somebody else's."""
    node_class_ready: Callable[[NodePool], bool | None] = _nobody_can_tell
    """Whether the node class of a pool can be used; None: nobody can tell."""
