"""What really happened in a recorded cluster, in the numbers of a simulated one, so that both can be compared.

What a recording does not hold is None: interruptions, what the Eviction API refused, launches that failed, and of some
imports, who was evicted.
"""

import statistics
from collections import Counter, deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from karpool.catalog.instance_types import Catalog
from karpool.catalog.pricing import node_price
from karpool.catalog.spot_history import Market
from karpool.model.labels import NODEPOOL, SPOT
from karpool.model.requests import effective_requests
from karpool.recording import records as r
from karpool.recording.history import History, histories, key_of
from karpool.recording.parts import open_recording
from karpool.recording.prices import offer_of
from karpool.virtual.market import SpotPrices
from karpool.virtual.recorder import DIGITS, HOUR, ClusterSample, Integral, PoolSummary, Run, RunSummary

_COUNTED: Final = {r.LeaveCause.EVICTED: "evictions", r.LeaveCause.FORCED: "evictions_forced"}
_AMOUNTS: Final = ("price", "unpriced", "nodes", "pods", "pending", "cpu", "memory", "cpuUsed", "memoryUsed")


def recorded_run(path: Path, catalog: Catalog, *, length: float, every: float, spot: SpotPrices | None = None) -> Run:
    """The first `length` seconds of a recording, with a sample after each `every`.

    Machines cost what a simulated run would pay: what the history of spot prices says, or the catalogue; and what
    neither prices costs what was recorded.
    """
    file = open_recording(path)
    history = History(file.header)
    meter = _Meter(history, catalog, every, spot)
    begin: float | None = None
    for record in histories(file, history):
        if isinstance(record, r.TimedRecord):
            begin = record.t if begin is None else begin
            if record.t - begin > length:
                break
            meter.advance(record.t - begin)
        meter.take(record)
    meter.advance(length)
    return meter.result(length)


@dataclass(frozen=True, slots=True)
class _Machine:
    pool: str
    offer: str
    since: float
    amounts: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bound:
    """A pod on a node: what it asks for there, and whether it counts, as those of DaemonSets do not."""

    node: str
    cpu: float
    memory: float
    counts: bool


def _offer(market: Market) -> str:
    """The key under which recordings know a spot market."""
    return "/".join((*market, SPOT))


