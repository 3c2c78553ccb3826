"""Carries out the actions of `compaction` on an API server, or only logs them in a dry run."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import structlog
from msgspec.structs import replace as changed

from karpool.compaction.actions import CompactionAction, SetNodeState, node_of
from karpool.compaction.marks import ANNOTATION, encode_mark
from karpool.execution.actions import DeletePod, EvictPod, RecordEvent
from karpool.kube.cache import CacheFeed
from karpool.kube.client import Client
from karpool.kube.errors import ApiError, NotFoundError
from karpool.live.resources import NODES, PODS
from karpool.live.writer import delete, evict, retry_on_conflict
from karpool.model.node import Node
from karpool.model.objects import Objects
from karpool.observability.events import EventSink

_log = structlog.get_logger()
CONCURRENT_NODES: Final = 20
"""How many nodes are written at the same time."""


class _ChangedError(Exception):
    """A node has changed since the decision."""


class ApiCompactionActuator:
    """Writes to the cluster: the actions of one node in order, different nodes concurrently."""

    def __init__(
        self, client: Client, nodes: CacheFeed[Node], recorder: EventSink, *, on_done: Callable[[], None] = lambda: None
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._recorder = recorder
        self._on_done = on_done
        """Called after each action, successful or not."""
        self._slots = asyncio.Semaphore(CONCURRENT_NODES)

    def with_marks(self, objects: Objects) -> Objects:
        return objects

    async def execute(self, actions: Sequence[CompactionAction]) -> bool:
        """Carry out actions; whether all succeeded. The next step decides again on those that failed."""
        by_node: dict[str, list[CompactionAction]] = {}
        for action in actions:
            by_node.setdefault(node_of(action), []).append(action)
        return all(await asyncio.gather(*map(self._execute_on_node, by_node.values())))

    async def _execute_on_node(self, actions: Sequence[CompactionAction]) -> bool:
        succeeded = True
        async with self._slots:
            for action in actions:
                try:
                    await self._do(action)
                except _ChangedError:
                    _log.info("node changed meanwhile; retrying", node=node_of(action))
                    return False
                except ApiError as error:
                    _log.warning("action failed", **_fields(action), error=str(error))
                    succeeded = False
                    if isinstance(action, SetNodeState):
                        return False  # the other actions depend on it
                finally:
                    self._on_done()
        return succeeded

    async def _do(self, action: CompactionAction) -> None:
        if isinstance(action, EvictPod | DeletePod):
            _log.debug("removing pod", **_fields(action))
        match action:
            case SetNodeState():
                await self._set_state(action)
            case EvictPod():
                await evict(self._client, action)
            case DeletePod():
                await delete(self._client, PODS, action.key, action.uid)
            case RecordEvent():
                _log.info("recording event", **_fields(action))
                self._recorder.record(action)

    async def _set_state(self, action: SetNodeState) -> None:
        """Write annotation and cordon, unless one of them was changed since the decision."""
        patch: dict[str, Any] = {"metadata": {"annotations": {ANNOTATION: encode_mark(action.mark)}}}
        if action.unschedulable is not None:
            patch["spec"] = {"unschedulable": action.unschedulable}

        async def write() -> Node:
            version = await self._unchanged(action)
            return await self._client.merge_patch(NODES, action.node, patch, resource_version=version)

        with suppress(NotFoundError):
            self._nodes.record_write(await retry_on_conflict(write))
            _log.info("node state written", **_fields(action))

    async def _unchanged(self, action: SetNodeState) -> str:
        """The version of a node, if it has not changed since the decision."""
        cached, current = self._nodes.store.get(action.node), await self._client.get(NODES, action.node)
        if cached is None or _decided_on(cached) != _decided_on(current):
            self._nodes.record_write(current)
            raise _ChangedError
        return current.metadata.resource_version


class _DryRunMark(NamedTuple):
    before: str | None
    after: str


class DryRunActuator:
    """Writes nothing, and logs each action once; it keeps marks in memory, so that nodes are chosen later on."""

    def __init__(self) -> None:
        self._marks: dict[str, _DryRunMark] = {}
        self._annotations: dict[str, str | None] = {}
        self._logged: set[tuple[str, ...]] = set()

    def with_marks(self, objects: Objects) -> Objects:
        """The cluster with the marks in memory, except on nodes whose annotation has changed."""
        self._annotations = {node.name: node.metadata.annotations.get(ANNOTATION) for node in objects.nodes}
        self._marks = {
            name: mark for name, mark in self._marks.items() if self._annotations.get(name, "gone") == mark.before
        }
        return changed(objects, nodes=tuple(map(self._marked, objects.nodes)))

    async def execute(self, actions: Sequence[CompactionAction]) -> bool:
        logged = set()
        for action in actions:
            if isinstance(action, SetNodeState) and action.unschedulable is None:
                self._marks[action.node] = _DryRunMark(self._annotations[action.node], encode_mark(action.mark))
            fields = _fields(action)
            logged.add(key := tuple(str(value) for name, value in fields.items() if name != "state"))
            if key not in self._logged:
                _log.info("action skipped in a dry run", **fields)
        self._logged = logged
        return True

    def _marked(self, node: Node) -> Node:
        mark, metadata = self._marks.get(node.name), node.metadata
        if mark is None:
            return node
        return changed(node, metadata=changed(metadata, annotations={**metadata.annotations, ANNOTATION: mark.after}))


def _decided_on(node: Node) -> tuple[object, ...]:
    metadata = node.metadata
    return metadata.uid, metadata.annotations.get(ANNOTATION), node.spec.unschedulable, node.terminating


def _fields(action: CompactionAction) -> dict[str, Any]:
    match action:
        case SetNodeState():
            return {"action": _change(action), "node": action.node, "state": encode_mark(action.mark)}
        case EvictPod() | DeletePod():
            what = "evict" if isinstance(action, EvictPod) else "delete"
            return {"action": what, "node": action.node, "pod": action.key}
        case RecordEvent():
            return {"action": "tell", "node": action.name, "reason": action.reason, "message": action.message}


def _change(action: SetNodeState) -> str:
    if action.unschedulable is not None:
        return "cordon" if action.unschedulable else "uncordon"
    if action.mark.in_progress:
        return "carry on" if action.mark.drained_at is None else "drained"
    return "mark" if action.mark.marked else "unmark"
