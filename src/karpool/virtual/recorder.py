"""Statistics of a run: what it cost, and what its pods went through."""

import statistics
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import field

from karpool.execution.actions import Action, DeletePod
from karpool.model.labels import NODEPOOL
from karpool.model.pod import Pod
from karpool.model.requests import effective_requests
from karpool.virtual.cloud import Instance, VirtualCloud
from karpool.virtual.control_plane.api import Api
from karpool.virtual.control_plane.pdb_controller import EvictionStatus
from karpool.virtual.curves import seconds
from karpool.virtual.world import VirtualWorld
from karpool.wire.objects import Wire

HOUR: Final = 3600.0
DIGITS: Final = 9
_RESOURCES: Final = ("cpu", "memory", "cpuUsed", "memoryUsed")
_COUNTS: Final = ("evictions", "evictions_forced", "pods_created", "nodes_launched", "nodes_ended", "pdb_refusals")


class ClusterSample(Wire):
    """The cluster at one moment, in seconds since the start."""

    time: float
    nodes: int
    pods: int
    pending: int
    price_per_hour: float
    cpu_utilization: float | None
    memory_utilization: float | None
    evictions: int | None


class PoolSummary(Wire, omit_defaults=False):
    node_hours: float
    cost: float
    nodes_at_end: int
    pods_at_end: int


class RunSummary(Wire, omit_defaults=False):
    """The statistics of a run; what is unknown, such as a median of nothing or what no recording holds, is null."""

    seconds: float
    cost: float
    node_hours: float
    cpu_utilization: float | None
    memory_utilization: float | None
    evictions: int | None
    evictions_forced: int | None
    moves_per_pod: float | None
    pods_created: int
    pending_pod_seconds: float
    pending_pods_at_end: int
    nodes_launched: int
    nodes_ended: int
    failed_launches: int | None
    interruptions: int | None
    node_lifetime_seconds_median: float | None
    node_lifetime_seconds_mean: float | None
    pdb_refusals: int | None = field(name="pdbRefusals")
    pdb_wait_seconds: float | None = field(name="pdbWaitSeconds")
    nodes_at_end: int
    pods_at_end: int
    unpriced_node_hours: float = 0.0
    """Hours of nodes whose price is not known: the cost leaves them out."""


class Run(NamedTuple):
    """The results of one policy on one seed."""

    summary: RunSummary
    samples: tuple[ClusterSample, ...]
    pools: dict[str, PoolSummary]
    nodes_known: bool = True
    """Whether nodes could be seen; if not, zeros say nothing about them."""


class Integral:
    """A value over time, and its sum over seconds."""

    def __init__(self) -> None:
        self.value = 0.0
        self.total = 0.0
        self._since = 0.0

    def change(self, difference: float, now: float) -> None:
        self.advance(now)
        self.value += difference

    def advance(self, now: float) -> None:
        self.total += self.value * (now - self._since)
        self._since = now


