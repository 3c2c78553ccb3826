"""Asks the process that works answers out: starts it, keeps its copy of the cluster up to date, and shares answers.

The same question is worked out once for all who ask it. An answer that nobody waits for any more is given up.
"""

import asyncio
import pickle
import struct
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog

from karpool.controller.store import ClusterStore
from karpool.kube.store import Store
from karpool.web.messages import LENGTH, Answered, Ask, Drop, Failed, Foreseen, Progressed, Start, Update
from karpool.web.questions import Decider, PageQuestion, QuestionError
from karpool.wire.objects import Object

_log = structlog.get_logger()
_AT_ONCE: Final = 100
"""How many objects are sent before others get a turn."""
_SHARE: Final = 2.0
"""An answer is good for this many times as long as it took, so that open pages do not keep the process busy."""
_SHORTEST: Final = 5.0
_LONGEST: Final = 60.0
_IDLE_SECONDS: Final = 600.0
"""A process that nobody has asked for so long is ended."""

COLLECTIONS: Final = {
    "pods": "pods",
    "nodes": "nodes",
    "claims": "node_claims",
    "pools": "node_pools",
    "pdbs": "pod_disruption_budgets",
    "daemon_sets": "daemon_sets",
    "volume_claims": "persistent_volume_claims",
    "volumes": "persistent_volumes",
    "storage_classes": "storage_classes",
    "csi_nodes": "csi_nodes",
    "namespaces": "namespaces",
    "priority_classes": "priority_classes",
    "volume_attachments": "volume_attachments",
    "pauses": "pauses",
    "overlays": "node_overlays",
    "buffers": "capacity_buffers",
    "pod_templates": "pod_templates",
    "resource_claims": "resource_claims",
    "resource_claim_templates": "resource_claim_templates",
    "resource_slices": "resource_slices",
    "device_classes": "device_classes",
    "deployments": "deployments",
    "stateful_sets": "stateful_sets",
    "replica_sets": "replica_sets",
    "pod_groups": "pod_groups",
    "workloads": "workloads",
}
"""The stores of a cluster, and what their objects are called where decisions read them."""


@dataclass(eq=False)
class _Pending:
    """A question that is being worked on, and who waits."""

    question: PageQuestion
    number: int
    version: int
    started: float
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    progress: Progressed | None = None
    foreseen: Foreseen | None = None
    answer: bytes | None = None
    problem: str = ""
    waiting: int = 0

    @property
    def done(self) -> bool:
        return self.answer is not None or bool(self.problem)

    def tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


@dataclass(frozen=True)
class _Kept:
    answer: bytes
    version: int
    at: float
    took: float