class _Meter:
    """Adds up what records say; `advance` moves the clock."""

    def __init__(self, history: History, catalog: Catalog, every: float, spot: SpotPrices | None) -> None:
        self._history = history
        self._catalog = catalog
        self._every = every
        self._changes = deque(() if spot is None else spot.changes)
        opening = {} if spot is None else spot.opening
        self._markets = {_offer(market): catalog.with_fee(price) for market, price in opening.items()}
        self._now = 0.0
        self._samples: list[ClusterSample] = []
        self._sums = {name: Integral() for name in _AMOUNTS}
        self._pools: dict[str, tuple[Integral, Integral]] = {}
        self._machines: dict[tuple[str, str], _Machine] = {}
        self._pool_of: dict[str, str] = {}
        self._lifetimes: list[float] = []
        self._counts: Counter[str] = Counter()
        self._bound: dict[int, _Bound] = {}
        self._pending: set[int] = set()
        self._evictions_known = True
        self._nodes_known = True

    def advance(self, now: float) -> None:
        while self._changes and self._changes[0].at <= now:
            change = self._changes.popleft()
            self._pass(change.at)
            self._reprice(_offer(change.market), self._catalog.with_fee(change.price))
        self._pass(now)

    def _pass(self, now: float) -> None:
        while (due := len(self._samples) * self._every) < now:
            self._sample(due)
        self._now = now

    def take(self, record: r.AnyRecord) -> None:
        match record:
            case r.Put() | r.Changed() if record.kind in ("Node", "NodeClaim"):
                key = record.key if isinstance(record, r.Changed) else key_of(record.object)
                self._machine(record.kind, key)
            case r.Gone() if record.kind in ("Node", "NodeClaim"):
                self._gone(record)
            case r.Born():
                self._counts["pods_created"] += self._now > 0
                if not self._history.template_of(record.pod).is_daemon:
                    self._wait(record.pod, waits=True)
            case r.Bound():
                self._bind(record)
            case r.Leaving():
                self._leave(record)
            case r.Missing(kind=r.EVICTION) if record.why:
                self._evictions_known = False
            case r.Missing(kind="Node") if record.why:
                self._nodes_known = False
            case r.Died():
                self._wait(record.pod, waits=False)
                self._unbind(record.pod)
            case _:
                pass

    # -- machines ------------------------------------------------------------------------------------------------

    def _machine(self, kind: str, key: str) -> None:
        """A machine exists from the launch of its claim on, or from when its node is there if it has no claim."""
        obj: Any = self._history.decoded(kind, key)
        labels = obj.metadata.labels
        claimed = kind == "Node" and NODEPOOL in labels and self._history.kinds["NodeClaim"]
        if (kind, key) in self._machines or claimed or (kind == "NodeClaim" and not obj.is_true("Launched")):
            return
        offer = offer_of(labels)
        price = self._markets.get(offer, node_price(self._catalog, labels))
        price = self._history.prices.get(offer) if price is None else price
        room = obj.status.allocatable
        amounts = {
            "nodes": 1.0,
            "price": price or 0.0,
            "unpriced": float(price is None),
            "cpu": room["cpu"].milli / 1000 if "cpu" in room else 0.0,
            "memory": float(room["memory"].units) if "memory" in room else 0.0,
        }
        self._machines[kind, key] = _Machine(labels.get(NODEPOOL, ""), offer, self._now, amounts)
        self._counts["nodes_launched"] += self._now > 0
        self._count_machine(self._machines[kind, key], 1)
        if kind == "NodeClaim":
            self._pool_of[obj.status.node_name] = obj.pool

    def _gone(self, record: r.Gone) -> None:
        machine = self._machines.pop((record.kind, record.key), None)
        if machine is not None:
            self._counts["nodes_ended"] += 1
            self._lifetimes.append(self._now - machine.since)
            self._count_machine(machine, -1)

    def _count_machine(self, machine: "_Machine", sign: int) -> None:
        for amount, value in machine.amounts.items():
            self._sums[amount].change(sign * value, self._now)
        nodes, price = self._pools.setdefault(machine.pool, (Integral(), Integral()))
        nodes.change(sign, self._now)
        price.change(sign * machine.amounts["price"], self._now)

    def _reprice(self, offer: str, price: float) -> None:
        """The market of a type in a zone costs this from now on."""
        self._markets[offer] = price
        for key, machine in self._machines.items():
            if machine.offer == offer:
                self._count_machine(machine, -1)
                self._machines[key] = replace(machine, amounts={**machine.amounts, "price": price, "unpriced": 0.0})
                self._count_machine(self._machines[key], 1)

    # -- pods ----------------------------------------------------------------------------------------------------

    def _wait(self, pod: int, *, waits: bool) -> None:
        if waits != (pod in self._pending):
            (self._pending.add if waits else self._pending.discard)(pod)
            self._sums["pending"].change(1 if waits else -1, self._now)

    def _bind(self, record: r.Bound) -> None:
        self._wait(record.pod, waits=False)
        template = self._history.template_of(record.pod)
        requests = effective_requests(template)
        cpu = requests["cpu"].milli / 1000 if "cpu" in requests else 0.0
        memory = float(requests["memory"].units) if "memory" in requests else 0.0
        self._bound[record.pod] = _Bound(node=record.node, cpu=cpu, memory=memory, counts=not template.is_daemon)
        self._count_pod(self._bound[record.pod], 1)

    def _unbind(self, pod: int) -> None:
        bound = self._bound.pop(pod, None)
        if bound is not None:
            self._count_pod(bound, -1)

    def _count_pod(self, bound: "_Bound", sign: int) -> None:
        self._sums["cpuUsed"].change(sign * bound.cpu, self._now)
        self._sums["memoryUsed"].change(sign * bound.memory, self._now)
        self._sums["pods"].change(sign * bound.counts, self._now)

    def _leave(self, record: r.Leaving) -> None:
        self._wait(record.pod, waits=False)
        bound = self._bound.get(record.pod)
        if record.cause in _COUNTED and (bound is None or bound.counts):
            self._counts[_COUNTED[record.cause]] += 1

    # -- results -------------------------------------------------------------------------------------------------

    def _share(self, name: str, *, mean: bool) -> float | None:
        used, room = self._sums[f"{name}Used"], self._sums[name]
        part, whole = (used.total, room.total) if mean else (used.value, room.value)
        return round(part / whole, DIGITS) if whole > 0 else None

    def _sample(self, time: float) -> None:
        sums = self._sums
        self._samples.append(
            ClusterSample(
                time=time,
                nodes=round(sums["nodes"].value),
                pods=round(sums["pods"].value),
                pending=len(self._pending),
                price_per_hour=round(sums["price"].value, DIGITS),
                cpu_utilization=self._share("cpu", mean=False),
                memory_utilization=self._share("memory", mean=False),
                evictions=self._known("evictions"),
            )
        )

    def _known(self, name: str) -> int | None:
        """How many pods left so, if the recording says who was evicted."""
        return self._counts[name] if self._evictions_known else None

    def result(self, length: float) -> Run:
        self._sample(length)
        sums, counts, lifetimes = self._sums, self._counts, self._lifetimes
        for entry in (*sums.values(), *(entry for pair in self._pools.values() for entry in pair)):
            entry.advance(length)
        mean_pods = sums["pods"].total / length if length else 0.0
        evictions = self._known("evictions")
        summary = RunSummary(
            seconds=length,
            cost=round(sums["price"].total / HOUR, DIGITS),
            node_hours=round(sums["nodes"].total / HOUR, DIGITS),
            cpu_utilization=self._share("cpu", mean=True),
            memory_utilization=self._share("memory", mean=True),
            evictions=evictions,
            evictions_forced=self._known("evictions_forced"),
            moves_per_pod=None if evictions is None or not mean_pods else round(evictions / mean_pods, DIGITS),
            pods_created=counts["pods_created"],
            pending_pod_seconds=round(sums["pending"].total, 3),
            pending_pods_at_end=len(self._pending),
            nodes_launched=counts["nodes_launched"],
            nodes_ended=counts["nodes_ended"],
            failed_launches=None,
            interruptions=None,
            node_lifetime_seconds_median=round(statistics.median(lifetimes), 3) if lifetimes else None,
            node_lifetime_seconds_mean=round(statistics.fmean(lifetimes), 3) if lifetimes else None,
            pdb_refusals=None,
            pdb_wait_seconds=None,
            nodes_at_end=round(sums["nodes"].value),
            pods_at_end=round(sums["pods"].value),
            unpriced_node_hours=round(sums["unpriced"].total / HOUR, DIGITS),
        )
        return Run(summary, tuple(self._samples), self._by_pool(), self._nodes_known)

    def _by_pool(self) -> dict[str, PoolSummary]:
        on = Counter(self._pool_of.get(bound.node, "") for bound in self._bound.values() if bound.counts)
        return {
            name: PoolSummary(
                node_hours=round(nodes.total / HOUR, DIGITS),
                cost=round(price.total / HOUR, DIGITS),
                nodes_at_end=round(nodes.value),
                pods_at_end=on[name],
            )
            for name, (nodes, price) in self._pools.items()
            if name
        }
