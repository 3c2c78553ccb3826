"""The ledger of a pool: what commands have disrupted lately, in an annotation of the NodePool.

An entry is written before a command marks anything, and again when it begins to delete its nodes; one that is rolled
back is taken out. Rates are counted from the ledgers of all pools, and the harm check knows from them which pods moved.
What is old is taken out from time to time, and what is too long becomes shorter (`short_ledgers`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from karpool.disruption.brakes.owned_pods import OwnedPods, is_replica, owner_key
from karpool.disruption.brakes.wellness import unwell_already
from karpool.disruption.candidates.pods import tolerates_disruption
from karpool.model.annotations import AnnotationError, annotation_path
from karpool.model.labels import DISRUPTIONS
from karpool.model.nodepool import NodePool
from karpool.model.pod import Pod
from karpool.wire.objects import Timestamp, Wire
from karpool.wire.problems import Flaw

RENEWED: Final = timedelta(minutes=1)
"""How often the time of an entry is written anew while its command drains nodes."""
COUNTED: Final = timedelta(hours=1) + RENEWED
"""How long an entry counts."""
_NAMED: Final = 3


class Blame(StrEnum):
    """What the harm check says of a command."""

    NONE = ""
    BLAMED = "blamed"
    FORGIVEN = "forgiven"


class Moved(NamedTuple):
    """Pods of one controller that a command moves; they will come back."""

    pods: int
    unwell: int = 0
    """How many of all its pods, wherever they are, were not well before."""
    replicas: int = 0
    """How many pods it had in all; 0 for a Job, whose pods end by themselves, and if nobody wrote that down."""


class LedgerEntry(Wire):
    """What one command disrupts of one pool.

    `pods` are the pods to evict, by namespace, and `others` those of namespaces that are too many to be named. `owners`
    are those that will come back, by what stands for their controller.
    """

    command: str
    since: Timestamp
    """When the nodes began to go; pods that come back are created later."""
    at: Timestamp
    """When they were last seen going."""
    committed: bool = False
    """Whether they go; before that, the entry keeps a place among the rates."""
    method: str = ""
    nodes: int = 0
    names: str = ""
    pods: dict[str, int] = {}
    others: int = 0
    owners: dict[str, Moved] = {}
    blame: Blame = Blame.NONE

    @property
    def evictions(self) -> int:
        """How many pods are evicted."""
        return sum(self.pods.values()) + self.others

    def evictions_of(self, namespace: str) -> int:
        """How many pods of a namespace are evicted, at most: those of namespaces without a name may be its own."""
        return self.pods.get(namespace, 0) + self.others


_READER: Final = msgspec.json.Decoder(tuple[LedgerEntry, ...])
_ENTRIES: Final = msgspec.json.Decoder(tuple[msgspec.Raw, ...])
_ENTRY: Final = msgspec.json.Decoder(LedgerEntry)


def ledger_of(pool: NodePool) -> tuple[LedgerEntry, ...]:
    """The entries of a pool; raises an AnnotationError if they cannot be read."""
    return read_ledger(pool.metadata.annotations.get(DISRUPTIONS))


@lru_cache(maxsize=64)
def read_ledger(text: str | None) -> tuple[LedgerEntry, ...]:
    """Entries as they are written; raises an AnnotationError if they cannot be read."""
    if text is None:
        return ()
    try:
        return tuple([read_entry(entry) for entry in entries_as_written(text)])
    except ValueError:
        return _read_whole(text)


@lru_cache(maxsize=64)
def latest_in(text: str | None) -> datetime | None:
    """When nodes of any entry were last seen going; raises an AnnotationError if the entries cannot be read."""
    return max((entry.at for entry in read_ledger(text)), default=None)


def entries_as_written(text: str | None) -> list[bytes]:
    """The texts of entries. Each change of a ledger is one of an entry or two: all others have been read before."""
    return [] if text is None else [bytes(entry) for entry in _ENTRIES.decode(text)]


@lru_cache(maxsize=1024)
def read_entry(text: bytes) -> LedgerEntry:
    """An entry as it is written."""
    return _ENTRY.decode(text)


def _read_whole(text: str) -> tuple[LedgerEntry, ...]:
    """All entries; if they cannot be read, the error says where."""
    try:
        return _READER.decode(text)
    except ValueError as error:
        raise AnnotationError([Flaw(annotation_path(DISRUPTIONS), "Annotation", str(error)[:200])]) from None


def entry_of(pool: NodePool | None, command: str) -> LedgerEntry | None:
    """What a pool's ledger says of a command, if it can be read."""
    try:
        return None if pool is None else _by_command(pool.metadata.annotations.get(DISRUPTIONS)).get(command)
    except AnnotationError:
        return None


@lru_cache(maxsize=64)
def _by_command(text: str | None) -> dict[str, LedgerEntry]:
    """Entries as they are written, the first of each command; raises an AnnotationError if they cannot be read."""
    return {entry.command: entry for entry in reversed(read_ledger(text))}


def disruption(
    command: str,
    method: str,
    nodes: Sequence[str],
    pods: Iterable[Pod],
    now: datetime,
    *,
    everywhere: OwnedPods | None = None,
) -> LedgerEntry:
    """The entry of a command that removes nodes of a pool with these pods on them; `everywhere`: all pods there are."""
    moving, now = [pod for pod in pods if evicted_with_node(pod)], now.replace(microsecond=0)
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return LedgerEntry(
        command=command,
        since=now,
        at=now,
        method=method,
        nodes=len(nodes),
        names=", ".join(sorted(nodes)[:_NAMED]) + more,
        pods=evictions_by_namespace(moving),
        owners=_owners([pod for pod in moving if not pod.is_daemon], everywhere or OwnedPods(), now),
    )


def evicted_with_node(pod: Pod) -> bool:
    """Whether a pod is evicted when its node goes, now or when it may be."""
    return pod.active and not pod.is_mirror and not tolerates_disruption(pod)


def evictions_by_namespace(pods: Iterable[Pod]) -> dict[str, int]:
    """How many of these pods are evicted when their nodes go, by namespace."""
    return dict(Counter(pod.metadata.namespace for pod in pods if evicted_with_node(pod)))


def _owners(moving: Sequence[Pod], everywhere: OwnedPods, now: datetime) -> dict[str, Moved]:
    moved = Counter(key for pod in moving if (key := owner_key(pod)) is not None)
    # What was read of the pods that move counts more than what is known of them.
    keys, unwell, replicas = {pod.key for pod in moving}, Counter[str | None](), Counter[str | None]()
    for pod in moving:
        key = owner_key(pod)
        replicas[key] += is_replica(pod)
        unwell[key] += unwell_already(pod, now)
    for key in moved:
        replicas[key] += everywhere.replicas(key, but=keys)
        unwell[key] += sum(unwell_already(pod, now) for name, pod in everywhere.unwell(key).items() if name not in keys)
    return {key: Moved(count, unwell[key], replicas[key]) for key, count in moved.items()}