class Answering:
    """The questions about one cluster."""

    def __init__(
        self,
        store: ClusterStore,
        others: Callable[[], Mapping[str, tuple[Object, ...]]],
        decider: Decider,
        *,
        moves: bool,
        nice: int = 0,
        journal: Path | None = None,
    ) -> None:
        """`others`: objects that the store lacks. `moves`: whether time matters, because the cluster lives."""
        self._nice = nice
        self._journal = journal
        self._store = store
        self._others_of = others
        self._others: dict[str, tuple[Object, ...]] = {}
        self._decider = decider
        self._moves = moves
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._closing = False
        self._starting = asyncio.Lock()
        self._sending = asyncio.Lock()
        self._dirty: dict[tuple[str, str], None] = {}
        self._watching = False
        self._pending: dict[PageQuestion, _Pending] = {}
        self._kept: dict[PageQuestion, _Kept] = {}
        self._latest = 0

    async def ask(self, question: PageQuestion) -> AsyncGenerator[Progressed | Foreseen | bytes, None]:
        """Progress, what is known early, and at the end the answer; raises a QuestionError if there is none."""
        kept = self._still_good(question)
        if kept is not None:
            yield kept
            return
        known = self._pending.get(question)
        pending = known or self._begun(question)
        pending.waiting += 1
        try:
            if known is None:
                await self._put(pending)
            foreseen: Foreseen | None = None
            while not pending.done:
                changed = pending.changed
                if pending.foreseen is not foreseen:
                    foreseen = pending.foreseen
                    if foreseen is not None:
                        yield foreseen
                if pending.progress is not None:
                    yield pending.progress
                await changed.wait()
        finally:
            pending.waiting -= 1
            if not pending.waiting and not pending.done:
                await self._give_up(pending)
        if pending.answer is None:
            raise QuestionError(pending.problem)
        yield pending.answer

    async def close(self) -> None:
        """End the process, and wait until it has ended."""
        self._closing = True
        if self._process is not None:
            _kill(self._process)
        if self._reader is not None:
            await asyncio.wait([self._reader])

    # -- answers that are known ----------------------------------------------------------------------------------

    def _still_good(self, question: PageQuestion) -> bytes | None:
        kept = self._kept.get(question)
        if kept is None:
            return None
        age = time.monotonic() - kept.at
        if not self._moves and not question.moves:
            return kept.answer
        soon = max(_SHORTEST, _SHARE * kept.took)
        good = age < soon or (kept.version == self._store.version and age < _LONGEST and not question.moves)
        return kept.answer if good else None

    def _finish(self, pending: _Pending) -> None:
        self._pending.pop(pending.question, None)
        if pending.answer is not None:
            now = time.monotonic()
            self._forget_old(now)
            self._kept[pending.question] = _Kept(pending.answer, pending.version, now, now - pending.started)
        pending.tell()

    def _forget_old(self, now: float) -> None:
        most = 100 if not self._moves else 20
        self._kept = {asked: kept for asked, kept in self._kept.items() if not self._moves or now - kept.at < _LONGEST}
        while len(self._kept) >= most:
            del self._kept[min(self._kept, key=lambda asked: self._kept[asked].at)]

    # -- the process ---------------------------------------------------------------------------------------------

    def _begun(self, question: PageQuestion) -> _Pending:
        self._latest += 1
        pending = _Pending(question, self._latest, self._store.version, time.monotonic())
        self._pending[question] = pending
        return pending

    async def _put(self, pending: _Pending) -> None:
        """Put a question to the process, which is started if need be."""
        try:
            await self._send_changes()
            await self._send(Ask(pending.number, pending.question))
        except (OSError, RuntimeError) as error:
            pending.problem = f"answers cannot be worked out: {error}"
            self._finish(pending)
        except asyncio.CancelledError:
            # Others who wait for it would wait forever: it was never asked.
            pending.problem = "the question was given up before it was put; ask again"
            self._finish(pending)
            raise

    async def _give_up(self, pending: _Pending) -> None:
        self._pending.pop(pending.question, None)
        with suppress(OSError, RuntimeError):
            await self._send(Drop(pending.number))

    async def _running(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "karpool.web.answering_process",
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    start_new_session=True,  # Ctrl-C is for the process that started it
                )
                self._mark_everything()
                self._reader = asyncio.create_task(self._read(self._process))
                await self._write(self._process, Start(self._decider, self._nice, self._journal))
        return self._process

    def _mark_everything(self) -> None:
        """A new process knows nothing yet."""
        self._others = {}
        stores = {name: getattr(self._store, name) for name in COLLECTIONS}
        if not self._watching:
            self._watching = True
            for name, store in stores.items():
                store.watch(partial(self._note, name))
        for name, store in stores.items():
            self._dirty.update(((name, entry.key), None) for entry in store.listed())

    def _note(self, name: str, old: Object | None, new: Object | None) -> None:
        entry = old if new is None else new
        # A process that is started later is told of everything, so nothing is noted while there is none.
        if entry is not None and self._process is not None:
            self._dirty[name, entry.key] = None

    async def _send_changes(self) -> None:
        """Bring the copy of the process up to date, a few objects at a time."""
        process = await self._running()
        async with self._sending:
            while self._dirty:
                batches: dict[str, dict[str, Object | None]] = {}
                for _ in range(min(_AT_ONCE, len(self._dirty))):
                    (name, key), _nothing = self._dirty.popitem()
                    store: Store[Any] = getattr(self._store, name)
                    batches.setdefault(COLLECTIONS[name], {})[key] = store.get(key)
                for collection, changed in batches.items():
                    await self._write(process, Update(collection, changed))
                await asyncio.sleep(0)
            for collection, objects in self._others_of().items():
                known = self._others.get(collection, ())
                if objects is not known:
                    self._others[collection] = objects
                    gone: dict[str, Object | None] = {entry.key: None for entry in known}
                    await self._write(process, Update(collection, gone | {entry.key: entry for entry in objects}))

    async def _send(self, message: Any) -> None:
        await self._write(await self._running(), message)

    @staticmethod
    async def _write(process: asyncio.subprocess.Process, message: Any) -> None:
        if process.stdin is None:
            raise RuntimeError("the process has no input")
        frame = pickle.dumps(message)
        process.stdin.write(struct.pack(LENGTH, len(frame)) + frame)
        await process.stdin.drain()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Hand on what the process says until it ends."""
        output = process.stdout
        size = struct.calcsize(LENGTH)
        try:
            while output is not None:
                try:
                    head = await asyncio.wait_for(output.readexactly(size), _IDLE_SECONDS)
                except TimeoutError:
                    if self._pending:
                        continue
                    return
                (length,) = struct.unpack(LENGTH, head)
                self._hear(pickle.loads(await output.readexactly(length)))  # noqa: S301 - from our own process
        except asyncio.IncompleteReadError:
            if not self._closing:
                _log.warning("the process that works answers out has ended; the next question starts another")
        finally:
            _kill(process)
            await process.wait()
            if process.stdin is not None:
                process.stdin.close()
            self._process = None
            self._dirty.clear()
            for pending in list(self._pending.values()):
                pending.problem = "the process that works answers out has ended; ask again"
                self._finish(pending)

    def _hear(self, message: Any) -> None:
        pending = next((entry for entry in self._pending.values() if entry.number == message.number), None)
        if pending is None:
            return
        if isinstance(message, Progressed):
            pending.progress = message
            pending.tell()
        elif isinstance(message, Foreseen):
            pending.foreseen = message
            pending.tell()
        elif isinstance(message, Answered):
            pending.answer = message.answer
            self._finish(pending)
        elif isinstance(message, Failed):
            pending.problem = message.why
            self._finish(pending)


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
