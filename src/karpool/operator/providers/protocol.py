"""What a provider is: the catalogue, the duties of Karpool and, if Karpool launches instances itself, how."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

from karpool.controller.ports import CatalogSource, Duties
from karpool.disruption.repair.policies import RepairPolicies
from karpool.execution.settings import ExecutionSettings
from karpool.kube.client import Client
from karpool.live.caches import ClusterCaches
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.operator.observed_catalog import CatalogFor
from karpool.wire.objects import Condition
from karpool.wire.quantity import Quantity


class InsufficientCapacityError(Exception):
    """No instance that a claim accepts is available; the claim is deleted, and its pods are provisioned again."""


class NodeClassNotReadyError(Exception):
    """The node class of a claim cannot be used; the claim is deleted, and its pods are provisioned again."""


class LaunchError(Exception):
    """A launch failed for a temporary reason; it is retried until the claim times out."""


class RebootError(Exception):
    """An instance cannot be rebooted, now or later; its node is given up."""


@dataclass(frozen=True, slots=True)
class LaunchedInstance:
    provider_id: str
    labels: Mapping[str, str]
    capacity: Mapping[str, Quantity]
    allocatable: Mapping[str, Quantity]
    written: Callable[[], None] = lambda: None
    """Called when its claim says all this."""


class Instances(Protocol):
    """Launches and terminates instances; a call that is repeated, by another process too, has the effect of one."""

    async def launch(self, claim: NodeClaim) -> LaunchedInstance:
        """Launch the instance of a claim; if it was launched before, make sure that its node registers."""

    async def terminate(self, claim: NodeClaim) -> bool:
        """Terminate the instance of a claim; whether it is gone."""

    async def list(self) -> Mapping[str, str]:
        """All instances that Karpool launched and that exist: the names of their claims, by provider id."""

    async def terminate_orphan(self, provider_id: str) -> None:
        """Terminate an instance without a claim."""


@runtime_checkable
class Reboots(Protocol):
    """What instances may offer besides: rebooting them."""

    async def reboot(self, claim: NodeClaim, operation: str) -> None:
        """Reboot the instance of a claim; asked again with the same operation, it is the same reboot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderContext:
    """What a provider gets; it is made before the caches start, so kinds to watch are named in `provider` or never."""

    client: Client
    """Works once the controller runs."""
    caches: ClusterCaches
    catalog_for: CatalogFor
    execution: ExecutionSettings
    clock: Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider; without `instances`, another controller in the cluster launches NodeClaims."""

    catalog_source: CatalogSource
    instances: Instances | None = None
    duties: Duties = field(default_factory=Duties)
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    repair_policies: RepairPolicies | None = None
    """Which nodes of this provider are broken, and what helps; None: the provider has no opinion."""
    annotated_budgets: bool = False
    """Whether budgets are read from the pool's annotation, because another controller reads its spec."""
    node_class_ready: Callable[[NodePool], Condition | bool | None] = lambda _pool: None
    """Whether the node class of a pool can be used, or the condition that says so; None: unknown."""
    upkeep: Callable[[], Awaitable[None]] | None = None
    """What the provider does every second while it leads and may write."""
