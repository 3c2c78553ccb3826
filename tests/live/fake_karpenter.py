"""Stands for Karpenter in a trial: launches NodeClaims, and drains and terminates those that are deleted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from tests.live.trial import Trial

from karpool.controller.store import ClusterStore
from karpool.kube.errors import ConflictError, NotFoundError, TooManyRequestsError
from karpool.kube.store import Store, Versions
from karpool.live import resources as r
from karpool.model import labels as names
from karpool.model.nodepool import NodeClaim
from karpool.operator.kwok_node_class import KwokNodeClass
from karpool.operator.providers.kwok import Kwok
from karpool.wire.objects import Metadata

FINALIZER = names.TERMINATION_FINALIZER
LAUNCHED = ("Launched",)
READY = ("Launched", "Registered", "Initialized", "Consolidatable")


class FakeKarpenter:
    """Reconciles NodeClaims; its instances are Node objects."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._client = trial.client
        classes: Store[KwokNodeClass] = Store(Versions())
        classes.put(KwokNodeClass(metadata=Metadata(name="default")))
        self._machines = Kwok(trial.client, ClusterStore(), classes, trial.catalog, lambda: datetime.now(UTC))

    async def run(self) -> None:
        """Reconcile until cancelled."""
        while True:
            for claim in await self._trial.claims():
                with suppress(NotFoundError, ConflictError, TooManyRequestsError):
                    await self._reconcile(claim)
            await asyncio.sleep(0.2)

    async def _reconcile(self, claim: NodeClaim) -> None:
        if claim.metadata.deletion_timestamp is not None:
            await self._end(claim)
        elif not claim.is_true("Launched"):
            await self._launch(claim)
        elif not claim.is_true("Initialized"):
            await self._initialize(claim)

    async def _launch(self, claim: NodeClaim) -> None:
        launched = await self._machines.launch(claim)
        labels = {"labels": {**launched.labels, **claim.metadata.labels}, "finalizers": [FINALIZER]}
        await self._client.merge_patch(r.NODE_CLAIMS, claim.name, {"metadata": labels})
        status = {
            "providerID": launched.provider_id,
            "capacity": {name: str(amount) for name, amount in launched.capacity.items()},
            "allocatable": {name: str(amount) for name, amount in launched.allocatable.items()},
            "conditions": _conditions(LAUNCHED),
        }
        await self._status(claim, status)

    async def _initialize(self, claim: NodeClaim) -> None:
        node = await self._client.get(r.NODES, claim.name)
        if node.ready:
            labels = {**claim.metadata.labels, names.REGISTERED: "true", names.INITIALIZED: "true"}
            patch = {"metadata": {"labels": labels}, "spec": {"taints": None}}
            await self._client.merge_patch(r.NODES, node.name, patch)
            await self._status(claim, {"nodeName": node.name, "conditions": _conditions(READY)})

    async def _end(self, claim: NodeClaim) -> None:
        left = [pod for pod in await self._trial.pods() if pod.spec.node_name == claim.name]
        for pod in left:
            await self._client.evict(pod.metadata.namespace, pod.name, pod.metadata.uid)
        if not left:
            with suppress(NotFoundError):
                await self._client.delete(r.NODES, claim.name)
            await self._client.merge_patch(r.NODE_CLAIMS, claim.name, {"metadata": {"finalizers": None}})

    async def _status(self, claim: NodeClaim, status: dict[str, Any]) -> None:
        await self._client.merge_patch(r.NODE_CLAIMS, claim.name, {"status": status}, subresource="status")


@asynccontextmanager
async def karpenter(trial: Trial) -> AsyncIterator[None]:
    """Karpenter works while the block lasts."""
    task = asyncio.create_task(FakeKarpenter(trial).run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _conditions(types: tuple[str, ...]) -> list[dict[str, str]]:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return [
        {"type": name, "status": "True", "reason": name, "message": "", "lastTransitionTime": now} for name in types
    ]
