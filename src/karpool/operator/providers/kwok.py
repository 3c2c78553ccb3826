"""Instances that are nothing but Node objects, for trials and tests; KWOK keeps the nodes ready.

Annotations of the KWOKNodeClass set delays, shortages and failing launches.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from msgspec import structs

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.controller.store import ClusterStore
from karpool.disruption.repair.policies import RepairAction, RepairPolicies, RepairPolicy
from karpool.execution.conditions import REGISTERED
from karpool.kube.backoff import Backoff
from karpool.kube.client import Client
from karpool.kube.errors import ApiError, ConflictError, NotFoundError, NotLeadingError
from karpool.kube.store import Store
from karpool.live.resources import NODE_CLAIMS, NODES
from karpool.model import labels as names
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.requirements import Requirements
from karpool.operator.kwok_node_class import (
    FAILURES,
    KWOK_NODE_CLASSES,
    LAUNCH_DELAY,
    TERMINATION_DELAY,
    KwokNodeClass,
    NodeClassStatus,
    readiness,
)
from karpool.operator.overlaid_catalog import OverlaidCatalog
from karpool.operator.providers.protocol import (
    InsufficientCapacityError,
    LaunchedInstance,
    LaunchError,
    NodeClassNotReadyError,
    Provider,
    ProviderContext,
    RebootError,
)
from karpool.provisioning.instances import choose_offering, instance_labels, starting_node, starting_taints
from karpool.provisioning.shortages import OfferingKey, obtainable, offering_key
from karpool.wire.duration import parse_duration
from karpool.wire.objects import Condition

_log = structlog.get_logger()
DEFAULT_CATALOG: Final = "kwok"
PROVIDER: Final = "kwok://"
SHORTAGE_MEMORY: Final = timedelta(minutes=3)
_LONGEST_WRITE: Final = 10.0
"""After so many seconds the API server is asked what a claim says."""
_KEPT_BY_KWOK: Final = {"kwok.x-k8s.io/node": "fake"}
"""Label and annotation of the nodes that KWOK keeps ready unless it is told otherwise."""
_CHOSEN: Final = (names.INSTANCE_TYPE, names.ZONE, names.CAPACITY_TYPE)

REPAIR_POLICIES: Final = RepairPolicies.checked(
    RepairPolicy(
        condition_type=kind,
        condition_status=status,
        reason_regex=regex,
        toleration_duration=parse_duration(tolerated),
        termination_grace_period=parse_duration(grace),
        action=action,
    )
    for kind, status, regex, tolerated, grace, action in (
        ("Ready", "False", "", "10m", "0s", RepairAction.REPLACE),
        ("Ready", "Unknown", ".*", "10m", "0s", RepairAction.REPLACE),
        ("KWOKUnhealthy", "True", ".*", "30s", "45s", RepairAction.REPLACE),
        ("KWOKRebootRequired", "True", ".*", "30s", "1m", RepairAction.REBOOT),
    )
)


class Kwok:
    def __init__(
        self,
        client: Client,
        store: ClusterStore,
        classes: Store[KwokNodeClass],
        catalog: Catalog,
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._store = store
        self._classes = classes
        self._plain = catalog
        self._overlaid = OverlaidCatalog(store)
        self._clock = clock
        self._short: Mapping[OfferingKey, datetime] = {}
        self._obtainable = (frozenset[OfferingKey](), catalog, catalog)
        """What is short, the catalogue with it, and without."""
        self._registering: dict[str, asyncio.Task[None]] = {}
        self._terminating: dict[str, float] = {}
        self._attempts: dict[str, int] = {}

    @property
    def catalog(self) -> Catalog:
        """The catalogue without the offerings that were short a moment ago."""
        now = self._clock()
        short = frozenset(key for key, until in self._short.items() if until > now)
        whole = self._all
        if short != self._obtainable[0] or whole is not self._obtainable[1]:
            self._obtainable = (short, whole, obtainable(whole, short, {}))
        return self._obtainable[2]

    @property
    def _all(self) -> Catalog:
        """The catalogue as NodeOverlays change it, where they count."""
        return self._overlaid.of(self._plain)

    async def launch(self, claim: NodeClaim) -> LaunchedInstance:
        """Choose an instance; its Node is created after the delay of its class."""
        node_class = await self._class_of(claim)
        await asyncio.sleep(node_class.delay(LAUNCH_DELAY))
        self._fail_sometimes(claim, node_class.failures)
        requirements = _requirements(claim)

        def is_short(entry: InstanceType, offering: Offering) -> bool:
            key = offering_key(entry, offering)
            if node_class.is_short(key):
                self._remember_shortage(key)
                return True
            return False

        everything = self._all
        choice = choose_offering(everything, requirements, is_short, claim.spec.resources.requests, claim.pool)
        if choice is None:
            raise InsufficientCapacityError("no instance type that the NodeClaim accepts is available")
        entry, offering = choice
        labels = instance_labels(entry, offering, everything.price(offering), requirements)
        written = asyncio.Event()
        if claim.name not in self._registering:
            work = self._register(claim, entry, labels, node_class, written)
            self._registering[claim.name] = asyncio.create_task(work)
        return LaunchedInstance(PROVIDER + claim.name, labels, entry.capacity, entry.allocatable, written.set)

    async def _class_of(self, claim: NodeClaim) -> KwokNodeClass:
        """The node class of a claim; one that is not cached is read, because it may be as new as the claim."""
        ref = claim.spec.node_class_ref
        node_class = self._classes.get(ref.name)
        if node_class is None:
            with suppress(NotFoundError):
                node_class = await self._client.get(KWOK_NODE_CLASSES, ref.name)
        if claim.status.provider_id:
            return node_class or KwokNodeClass()  # what was launched runs, whatever became of its class
        ready = readiness(ref, node_class)
        if node_class is None or ready.status != "True":
            raise NodeClassNotReadyError(ready.message)
        return node_class

    def _remember_shortage(self, key: OfferingKey) -> None:
        """Remember a shortage in a new mapping: another thread may be reading the last one."""
        now = self._clock()
        lasting = {other: until for other, until in self._short.items() if until > now}
        self._short = {**lasting, key: now + SHORTAGE_MEMORY}

    def _fail_sometimes(self, claim: NodeClaim, ratio: float) -> None:
        """Fail as often as the class asks for, the same claim at the same attempts each time."""
        attempt = self._attempts[claim.name] = self._attempts.get(claim.name, 0) + 1
        digest = hashlib.blake2b(f"{claim.name} {attempt}".encode(), digest_size=8).digest()
        if int.from_bytes(digest) / 2**64 < ratio:
            raise LaunchError(f"the launch failed, as {FAILURES} asks for")

    async def _register(
        self,
        claim: NodeClaim,
        entry: InstanceType,
        labels: Mapping[str, str],
        node_class: KwokNodeClass,
        written: asyncio.Event,
    ) -> None:
        """Create the Node, once the claim has a provider id; `written` says so, unless that could not be written."""
        backoff = Backoff(first=0.1, most=10.0)
        try:
            await asyncio.sleep(node_class.registration_delay)
            with suppress(TimeoutError):
                await asyncio.wait_for(written.wait(), _LONGEST_WRITE)
            while True:
                if await self._node_created(claim, entry, labels):
                    return
                await asyncio.sleep(backoff.next())
        finally:
            self._registering.pop(claim.name, None)

    async def _node_created(self, claim: NodeClaim, entry: InstanceType, labels: Mapping[str, str]) -> bool:
        """Whether the Node exists, or is no longer needed."""
        try:
            # Read from the API server: the cache may lag behind.
            current = await self._client.get(NODE_CLAIMS, claim.name)
            if current.metadata.uid != claim.metadata.uid or current.terminating:
                return True
            if not current.status.provider_id:
                # A Node that exists before its claim has a provider id looks unmanaged.
                return False
            node = starting_node(
                claim.name,
                PROVIDER + claim.name,
                entry,
                labels={**labels, **current.metadata.labels, **_KEPT_BY_KWOK},
                taints=starting_taints(current),
            )
            kept = structs.replace(node.metadata, annotations=_KEPT_BY_KWOK)
            await self._client.create(NODES, structs.replace(node, metadata=kept))
        except (NotFoundError, NotLeadingError):
            return True
        except ConflictError as error:
            return error.already_exists
        except ApiError as error:
            _log.warning("node creation failed; retrying", claim=claim.name, error=str(error))
            return False
        except Exception:  # noqa: BLE001
            # Nobody waits for this task, so nobody else would see the error.
            _log.exception("node creation failed; retrying", claim=claim.name)
            return False
        return True

    async def terminate(self, claim: NodeClaim) -> bool:
        """Terminate an instance; it is gone after the delay of its class."""
        pending = self._registering.pop(claim.name, None)
        if pending is not None:
            pending.cancel()
        node_class = self._classes.get(claim.spec.node_class_ref.name)
        delay = node_class.delay(TERMINATION_DELAY) if node_class is not None else 0.0
        now = asyncio.get_running_loop().time()
        if now < self._terminating.setdefault(claim.name, now + delay):
            return False
        del self._terminating[claim.name]
        return True

    async def reboot(self, claim: NodeClaim, operation: str) -> None:
        """Give the Node of a claim another boot id; the same for the same operation."""
        name = claim.status.node_name
        patch = {"status": {"nodeInfo": {"bootID": f"kwok-{operation}"}}}
        try:
            await self._client.merge_patch(NODES, name, patch, subresource="status")
        except NotFoundError:
            raise RebootError(f"there is no Node {name}") from None

    async def list(self) -> Mapping[str, str]:
        """The instances of all nodes that were created here, and of all claims whose node is not registered yet."""
        # Read from the API server: a watch that hangs must not make instances seem gone.
        nodes = (await self._client.list(NODES)).items
        claimed = {claim.status.provider_id for claim in self._store.claims}
        ids = {node.spec.provider_id for node in nodes if node.spec.provider_id in claimed or _was_launched(node)}
        ids = {provider_id for provider_id in ids if provider_id.startswith(PROVIDER)}
        ids |= {PROVIDER + claim.name for claim in self._store.claims if not claim.is_true(REGISTERED)}
        return {provider_id: provider_id.removeprefix(PROVIDER) for provider_id in sorted(ids)}

    async def terminate_orphan(self, provider_id: str) -> None:
        for node in self._store.nodes.listed():
            if node.spec.provider_id == provider_id and not node.terminating:
                await self._client.delete(NODES, node.name, uid=node.metadata.uid)


def provider(context: ProviderContext) -> Provider:
    classes: Store[KwokNodeClass] = Store()
    context.caches.watch(KWOK_NODE_CLASSES, classes)
    kwok = Kwok(context.client, context.caches.store, classes, context.catalog_for((), (), ()), context.clock)

    def class_ready(pool: NodePool) -> Condition | None:
        ref = pool.spec.template.spec.node_class_ref
        return readiness(ref, classes.get(ref.name)) if ref.kind == KWOK_NODE_CLASSES.kind else None

    return Provider(
        catalog_source=kwok,
        instances=kwok,
        execution=replace(context.execution, node_classes=frozenset({KWOK_NODE_CLASSES.kind})),
        repair_policies=REPAIR_POLICIES,
        node_class_ready=class_ready,
        upkeep=NodeClassStatus(context.client, classes, context.clock).reconcile,
    )


def _was_launched(node: Node) -> bool:
    """Whether a node is one of a NodeClaim, even of one that is gone; others may use kwok for nodes of their own."""
    owners = {owner.kind for owner in node.metadata.owner_references}
    return names.NODEPOOL in node.metadata.labels or NODE_CLAIMS.kind in owners


def _requirements(claim: NodeClaim) -> Requirements:
    """The requirements of a claim; once an instance was chosen, of that one only."""
    requirements = claim.node_requirements
    if not claim.status.provider_id:
        return requirements
    labels = claim.metadata.labels
    return requirements.intersect(Requirements.of_labels({key: labels[key] for key in _CHOSEN if key in labels}))
