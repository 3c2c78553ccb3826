"""Machines that are nothing but Node objects, for trials and tests; KWOK, or whoever keeps nodes ready, does the rest.

How well they can be had is said by annotations of the KWOKNodeClass: delays, shortages, and launches that fail.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Final

import structlog

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.controller.store import ClusterStore
from karpool.execution.conditions import REGISTERED
from karpool.kube.backoff import Backoff
from karpool.kube.client import Client
from karpool.kube.errors import ApiError, ConflictError, NotFoundError, NotLeadingError
from karpool.kube.resources import Resource
from karpool.kube.store import Store
from karpool.live.resources import NODE_CLAIMS, NODES
from karpool.model import labels as names
from karpool.model.nodepool import NodeClaim, NodePool, as_requirements
from karpool.model.requirements import Requirements
from karpool.operator.providers.protocol import (
    InsufficientCapacityError,
    LaunchedInstance,
    LaunchError,
    Provider,
    ProviderContext,
)
from karpool.provisioning.machines import choose_machine, machine_labels, starting_node, starting_taints
from karpool.provisioning.shortages import OfferingKey, obtainable, offering_key
from karpool.wire.duration import Duration, parse_duration
from karpool.wire.objects import Object, Wire

_log = structlog.get_logger()
DEFAULT_CATALOG: Final = "kwok"
PROVIDER: Final = "kwok://"
LAUNCH_DELAY: Final = "kwok.karpool.sh/launch-delay"
TERMINATION_DELAY: Final = "kwok.karpool.sh/termination-delay"
SHORTAGES: Final = "kwok.karpool.sh/shortages"
FAILURES: Final = "kwok.karpool.sh/failures"
REMEMBERS_SHORTAGE: Final = timedelta(minutes=3)
_CHOSEN: Final = (names.INSTANCE_TYPE, names.ZONE, names.CAPACITY_TYPE)


class KwokNodeClassSpec(Wire):
    """How long the Node of a machine takes to come."""

    node_registration_delay: Duration | None = None


class KwokNodeClass(Object):
    """The configuration of machines that are nothing but Node objects."""

    spec: KwokNodeClassSpec = KwokNodeClassSpec()


KWOK_NODE_CLASSES: Final = Resource(
    "karpenter.kwok.sh", "v1alpha1", "kwoknodeclasses", "KWOKNodeClass", namespaced=False, type=KwokNodeClass
)


@dataclass(frozen=True, slots=True)
class Conduct:
    """How the machines of a node class behave."""

    launch: float = 0.0
    registration: float = 0.0
    termination: float = 0.0
    failures: float = 0.0
    """The part of launches that fail."""
    shortages: tuple[str, ...] = ()
    """Patterns of `type/zone/capacity type` that cannot be had."""

    @classmethod
    def of(cls, node_class: KwokNodeClass) -> "Conduct":
        """What a node class asks for; what cannot be read is left at nothing."""
        said = node_class.metadata.annotations
        delay = node_class.spec.node_registration_delay
        return cls(
            launch=_seconds(said.get(LAUNCH_DELAY, "")),
            registration=0.0 if delay is None or delay.delta is None else delay.delta.total_seconds(),
            termination=_seconds(said.get(TERMINATION_DELAY, "")),
            failures=_share(said.get(FAILURES, "")),
            shortages=tuple(part.strip() for part in said.get(SHORTAGES, "").split(",") if part.strip()),
        )

    def is_short(self, key: OfferingKey) -> bool:
        """Whether an offering cannot be had."""
        return any(fnmatchcase("/".join(key), pattern) for pattern in self.shortages)


class Kwok:
    """Makes Node objects for claims, and says what can be had."""

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
        self._all = catalog
        self._clock = clock
        self._short: dict[OfferingKey, datetime] = {}
        self._obtainable: tuple[frozenset[OfferingKey], Catalog] = (frozenset(), catalog)
        self._registering: dict[str, asyncio.Task[None]] = {}
        self._ending: dict[str, float] = {}
        self._attempts: dict[str, int] = {}

    @property
    def catalog(self) -> Catalog:
        """The catalogue without what turned out to be short a moment ago."""
        now = self._clock()
        short = frozenset(key for key, until in self._short.items() if until > now)
        if short != self._obtainable[0]:
            self._obtainable = (short, obtainable(self._all, short, {}))
        return self._obtainable[1]

    # -- launch --------------------------------------------------------------------------------------------------

    async def launch(self, claim: NodeClaim) -> LaunchedInstance:
        """Choose a machine; its Node comes after the delay of its class."""
        conduct = self._conduct(claim)
        await asyncio.sleep(conduct.launch)
        self._perhaps_fail(claim, conduct)
        wanted = _narrowed(claim)

        def is_short(entry: InstanceType, offering: Offering) -> bool:
            key = offering_key(entry, offering)
            if conduct.is_short(key):
                self._short[key] = self._clock() + REMEMBERS_SHORTAGE
                return True
            return False

        found = choose_machine(self._all, wanted, is_short)
        if found is None:
            raise InsufficientCapacityError("no machine that the NodeClaim would take can be had now")
        entry, offering = found
        labels = machine_labels(entry, offering, self._all.price(offering) or 0.0, wanted)
        if claim.name not in self._registering:
            self._registering[claim.name] = asyncio.create_task(self._register(claim, entry, labels, conduct))
        return LaunchedInstance(PROVIDER + claim.name, labels, entry.capacity, entry.allocatable)

    def _conduct(self, claim: NodeClaim) -> Conduct:
        name = claim.spec.node_class_ref.name
        node_class = self._classes.get(name)
        if node_class is None:
            raise LaunchError(f"there is no KWOKNodeClass {name}")
        return Conduct.of(node_class)

    def _perhaps_fail(self, claim: NodeClaim, conduct: Conduct) -> None:
        """Fail as often as the class asks for, the same claim at the same attempts each time."""
        attempt = self._attempts[claim.name] = self._attempts.get(claim.name, 0) + 1
        digest = hashlib.blake2b(f"{claim.name} {attempt}".encode(), digest_size=8).digest()
        if int.from_bytes(digest) / 2**64 < conduct.failures:
            raise LaunchError(f"the launch failed, as {FAILURES} asks for")

    async def _register(
        self, claim: NodeClaim, entry: InstanceType, labels: Mapping[str, str], conduct: Conduct
    ) -> None:
        """Create the Node after its delay, and try until that worked."""
        backoff = Backoff(first=0.1, most=10.0)
        try:
            await asyncio.sleep(conduct.registration)
            while True:
                if await self._has_come(claim, entry, labels):
                    return
                await asyncio.sleep(backoff.next())
        finally:
            self._registering.pop(claim.name, None)

    async def _has_come(self, claim: NodeClaim, entry: InstanceType, labels: Mapping[str, str]) -> bool:
        """Whether the Node is there, or is not wanted any more."""
        try:
            # Whoever reads the claim again does not depend on how far the own caches are.
            current = await self._client.get(NODE_CLAIMS, claim.name)
            if current.metadata.uid != claim.metadata.uid or current.metadata.deletion_timestamp is not None:
                return True
            if not current.status.provider_id:
                # A Node that comes before its claim says whose it is seems to belong to nobody.
                return False
            node = starting_node(
                claim.name,
                PROVIDER + claim.name,
                entry,
                labels={**labels, **current.metadata.labels},
                taints=starting_taints(current),
            )
            await self._client.create(NODES, node)
        except (NotFoundError, NotLeadingError):
            return True
        except ConflictError as error:
            return error.already_exists
        except ApiError as error:
            _log.warning("a node could not be made; it is tried again", claim=claim.name, error=str(error))
            return False
        return True

    # -- end -----------------------------------------------------------------------------------------------------

    async def terminate(self, claim: NodeClaim) -> bool:
        """End a machine; it is gone after the delay of its class."""
        pending = self._registering.pop(claim.name, None)
        if pending is not None:
            pending.cancel()
        node_class = self._classes.get(claim.spec.node_class_ref.name)
        delay = Conduct.of(node_class).termination if node_class is not None else 0.0
        now = asyncio.get_running_loop().time()
        if now < self._ending.setdefault(claim.name, now + delay):
            return False
        del self._ending[claim.name]
        return True

    async def existing(self) -> Mapping[str, str]:
        """The machines of all nodes that were made here, and of all claims whose node is still to come."""
        # Asked of the API server: a watch that hangs must not make machines seem gone.
        nodes = (await self._client.list(NODES, label_selector=names.NODEPOOL)).items
        ids = {node.spec.provider_id for node in nodes if node.spec.provider_id.startswith(PROVIDER)}
        ids |= {PROVIDER + claim.name for claim in self._store.claims if not claim.is_true(REGISTERED)}
        return {provider_id: provider_id.removeprefix(PROVIDER) for provider_id in sorted(ids)}

    async def end(self, provider_id: str) -> None:
        """Delete the Node of a machine that no claim stands for."""
        for node in self._store.nodes.listed():
            if node.spec.provider_id == provider_id and node.metadata.deletion_timestamp is None:
                await self._client.delete(NODES, node.name, uid=node.metadata.uid)


def provider(ground: ProviderContext) -> Provider:
    """The provider for trials and tests."""
    classes: Store[KwokNodeClass] = Store()
    ground.caches.watch(KWOK_NODE_CLASSES, classes)
    machines = Kwok(ground.client, ground.caches.store, classes, ground.catalog_for((), ()), ground.clock)

    def class_ready(pool: NodePool) -> bool | None:
        ref = pool.spec.template.spec.node_class_ref
        if ref.kind != KWOK_NODE_CLASSES.kind:
            return None
        held = classes.get(ref.name)
        return held is not None and held.metadata.deletion_timestamp is None

    return Provider(offers=machines, machines=machines, execution=ground.execution, node_class_ready=class_ready)


def _narrowed(claim: NodeClaim) -> Requirements:
    """What a claim asks for; once a machine was chosen, that one only."""
    wanted = as_requirements(claim.spec.requirements)
    if not claim.status.provider_id:
        return wanted
    held = claim.metadata.labels
    return wanted.intersect(Requirements.of_labels({key: held[key] for key in _CHOSEN if key in held}))


def _seconds(text: str) -> float:
    try:
        length = parse_duration(text).delta if text else None
    except ValueError:
        return 0.0
    return 0.0 if length is None else length.total_seconds()


def _share(text: str) -> float:
    try:
        return min(1.0, max(0.0, float(text))) if text else 0.0
    except ValueError:
        return 0.0
