"""Rates of the compactor: how many nodes it drains, and pods it evicts, within an hour, in all and of a namespace.

A node is gone soon after its drain, so what was drained is not written on nodes: it is in a ledger, with entries like
those of NodePools. An entry is written before a node is cordoned, and counts until an hour after its last eviction.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from karpool.compaction.nodes import NodeView
from karpool.compaction.pods import must_leave
from karpool.compaction.reasons import CompactionReasonCode as Code
from karpool.disruption.brakes.ledger import COUNTED, RENEWED, LedgerEntry, read_ledger
from karpool.disruption.brakes.rates import Rates, rates_of
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.short_ledgers import with_entry
from karpool.model.annotations import AnnotationError
from karpool.model.objects import Objects
from karpool.model.reasons import Reason

LEDGER: Final = "karpool-compactor-ledger"
"""The name of the ConfigMap that holds it."""
LEDGER_KEY: Final = "disruptions"
_METHOD: Final = "Compaction"


@dataclass(frozen=True, slots=True)
class Ledger:
    """What was drained lately, as it is written; or why that is not known."""

    text: str | None = None
    problem: str = ""

    def entries(self) -> tuple[LedgerEntry, ...] | None:
        """The entries; None if they are not known."""
        if self.problem:
            return None
        try:
            return read_ledger(self.text)
        except AnnotationError:
            return None


NO_LEDGER: Final = Ledger()


def rates_in_force(objects: Objects, brakes: BrakeSettings, now: datetime) -> bool:
    """Whether anything limits what is drained, so that the ledger has to be kept."""
    return bool(rates_of((), objects.namespaces, brakes, now))


class DrainRates:
    """What rates let go, node after node."""

    def __init__(self, objects: Objects, ledger: Ledger, brakes: BrakeSettings, now: datetime) -> None:
        entries = ledger.entries()
        self._rates: Rates = rates_of(entries or (), objects.namespaces, brakes, now)
        self._unknown: Reason | None = None
        if entries is None and self._rates:
            why = ledger.problem or f"its key {LEDGER_KEY} cannot be read, and should be removed"
            message = f"what was drained in the last hour is not known: {why}"
            self._unknown = Reason(Code.RATE_INVALID, message, f"ConfigMap {LEDGER}")

    def refusal(self, view: NodeView) -> Reason | None:
        """Why a node cannot be drained now, after those that were taken."""
        return self._unknown or (self._rates.refusal(1, evictions(view)) if self._rates else None)

    def take(self, view: NodeView) -> None:
        """Count a node that is to be drained."""
        self._rates = self._rates.after(1, evictions(view))


def evictions(view: NodeView) -> dict[str, int]:
    """How many pods are evicted when a node is drained, by namespace."""
    return dict(Counter(pod.metadata.namespace for pod in view.pods if pod.active and must_leave(pod)))


def started(view: NodeView, now: datetime) -> LedgerEntry:
    """The entry of a node whose drain starts now."""
    at = now.replace(microsecond=0)
    return LedgerEntry(
        command=_command(view.name, at),
        since=at,
        at=at,
        committed=True,
        method=_METHOD,
        nodes=1,
        names=view.name,
        pods=evictions(view),
    )


def renewed(view: NodeView, ledger: Ledger, now: datetime) -> LedgerEntry | None:
    """The entry of a node that is still being drained, if it is time to write it anew."""
    since = view.mark.updated
    entries = ledger.entries()
    if since is None or not entries:
        return None
    command = _command(view.name, since)
    known = next((entry for entry in entries if entry.command == command), None)
    if known is None or now - known.at < RENEWED:
        return None
    return replace(known, at=now.replace(microsecond=0))


def _command(node: str, since: datetime) -> str:
    return f"{node} {since:%Y-%m-%dT%H:%M:%SZ}"


def ledger_with(text: str | None, entries: Iterable[LedgerEntry], now: datetime) -> str:
    """A ledger that can be read, with these entries and without those that count no more."""
    for old in read_ledger(text):
        if now - old.at >= COUNTED:
            text = with_entry(text, old.command, None, now)
    for entry in entries:
        text = with_entry(text, entry.command, entry, now)
    return text or "[]"
