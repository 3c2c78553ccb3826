"""The ledger of a pool: what commands have disrupted lately, in an annotation of the NodePool.

An entry is written before a command marks anything, and again when it begins to delete its nodes; one that is rolled
back is taken out. Rates are counted from the ledgers of all pools, and the harm check knows from them which pods moved.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec
from msgspec.structs import replace

from karpool.disruption.brakes.wellness import unwell
from karpool.disruption.pods import tolerates_disruption
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
_LARGEST: Final = 96 * 1024
"""How long the text may become; all annotations of an object together may have 256 KiB."""
_NAMED: Final = 3
_DIGITS: Final = 12


class Blame(StrEnum):
    """What the harm check says of a command."""

    NONE = ""
    BLAMED = "blamed"
    FORGIVEN = "forgiven"


class LedgerEntry(Wire):
    """What one command disrupts of one pool.

    `pods` are the pods to evict, by namespace; `owners` those that will come back, by what stands for their controller:
    how many of them were well, and how many were not.
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
    owners: dict[str, tuple[int, int]] = {}
    blame: Blame = Blame.NONE

    @property
    def evictions(self) -> int:
        """How many pods are evicted."""
        return sum(self.pods.values())


_READER: Final = msgspec.json.Decoder(tuple[LedgerEntry, ...])


def ledger_of(pool: NodePool) -> tuple[LedgerEntry, ...]:
    """The entries of a pool; raises an AnnotationError if they cannot be read."""
    return read_ledger(pool.metadata.annotations.get(DISRUPTIONS))


@lru_cache(maxsize=64)
def read_ledger(text: str | None) -> tuple[LedgerEntry, ...]:
    """Entries as they are written; raises an AnnotationError if they cannot be read."""
    if text is None:
        return ()
    try:
        return _READER.decode(text)
    except ValueError as error:
        raise AnnotationError([Flaw(annotation_path(DISRUPTIONS), "Annotation", str(error)[:200])]) from None


def entry_of(pool: NodePool | None, command: str) -> LedgerEntry | None:
    """What a pool's ledger says of a command, if it can be read."""
    try:
        entries = () if pool is None else ledger_of(pool)
    except AnnotationError:
        return None
    return next((entry for entry in entries if entry.command == command), None)


def with_entry(text: str | None, command: str, entry: LedgerEntry | None, now: datetime) -> str | None:
    """A ledger with another entry for a command, None for none; what is old is left out.

    One that cannot be read stays as it is: it stops everything until a person has looked at it.
    """
    try:
        before = read_ledger(text)
    except AnnotationError:
        return text
    kept = [other for other in before if other.command != command and _lasts(other, now)]
    entries = kept if entry is None else [*kept, entry]
    return _written(sorted(entries, key=lambda one: (one.at, one.command))) if entries else None


def _lasts(entry: LedgerEntry, now: datetime) -> bool:
    return entry.blame == Blame.BLAMED or now - entry.at < COUNTED


def _written(entries: list[LedgerEntry]) -> str:
    """The entries as text; if that is too long the oldest become one, which the harm check does not look after."""
    text = _text(entries)
    while len(text) > _LARGEST and len(entries) > 1:
        entries[:2] = [_together(*entries[:2])]
        text = _text(entries)
    return text


def _text(entries: Sequence[LedgerEntry]) -> str:
    return msgspec.json.encode(entries).decode()


def _together(older: LedgerEntry, newer: LedgerEntry) -> LedgerEntry:
    """Two entries as one that counts as long as the newer; what happened to whose pods is lost."""
    pods = dict(Counter(older.pods) + Counter(newer.pods))
    return replace(newer, nodes=older.nodes + newer.nodes, pods=pods, owners={})


def disruption(command: str, method: str, nodes: Sequence[str], pods: Iterable[Pod], now: datetime) -> LedgerEntry:
    """The entry of a command that removes nodes of a pool with these pods on them."""
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
        owners=_owners(pod for pod in moving if not pod.is_daemon),
    )


def evicted_with_node(pod: Pod) -> bool:
    """Whether a pod is evicted when its node goes, now or when it may be."""
    return pod.active and not pod.is_mirror and not tolerates_disruption(pod)


def evictions_by_namespace(pods: Iterable[Pod]) -> dict[str, int]:
    """How many of these pods are evicted when their nodes go, by namespace."""
    return dict(Counter(pod.metadata.namespace for pod in pods if evicted_with_node(pod)))


def owner_key(pod: Pod) -> str | None:
    """A few characters that stand for a pod's controller; None for a pod that nobody makes again."""
    owner = next((entry for entry in pod.metadata.owner_references if entry.controller), None)
    if owner is None:
        return None
    whole = f"{pod.metadata.namespace}/{owner.kind}/{owner.name}/{owner.uid}"
    return hashlib.sha256(whole.encode()).hexdigest()[:_DIGITS]


def _owners(pods: Iterable[Pod]) -> dict[str, tuple[int, int]]:
    owners: dict[str, tuple[int, int]] = {}
    for pod in pods:
        key = owner_key(pod)
        if key is not None:
            well, ill = owners.get(key, (0, 0))
            owners[key] = (well, ill + 1) if unwell(pod) else (well + 1, ill)
    return owners
