"""Rates: how many nodes are disrupted and pods evicted within an hour, in all and of a namespace."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from karpool.disruption.brakes.ledger import COUNTED, LedgerEntry, latest_in, ledger_of
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stamps import refuse_ahead
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.reasons import ReasonCode, clock
from karpool.model.annotations import AnnotationError, most_evictions
from karpool.model.labels import DISRUPTIONS, MAX_EVICTIONS
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.reasons import Reason
from karpool.model.workloads import Namespace

_NODES: Final = "--max-nodes-per-hour"
_EVICTIONS: Final = "--max-evictions-per-hour"
_OF_NAMESPACE: Final = f"annotation {MAX_EVICTIONS} of the Namespace"


class Left(NamedTuple):
    """How much a limit still allows now, and what of it was used when; `setting`: where the limit is set."""

    limit: int
    setting: str
    used: tuple[tuple[datetime, int], ...] = ()

    @property
    def total(self) -> int:
        """How much has happened within the hour."""
        return sum(amount for _, amount in self.used)

    @property
    def remaining(self) -> int:
        """How much more may happen now."""
        return max(0, self.limit - self.total)

    def room_at(self, amount: int, now: datetime) -> datetime | None:
        """When so much more may happen; None if it never may, because the limit is smaller."""
        # More than the limit may have happened: it may have been another one then.
        left = self.limit - self.total
        if left >= amount:
            return now
        for moment, released in sorted(self.used):
            left += released
            if left >= amount:
                return moment + COUNTED
        return None

    def refuses(self, more: int, what: str, now: datetime) -> str:
        """Why so many more cannot go now: the limit, where it is set, what has used it, and when there is room."""
        return (
            f"{more} more {what}{'' if more == 1 else 's'} would pass the limit of {self.limit} {what}s an hour "
            f"({self.setting}; {self.total} in the last hour): {self.room(more, now)}"
        )

    def room(self, amount: int, now: datetime) -> str:
        """When there is room for so many more."""
        moment = self.room_at(amount, now)
        return "that never fits, raise the limit" if moment is None else f"there is room at {clock(moment, now)}"


@dataclass(frozen=True, slots=True)
class Rates:
    """What rates still allow; None where there is no limit."""

    now: datetime | None = None
    nodes: Left | None = None
    evictions: Left | None = None
    namespaces: Mapping[str, Left] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """By namespace: what is wrong with its annotation."""

    def __bool__(self) -> bool:
        return any((self.nodes, self.evictions, self.namespaces, self.unreadable))

    @property
    def most_nodes(self) -> int | None:
        """How many more nodes may go now; None: any number."""
        return None if self.nodes is None else self.nodes.remaining

    def refusal(self, nodes: int, pods: Mapping[str, int]) -> Reason | None:
        """Why so many nodes with so many pods, by namespace, cannot go now."""
        for name in sorted(pods.keys() & self.unreadable.keys()):
            message = f"{self.unreadable[name]}; none of its pods is evicted until that is mended"
            return Reason(ReasonCode.RATE_INVALID, message, f"Namespace {name}")
        spaces = sorted(pods.keys() & self.namespaces.keys())
        limits = (
            (self.nodes, nodes, "node", "Cluster"),
            (self.evictions, sum(pods.values()), "pod", "Cluster"),
            *((self.namespaces[name], pods[name], "pod", f"Namespace {name}") for name in spaces),
        )
        for left, wanted, what, where in limits:
            if left is not None and self.now is not None and wanted > left.remaining:
                return Reason(ReasonCode.RATE_REACHED, left.refuses(wanted, what, self.now), where)
        return None

    def after(self, nodes: int, pods: Mapping[str, int]) -> "Rates":
        """What is left when these have gone."""
        now = self.now
        if now is None:
            return self
        more = {name: _more(left, now, pods.get(name, 0)) for name, left in self.namespaces.items()}
        return Rates(
            now,
            None if self.nodes is None else _more(self.nodes, now, nodes),
            None if self.evictions is None else _more(self.evictions, now, sum(pods.values())),
            more,
            self.unreadable,
        )


NO_RATES: Final = Rates()


def _more(left: Left, now: datetime, amount: int) -> Left:
    return left if not amount else left._replace(used=(*left.used, (now, amount)))


def rates_left(objects: Objects, settings: BrakeSettings, now: datetime) -> Rates:
    """What rates still allow, counted from the ledgers of all pools; one that cannot be read is a stop of its own."""
    return rates_of(_written(objects, now), objects.namespaces, settings, now)


def rates_of(
    written: Iterable[LedgerEntry], namespaces: Iterable[Namespace], settings: BrakeSettings, now: datetime
) -> Rates:
    """What rates still allow when these entries are written."""
    limits: dict[str, int] = {}
    unreadable: dict[str, str] = {}
    for namespace in namespaces:
        if namespace.unreadable:
            unreadable[namespace.name] = f"cannot be read: {namespace.unreadable}"
            continue
        try:
            limit = most_evictions(namespace)
        except AnnotationError as problem:
            unreadable[namespace.name] = str(problem)
            continue
        if limit is not None:
            limits[namespace.name] = limit
    if not limits and not unreadable and settings.most_nodes_per_hour is settings.most_evictions_per_hour is None:
        return NO_RATES
    entries = [entry for entry in written if now - entry.at < COUNTED]
    return Rates(
        now,
        _left(settings.most_nodes_per_hour, _NODES, ((entry.at, entry.nodes) for entry in entries)),
        _left(settings.most_evictions_per_hour, _EVICTIONS, ((entry.at, entry.evictions) for entry in entries)),
        {
            name: Left(limit, _OF_NAMESPACE, _summed((entry.at, entry.evictions_of(name)) for entry in entries))
            for name, limit in limits.items()
        },
        unreadable,
    )


def _left(limit: int | None, setting: str, used: Iterable[tuple[datetime, int]]) -> Left | None:
    return None if limit is None else Left(limit, setting, _summed(used))


def _summed(used: Iterable[tuple[datetime, int]]) -> tuple[tuple[datetime, int], ...]:
    amounts: Counter[datetime] = Counter()
    for moment, amount in used:
        amounts[moment] += amount
    return tuple(sorted((moment, amount) for moment, amount in amounts.items() if amount))


def _written(objects: Objects, now: datetime) -> Iterator[LedgerEntry]:
    for pool in objects.node_pools:
        try:
            yield from _entries(pool, now)
        except AnnotationError:
            continue


def _entries(pool: NodePool, now: datetime) -> tuple[LedgerEntry, ...]:
    """What a pool has written down; raises an AnnotationError if that cannot be so."""
    entries, latest = ledger_of(pool), latest_in(pool.metadata.annotations.get(DISRUPTIONS))
    if latest is not None and latest > now:
        refuse_ahead(DISRUPTIONS, now, *(entry.at for entry in entries))
    return entries


def rate_stops(objects: Objects, settings: BrakeSettings, now: datetime) -> Iterator[Stop]:
    """A stop of everything when a rate is used up, and for a ledger that cannot be read."""
    rates = rates_left(objects, settings, now)
    for pool in objects.node_pools:
        try:
            _entries(pool, now)
        except AnnotationError as problem:
            message = f"{problem}; what was disrupted is not known until the annotation {DISRUPTIONS} is removed"
            # Rates count what all pools have written down; without one, only this pool is in doubt.
            yield Stop(ReasonCode.RATE_INVALID, message, f"NodePool {pool.name}", None if rates else pool.name)
    for left, what in ((rates.nodes, "nodes were disrupted"), (rates.evictions, "pods were evicted")):
        if left is not None and not left.remaining:
            message = (
                f"{left.total} {what} in the last hour, and the limit is {left.limit} ({left.setting}): "
                f"{left.room(1, now)}"
            )
            yield Stop(ReasonCode.RATE_REACHED, message, "Cluster", until=left.room_at(1, now))