class RunRecorder:
    """Watches the cluster; `begin` sets everything to zero at the end of the warm-up."""

    def __init__(self, world: VirtualWorld, api: Api, cloud: VirtualCloud) -> None:
        self.world = world
        self.cloud = cloud
        self.samples: list[ClusterSample] = []
        self._integrals = {name: Integral() for name in ("price", "unpriced", "nodes", "pods", "pending", *_RESOURCES)}
        self._pool_of: dict[str, str] = {}
        self._by_pool = {pool.name: (Integral(), Integral()) for pool in world.store.pools}
        self._bound: dict[str, tuple[float, float]] = {}
        self._pending: set[str] = set()
        self._refused: dict[str, float] = {}
        self._lifetimes: list[float] = []
        self._counts = dict.fromkeys(_COUNTS, 0)
        self._pdb_wait = 0.0
        self._began = 0.0
        cloud.on_start.append(self._launched)
        cloud.on_end.append(self._terminated)
        cloud.on_price.append(self._repriced)
        api.on_eviction.append(self._eviction)
        world.store.pods.watch(self._pod_changed)
        world.queue.after(0.0, self._sample)

    def begin(self) -> None:
        now = self._began = self.world.queue.time
        for entry in self._all_integrals():
            entry.advance(now)
            entry.total = 0.0
        self.samples, self._lifetimes, self._pdb_wait = [], [], 0.0
        self._counts = dict.fromkeys(_COUNTS, 0)
        self._before = (self.cloud.failed_launches, self.cloud.interrupted)

    _before = (0, 0)

    def _all_integrals(self) -> Iterator[Integral]:
        yield from self._integrals.values()
        for entry in self._by_pool.values():
            yield from entry

    def _add(self, name: str, difference: float) -> None:
        self._integrals[name].change(difference, self.world.queue.time)

    # -- instances -------------------------------------------------------------------------------------------------

    def _launched(self, instance: Instance) -> None:
        self._counts["nodes_launched"] += 1
        claim = self.world.store.claims.get(instance.name)
        self._pool_of[instance.name] = "" if claim is None else claim.metadata.labels.get(NODEPOOL, "")
        self._count_instance(instance, 1)

    def _terminated(self, instance: Instance) -> None:
        self._counts["nodes_ended"] += 1
        self._lifetimes.append(self.world.queue.time - instance.since)
        self._count_instance(instance, -1)

    def _count_instance(self, instance: Instance, sign: int) -> None:
        self._add("price", sign * (instance.price or 0.0))
        self._add("unpriced", sign * (instance.price is None))
        self._add("nodes", sign)
        room = instance.entry.allocatable
        self._add("cpu", sign * room["cpu"].milli / 1000)
        self._add("memory", sign * float(room["memory"].units))
        pool = self._by_pool.get(self._pool_of[instance.name])
        if pool is not None:
            nodes, price = pool
            nodes.change(sign, self.world.queue.time)
            price.change(sign * (instance.price or 0.0), self.world.queue.time)

    def _repriced(self, before: Instance, after: Instance) -> None:
        difference = (after.price or 0.0) - (before.price or 0.0)
        self._add("price", difference)
        self._add("unpriced", int(after.price is None) - int(before.price is None))
        pool = self._by_pool.get(self._pool_of[after.name])
        if pool is not None:
            pool[1].change(difference, self.world.queue.time)

    # -- pods ------------------------------------------------------------------------------------------------------

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new if new is not None else old
        if pod is None:
            return
        if old is None:
            self._counts["pods_created"] += 1
        key = pod.key
        bound = new is not None and new.bound and not new.terminal
        if bound != (key in self._bound):
            self._count_requests(pod, bound=bound)
        pending = new is not None and not new.bound and new.active
        if pending != (key in self._pending):
            self._add("pending", 1 if pending else -1)
            (self._pending.add if pending else self._pending.discard)(key)

    def _count_requests(self, pod: Pod, *, bound: bool) -> None:
        if bound:
            requests = effective_requests(pod)
            cpu = requests["cpu"].milli / 1000 if "cpu" in requests else 0.0
            memory = float(requests["memory"].units) if "memory" in requests else 0.0
            self._bound[pod.key] = (cpu, memory)
        else:
            cpu, memory = self._bound.pop(pod.key)
        sign = 1 if bound else -1
        self._add("cpuUsed", sign * cpu)
        self._add("memoryUsed", sign * memory)
        if not pod.is_daemon:
            self._add("pods", sign)

    def _eviction(self, pod: Pod, status: EvictionStatus) -> None:
        now = self.world.queue.time
        if status is EvictionStatus.CREATED:
            if not pod.terminating and not pod.is_daemon:
                self._counts["evictions"] += 1
            since = self._refused.pop(pod.metadata.uid, None)
            self._pdb_wait += 0.0 if since is None else now - since
        else:
            self._counts["pdb_refusals"] += 1
            self._refused.setdefault(pod.metadata.uid, now)

    def action(self, action: Action) -> None:
        """Count pods that are deleted and were not evicted before."""
        pod = self.world.store.pods.get(action.key) if isinstance(action, DeletePod) else None
        if pod is not None and pod.bound and not pod.terminal and not pod.terminating and not pod.is_daemon:
            self._counts["evictions_forced"] += 1

    # -- results ---------------------------------------------------------------------------------------------------

    def _utilization(self, name: str, *, mean: bool) -> float | None:
        used, room = self._integrals[f"{name}Used"], self._integrals[name]
        used_amount, room_amount = (used.total, room.total) if mean else (used.value, room.value)
        return round(used_amount / room_amount, DIGITS) if room_amount else None

    def _sample(self) -> None:
        self.take_sample()
        self.world.queue.after(seconds(self.world.timings.sample), self._sample)

    def take_sample(self) -> None:
        sums = self._integrals
        self.samples.append(
            ClusterSample(
                time=self.world.queue.time - self._began,
                nodes=round(sums["nodes"].value),
                pods=round(sums["pods"].value),
                pending=len(self._pending),
                price_per_hour=round(sums["price"].value, DIGITS),
                cpu_utilization=self._utilization("cpu", mean=False),
                memory_utilization=self._utilization("memory", mean=False),
                evictions=self._counts["evictions"],
            )
        )

    def summary(self) -> RunSummary:
        now, counts, sums = self.world.queue.time, self._counts, self._integrals
        for entry in self._all_integrals():
            entry.advance(now)
        lifetimes = self._lifetimes
        mean_pods = sums["pods"].total / (now - self._began) if now > self._began else 0.0
        return RunSummary(
            seconds=now - self._began,
            cost=round(sums["price"].total / HOUR, DIGITS),
            node_hours=round(sums["nodes"].total / HOUR, DIGITS),
            cpu_utilization=self._utilization("cpu", mean=True),
            memory_utilization=self._utilization("memory", mean=True),
            **counts,
            moves_per_pod=round(counts["evictions"] / mean_pods, DIGITS) if mean_pods else None,
            pending_pod_seconds=round(sums["pending"].total, 3),
            pending_pods_at_end=len(self._pending),
            failed_launches=self.cloud.failed_launches - self._before[0],
            interruptions=self.cloud.interrupted - self._before[1],
            node_lifetime_seconds_median=round(statistics.median(lifetimes), 3) if lifetimes else None,
            node_lifetime_seconds_mean=round(statistics.fmean(lifetimes), 3) if lifetimes else None,
            pdb_wait_seconds=round(self._pdb_wait, 3),
            nodes_at_end=round(sums["nodes"].value),
            pods_at_end=round(sums["pods"].value),
            unpriced_node_hours=round(sums["unpriced"].total / HOUR, DIGITS),
        )

    def pools(self) -> dict[str, PoolSummary]:
        now, pods = self.world.queue.time, Counter(map(self._pool_under, self.world.store.pods))
        for entry in self._all_integrals():
            entry.advance(now)
        return {
            name: PoolSummary(
                node_hours=round(nodes.total / HOUR, DIGITS),
                cost=round(price.total / HOUR, DIGITS),
                nodes_at_end=round(nodes.value),
                pods_at_end=pods[name],
            )
            for name, (nodes, price) in self._by_pool.items()
        }

    def _pool_under(self, pod: Pod) -> str:
        """The pool of the node that a pod is on; empty for pods of DaemonSets, and where there is none."""
        return "" if pod.is_daemon else self._pool_of.get(pod.spec.node_name, "")
