"""CapacityBuffers of a live cluster: read again and again with what they refer to, and their status written.

They are few, and change seldom; so they are listed, not watched, and a cluster without the kind costs one request.
"""

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
import structlog

from karpool.controller.headroom_index import HeadroomIndex
from karpool.controller.observer import DecisionObserver
from karpool.controller.store import ClusterStore
from karpool.kube.cache import ChangeQueue
from karpool.kube.client import MERGE_PATCH, Client
from karpool.kube.errors import ApiError, ForbiddenError, NotFoundError, NotLeadingError
from karpool.kube.store import Store
from karpool.live.buffer_references import read_references
from karpool.live.resources import CAPACITY_BUFFERS
from karpool.model.headroom import Headroom
from karpool.operator.listed_objects import queue_listed
from karpool.provisioning.provision import ProvisioningResult
from karpool.wire.objects import Condition, Object, condition

_log = structlog.get_logger()
STRATEGY: Final = "buffer.x-k8s.io/active-capacity"
READY: Final = "ReadyForProvisioning"
PROVISIONING: Final = "Provisioning"
_ABSENT_SECONDS: Final = 30.0
"""How long a cluster that does not have the kind, or does not show it, is believed."""


class BufferReader:
    """Keeps buffers, and what they refer to, in a store."""

    def __init__(self, client: Client, store: ClusterStore, changes: ChangeQueue) -> None:
        self._client = client
        self._store = store
        self._changes = changes
        self._absent_until = 0.0
        self._said = ""

    async def read(self) -> None:
        """Read once; the store changes between decisions."""
        if time.monotonic() < self._absent_until:
            return
        try:
            listed = await self._client.list(CAPACITY_BUFFERS)
        except (NotFoundError, ForbiddenError) as error:
            self._absent_until = time.monotonic() + _ABSENT_SECONDS
            if isinstance(error, ForbiddenError):
                self._say(f"capacity buffers cannot be listed, and keep no room: {error.message}")
            self._queue({"capacity_buffers": ()})
            return
        references = await read_references(self._client, listed.items)
        if references.problems:
            self._say("; ".join(references.problems))
        self._queue({"capacity_buffers": listed.items, **references.found})

    def _say(self, problem: str) -> None:
        """Warn of a problem once, until there is another."""
        if problem != self._said:
            self._said = problem
            _log.warning("capacity buffers", problem=problem)

    def _queue(self, found: Mapping[str, tuple[Object, ...]]) -> None:
        store = self._store
        stores: dict[str, Store[Any]] = {
            # Templates before buffers, so that a new buffer finds its own.
            "pod_templates": store.pod_templates,
            "deployments": store.deployments,
            "stateful_sets": store.stateful_sets,
            "replica_sets": store.replica_sets,
            "capacity_buffers": store.buffers,
        }
        queue_listed(self._changes, stores, found)


class BufferStatusController(DecisionObserver):
    """Writes what a buffer asks for and whether there is room, where that is not what its status says."""

    def __init__(self, client: Client, headroom: HeadroomIndex, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._headroom = headroom
        self._clock = clock
        self._placed: Mapping[str, bool] = {}

    def pods_provisioned(self, result: ProvisioningResult) -> None:
        self._placed = result.headroom

    async def reconcile(self) -> None:
        """Write each status that differs; failures are logged and retried at the next call."""
        for headroom in self._headroom.buffers:
            patch = status_patch(headroom, self._placed, self._clock())
            if patch:
                await self._write(headroom, patch)

    async def _write(self, headroom: Headroom, status: dict[str, Any]) -> None:
        meta = headroom.buffer.metadata
        try:
            await self._client.raw(
                "PATCH",
                CAPACITY_BUFFERS.path(meta.namespace, meta.name, subresource="status"),
                # Of any version: nobody else writes it, and the same again changes nothing.
                body=msgspec.json.encode({"metadata": {"uid": meta.uid}, "status": status}),
                content_type=MERGE_PATCH,
            )
        except (NotFoundError, NotLeadingError):
            return
        except ApiError as error:
            _log.warning("status of a capacity buffer not written; retrying", buffer=meta.name, error=str(error))


def status_patch(headroom: Headroom, placed: Mapping[str, bool], now: datetime) -> dict[str, Any]:
    """What to write into the status of a buffer; nothing if it says so already.

    `placed`: by key of a pod of headroom, whether there was room on the nodes of the last pass.
    """
    buffer, old = headroom.buffer, headroom.buffer.status
    wanted = [Condition(READY, "True" if headroom.ready else "False", headroom.reason, headroom.message)]
    provisioning = _provisioning(headroom, placed) or condition(old.conditions, PROVISIONING)
    if provisioning is not None:
        wanted.append(provisioning)
    fields: dict[str, Any] = {
        "replicas": len(headroom.pods) if headroom.ready else None,
        "podTemplateRef": None if headroom.template is None else {"name": headroom.template.name},
        "podTemplateGeneration": None if headroom.template is None else headroom.template.metadata.generation,
        "provisioningStrategy": buffer.spec.provisioning_strategy or STRATEGY,
    }
    known = {
        "replicas": old.replicas,
        "podTemplateRef": None if old.pod_template_ref is None else {"name": old.pod_template_ref.name},
        "podTemplateGeneration": old.pod_template_generation,
        "provisioningStrategy": old.provisioning_strategy or None,
    }
    told = [_told(entry, condition(old.conditions, entry.type), now) for entry in wanted]
    if fields == known and [_said(entry) for entry in old.conditions] == [_said(entry) for entry in wanted]:
        return {}
    return {**fields, "conditions": told}


def _provisioning(headroom: Headroom, placed: Mapping[str, bool]) -> Condition | None:
    """Whether there is room; None if no pass has looked for it yet."""
    if not headroom.ready:
        return Condition(PROVISIONING, "False", "NotReadyForProvisioning", headroom.message)
    if not headroom.pods:
        return Condition(PROVISIONING, "False", "BufferEmpty", "no room is asked for")
    found = [placed.get(pod.key) for pod in headroom.pods]
    if all(found):
        return Condition(PROVISIONING, "True", "FitsExistingCapacity", f"{len(found)} pods would find a node at once")
    if None in found:
        return None
    return Condition(PROVISIONING, "False", "RequiresNewCapacity", f"{found.count(False)} pods need new nodes")


def _said(entry: Condition) -> tuple[str, ...]:
    return entry.type, entry.status, entry.reason, entry.message


def _told(entry: Condition, before: Condition | None, now: datetime) -> dict[str, Any]:
    """A condition as it is written; its time is that of the last change of its status."""
    same = before is not None and before.status == entry.status
    since = before.last_transition_time if same and before is not None else None
    return {
        "type": entry.type,
        "status": entry.status,
        "reason": entry.reason,
        "message": entry.message,
        "lastTransitionTime": (since or now).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
