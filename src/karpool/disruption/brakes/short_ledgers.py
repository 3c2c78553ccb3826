"""Ledgers as text: each entry is bounded, and when all together become too long, the oldest are folded into one.

No count is ever lost, so rates hold; what the harm check knows becomes coarser:

* An entry names the controllers with the most moved pods; the others are not looked after.
* It names the namespaces with the most pods; the others are one number, which counts against every namespace.
* Entries whose nodes are gone become one, which keeps the controllers of all, and the blame if one of them has it; its
  name is that of the one that moved the most pods.
* If that does not help, entries whose nodes still go lose controllers and namespaces, the oldest first.

What is left are some hundreds of commands of one pool at the same time. If the API server refuses such a ledger, the
command that it was written for does not begin.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from karpool.disruption.brakes.ledger import (
    COUNTED,
    RENEWED,
    Blame,
    LedgerEntry,
    Moved,
    entries_as_written,
    read_entry,
    read_ledger,
)
from karpool.model.annotations import AnnotationError

LONGEST: Final = 96 * 1024
"""How long the text may become, in bytes; all annotations of an object together may have 256 KiB."""
_MOST_OWNERS: Final = 400
_NAMESPACES: Final = 6 * 1024
"""How much room namespaces of one entry may take, in bytes."""
_COUNT: Final = 12
"""How much room the count of a namespace takes."""


def with_entry(text: str | None, command: str, entry: LedgerEntry | None, now: datetime) -> str | None:
    """A ledger with another entry for a command, None for none.

    One that cannot be read stays as it is: it stops everything until a person has looked at it.
    """
    try:
        read_ledger(text)
    except AnnotationError:
        return text
    kept = [each for each in map(_kept, entries_as_written(text)) if each.entry.command != command]
    kept += [] if entry is None else [_Kept.of(entry)]
    return _written(kept, now) if kept else None


class _Kept(NamedTuple):
    """An entry, bounded, and its text."""

    entry: LedgerEntry
    text: bytes

    @classmethod
    def of(cls, entry: LedgerEntry) -> "_Kept":
        bounded = _bounded(entry)
        return cls(bounded, msgspec.json.encode(bounded))


@lru_cache(maxsize=1024)
def _kept(text: bytes) -> _Kept:
    return _Kept.of(read_entry(text))


def _written(entries: Iterable[_Kept], now: datetime) -> str:
    together = sorted(entries, key=lambda each: _order(each.entry))
    text = b"[" + b",".join([each.text for each in together]) + b"]"
    kept = [each.entry for each in together]
    while len(text) > LONGEST and (shorter := _shorter(kept, now)) is not None:
        kept, text = shorter, msgspec.json.encode(shorter)
    return text.decode()


def _order(entry: LedgerEntry) -> tuple[datetime, str]:
    return entry.at, entry.command


def _bounded(entry: LedgerEntry) -> LedgerEntry:
    """An entry with as many controllers and namespaces as there is room for; what is forgiven is not looked after."""
    owners = {} if entry.blame == Blame.FORGIVEN else entry.owners
    if len(owners) > _MOST_OWNERS:
        owners = dict(sorted(owners.items(), key=lambda one: (-one[1].pods, one[0]))[:_MOST_OWNERS])
    pods, room = dict[str, int](), _NAMESPACES
    for name, count in sorted(entry.pods.items(), key=lambda one: (-one[1], one[0])):
        room -= len(name) + _COUNT
        if room < 0:
            break
        pods[name] = count
    return replace(entry, owners=owners, pods=pods, others=entry.evictions - sum(pods.values()))


def _shorter(entries: Sequence[LedgerEntry], now: datetime) -> list[LedgerEntry] | None:
    """Entries, oldest first, of which two have become one, or one has lost what is not needed to count it, if any."""
    gone = [one for one in entries if one.committed and now - one.at >= 2 * RENEWED]
    gone.sort(key=lambda one: one.blame == Blame.BLAMED)
    if len(gone) > 1:
        folded = _together(gone[0], gone[1], now)
        return sorted((folded, *(one for one in entries if one not in gone[:2])), key=_order)
    for entry in entries:
        if entry.owners or entry.pods:
            bare = replace(entry, owners={}, pods={}, others=entry.evictions)
            return [bare if one is entry else one for one in entries]
    return None


def _together(one: LedgerEntry, other: LedgerEntry, now: datetime) -> LedgerEntry:
    """Two entries as one that counts as long as the newer; what does not count any more does not begin to again."""
    first, second = sorted((one, other), key=lambda each: each.since)
    counting = [each for each in (one, other) if now - each.at < COUNTED]
    owners = dict(second.owners)
    for key, moved in first.owners.items():
        later = owners.get(key, Moved(0))
        owners[key] = Moved(moved.pods + later.pods, moved.unwell, later.replicas or moved.replicas)
    return _bounded(
        replace(
            max(one, other, key=_moved),
            since=first.since,
            at=max(one.at, other.at),
            nodes=sum(each.nodes for each in counting),
            pods=dict(sum((Counter(each.pods) for each in counting), Counter[str]())),
            others=sum(each.others for each in counting),
            owners=owners,
            blame=Blame.BLAMED if Blame.BLAMED in (one.blame, other.blame) else Blame.NONE,
        )
    )


def _moved(entry: LedgerEntry) -> tuple[int, datetime]:
    return sum(moved.pods for moved in entry.owners.values()), entry.at
