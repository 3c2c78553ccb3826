"""Carries out the compactor's actions on Kubernetes, each as `compaction.actions` describes it; or only says them."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

import structlog
from msgspec.structs import replace as changed

from karpool.compaction.actions import CompactionAction, SetNodeState, node_of
from karpool.compaction.marks import ANNOTATION, decode_mark
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
AT_ONCE: Final = 20
"""How many nodes may be worked on at the same time."""


class CompactionActuator(Protocol):
    """Somebody who does what was decided."""

    def seen(self, objects: Objects) -> Objects:
        """The cluster as it is to be decided on."""

    async def execute(self, actions: Sequence[CompactionAction]) -> bool:
        """Do it; whether all of it worked."""


class _ChangedError(Exception):
    """A node is not any more what the decision rested on."""


class ApiCompactionActuator:
    """Writes to the cluster: the actions of one node in their order, different nodes side by side."""

    def __init__(
        self, client: Client, nodes: CacheFeed[Node], recorder: EventSink, *, on_done: Callable[[], None] = lambda: None
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._recorder = recorder
        self._on_done = on_done
        """Called after each action, whatever came of it."""
        self._slots = asyncio.Semaphore(AT_ONCE)

    def seen(self, objects: Objects) -> Objects:
        """The cluster as it is."""
        return objects

    async def execute(self, actions: Sequence[CompactionAction]) -> bool:
        """Do it; whether all of it worked. What did not is decided on anew."""
        lanes: dict[str, list[CompactionAction]] = {}
        for action in actions:
            lanes.setdefault(node_of(action), []).append(action)
        return all(await asyncio.gather(*map(self._lane, lanes.values())))

    async def _lane(self, actions: Sequence[CompactionAction]) -> bool:
        worked = True
        async with self._slots:
            for action in actions:
                try:
                    await self._do(action)
                except _ChangedError:
                    _log.info("the node changed meanwhile; it is looked at again", node=node_of(action))
                    return False
                except ApiError as error:
                    _log.warning("action failed", **_said(action), error=str(error))
                    worked = False
                    if isinstance(action, SetNodeState):
                        return False  # what comes after rests on it
                finally:
                    self._on_done()
        return worked

    async def _do(self, action: CompactionAction) -> None:
        if isinstance(action, EvictPod | DeletePod):
            _log.debug("asks a pod to leave", **_said(action))
        match action:
            case SetNodeState():
                await self._set_state(action)
            case EvictPod():
                await evict(self._client, action.key, action.uid)
            case DeletePod():
                await delete(self._client, PODS, action.key, action.uid)
            case RecordEvent():
                _log.info("event", **_said(action))
                self._recorder.record(action)

    async def _set_state(self, action: SetNodeState) -> None:
        """Write annotation and cordon, if nobody else has changed either; other changes are no obstacle."""
        patch: dict[str, Any] = {"metadata": {"annotations": {action.annotation: action.value}}}
        if action.unschedulable is not None:
            patch["spec"] = {"unschedulable": action.unschedulable}

        async def write() -> Node:
            version = await self._unchanged(action)
            return await self._client.merge_patch(NODES, action.node, patch, resource_version=version)

        with suppress(NotFoundError):
            self._nodes.record_write(await retry_on_conflict(write))
            _log.info("wrote a node's state", **_said(action))

    async def _unchanged(self, action: SetNodeState) -> str:
        """The version of a node that still is what the decision rested on."""
        held, found = self._nodes.store.get(action.node), await self._client.get(NODES, action.node)
        if held is None or _basis(held, action.annotation) != _basis(found, action.annotation):
            self._nodes.record_write(found)
            raise _ChangedError
        return found.metadata.resource_version


class _Remembered(NamedTuple):
    before: str | None
    after: str


class DryRunActuator:
    """Writes nothing and says what it would do, once; marks are remembered here, so that some day a node is chosen."""

    def __init__(self) -> None:
        self._marks: dict[str, _Remembered] = {}
        self._annotations: dict[str, str | None] = {}
        self._told: set[tuple[str, ...]] = set()

    def seen(self, objects: Objects) -> Objects:
        """The cluster as it would be with the marks, where nobody else has written one."""
        self._annotations = {node.name: node.metadata.annotations.get(ANNOTATION) for node in objects.nodes}
        self._marks = {
            name: mark for name, mark in self._marks.items() if self._annotations.get(name, "gone") == mark.before
        }
        return changed(objects, nodes=tuple(map(self._marked, objects.nodes)))

    async def execute(self, actions: Sequence[CompactionAction]) -> bool:
        """Say what was not said last time."""
        told = set()
        for action in actions:
            if isinstance(action, SetNodeState) and action.unschedulable is None:
                self._marks[action.node] = _Remembered(self._annotations[action.node], action.value)
            said = _said(action)
            told.add(key := tuple(str(said[name]) for name in said if name != "state"))
            if key not in self._told:
                _log.info("would be done", **said)
        self._told = told
        return True

    def _marked(self, node: Node) -> Node:
        mark, metadata = self._marks.get(node.name), node.metadata
        if mark is None:
            return node
        return changed(node, metadata=changed(metadata, annotations={**metadata.annotations, ANNOTATION: mark.after}))


def _basis(node: Node, annotation: str) -> tuple[object, ...]:
    """What a change of a node's state rests on."""
    metadata = node.metadata
    leaving = metadata.deletion_timestamp is not None
    return metadata.uid, metadata.annotations.get(annotation), node.spec.unschedulable, leaving


def _said(action: CompactionAction) -> dict[str, Any]:
    """An action as fields of the log."""
    match action:
        case SetNodeState():
            return {"action": _change(action), "node": action.node, "state": action.value}
        case EvictPod() | DeletePod():
            what = "evict" if isinstance(action, EvictPod) else "delete"
            return {"action": what, "node": action.node, "pod": action.key}
        case RecordEvent():
            return {"action": "tell", "node": action.name, "reason": action.reason, "message": action.message}


def _change(action: SetNodeState) -> str:
    """What becomes of a node with a new state, in a word."""
    if action.unschedulable is not None:
        return "cordon" if action.unschedulable else "uncordon"
    mark = decode_mark({ANNOTATION: action.value})
    if mark.in_progress:
        return "carry on" if mark.drained_at is None else "drained"
    return "mark" if mark.marked else "unmark"
