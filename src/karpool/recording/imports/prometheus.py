"""What kube-state-metrics told Prometheus, as a history: asked for window by window, over its HTTP API.

Metrics are samples: what happened between two of them is seen at the later one. They know requests, nodes, owners and
replicas, and neither why pods left nor which rules place them.
"""

import asyncio
import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from karpool.kube.credentials import Credentials, FixedCredentials, TokenFile
from karpool.recording.imports.imported_file import ImportedFile, Report
from karpool.recording.imports.lifetimes import LifetimeStep
from karpool.recording.imports.metric_objects import MetricNode, PodFacts, number, stamp, workload
from karpool.recording.imports.prometheus_api import (
    PrometheusApi,
    PrometheusError,
    PrometheusSeries,
    TooMuchError,
    checked_address,
)
from karpool.recording.observer import Observer
from karpool.recording.records import EVICTION
from karpool.wire.problems import InputError

SOURCE: Final = "prometheus"
POINTS: Final = 120
"""Samples of each series in one answer, at most."""
_MOST_POINTS: Final = 500_000
_PODS: Final = "kube_pod_info"
_NODES: Final = "kube_node_info"
_REQUESTS: Final = {
    "kube_pod_container_resource_requests": "container",
    "kube_pod_init_container_resource_requests": "init",
}
_REPLICAS: Final = {
    "kube_deployment_spec_replicas": ("Deployment", "deployment"),
    "kube_statefulset_replicas": ("StatefulSet", "statefulset"),
}
_DONE: Final = "kube_pod_status_phase"
_READY: Final = "kube_pod_status_ready"
_CREATED: Final = ("kube_pod_created", "kube_node_created")
_NODE_FACTS: Final = ("kube_node_labels", "kube_node_status_allocatable", "kube_node_status_capacity")
_ONLY: Final = {_DONE: 'phase=~"Succeeded|Failed"', _READY: 'condition="true"'}
_HOLDS: Final = (_DONE, _READY)
"""Metrics that are 1 for what is so."""
METRICS: Final = (_PODS, _NODES, *_REQUESTS, *_REPLICAS, _DONE, _READY, *_CREATED, *_NODE_FACTS)
_UNKNOWN: Final = (
    "metrics have no NodePools, NodeClaims, PodDisruptionBudgets and DaemonSets: name NodePools in a scenario"
)
_RULES: Final = "metrics have no affinities, taints, tolerations and spread constraints: pods are replayed without"


_PodKey = tuple[str, str, str]
"""Namespace, name and uid of a pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to ask for."""

    start: datetime
    end: datetime
    step: timedelta = timedelta(seconds=30)
    matchers: tuple[tuple[str, str], ...] = ()
    """Labels that series have to have, as where several clusters are in one Prometheus."""
    token_file: Path | None = None
    points: int = POINTS


def import_prometheus(sources: Sequence[str], file: ImportedFile, report: Report, asked: Asked) -> None:
    """A Prometheus by its address."""
    if len(sources) != 1:
        raise InputError.at("SOURCE", "of prometheus is one address, such as http://localhost:9090")
    if asked.end <= asked.start:
        raise InputError.at("--end", "is not after --start")
    if (asked.end - asked.start) / asked.step > _MOST_POINTS:
        raise InputError.at(
            "--step", f"is too short for so long a time: there would be more than {_MOST_POINTS:,} steps"
        )
    address = checked_address(sources[0], shows_token=asked.token_file is not None)

    async def run() -> None:
        timeout = aiohttp.ClientTimeout(total=300, sock_connect=10, sock_read=120)
        credentials: Credentials = FixedCredentials() if asked.token_file is None else TokenFile(asked.token_file)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
            await _Importer(PrometheusApi(address, session, credentials), file, report, asked).play()

    asyncio.run(run())


@dataclass(slots=True)
class _Seen:
    """A pod that is there: what was told of it last."""

    facts: PodFacts
    node: str = ""
    ready: datetime | None = None
    done: bool = False


@dataclass(slots=True)
class _Importer:
    api: PrometheusApi
    file: ImportedFile
    report: Report
    asked: Asked
    observer: Observer = field(init=False)
    _pods: dict[_PodKey, _Seen] = field(default_factory=dict)
    _nodes: dict[str, MetricNode] = field(default_factory=dict)
    _replicas: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _order: "count[int]" = field(default_factory=count)
    _any: bool = False

    async def play(self) -> None:
        start, end, step = self.asked.start.timestamp(), self.asked.end.timestamp(), self.asked.step.total_seconds()
        self.observer = self.file.begin(self.asked.start, SOURCE)
        kinds = ("NodePool", "NodeClaim", "PodDisruptionBudget", "DaemonSet")
        self.file.lacks(kinds, _UNKNOWN, self.asked.start)
        self.file.lacks((EVICTION,), "metrics do not say which pods were evicted", self.asked.start)
        self.file.note(_RULES)
        at, points, steps = start, self.asked.points, int((end - start) / step) + 1
        while at <= end:
            self.report("Asking Prometheus", int((at - start) / step), steps)
            last = min(at + (points - 1) * step, at + int((end - at) / step) * step)
            try:
                found = await self._window(at, last, step)
            except TooMuchError as error:
                if points == 1:
                    raise PrometheusError(f"{error}, even for a single moment") from error
                points //= 2
                continue
            self._take(found, at, last, step)
            at = last + step
        if not self._any:
            between = f"between {self.asked.start:%Y-%m-%dT%H:%MZ} and {self.asked.end:%Y-%m-%dT%H:%MZ}"
            why = f"has no {_PODS} {between}; is kube-state-metrics scraped, and are the times and matchers right?"
            raise InputError.at(str(self.api.base), why)
        self.observer.alive(self.asked.end)

    async def _window(self, start: float, end: float, step: float) -> dict[str, list[PrometheusSeries]]:
        """All metrics from a time to another."""
        found = {}
        for metric in METRICS:
            own = [_ONLY[metric]] if metric in _ONLY else []
            chosen = ",".join([*own, *(f"{name}={_quoted(value)}" for name, value in self.asked.matchers)])
            query = f"{metric}{{{chosen}}}" + (" == 1" if metric in _HOLDS else "")
            found[metric] = await self.api.range(query, start, end, step)
        return found

    # -- a window ------------------------------------------------------------------------------------------------

    def _take(self, found: dict[str, list[PrometheusSeries]], start: float, end: float, step: float) -> None:
        self._learn_nodes(found)
        changes = [*self._node_steps(found, start, end, step), *self._pod_steps(found, start, end, step)]
        changes += self._replica_steps(found)
        for change in sorted(changes, key=lambda change: change[:2]):
            change[2].tell()

    def _step(self, at: float, tell: Any, rank: int) -> tuple[float, int, LifetimeStep]:
        """Nodes come before pods, and go after them; what happens at one time keeps its order."""
        return at, rank * 10**9 + next(self._order), LifetimeStep(timedelta(seconds=at), tell)

    def _learn_nodes(self, found: dict[str, list[PrometheusSeries]]) -> None:
        for series in found[_NODES]:
            name = series.metric.get("node", "")
            if name and name not in self._nodes:
                self._nodes[name] = MetricNode(series.metric)
        for metric in (*_NODE_FACTS, "kube_node_created"):
            for series in found[metric]:
                facts = self._nodes.get(series.metric.get("node", ""))
                if facts is not None and series.values:
                    _learn_node(facts, metric, series)

    def _node_steps(
        self, found: dict[str, list[PrometheusSeries]], start: float, end: float, step: float
    ) -> Iterator[tuple[float, int, LifetimeStep]]:
        there = _presence(found[_NODES], ("node",))
        for (name,), times in there.items():
            self._any = True
            yield self._step(times[0], partial(self._saw_node, name, times[0]), 0)
            if times[-1] < end - step / 2:
                yield self._step(times[-1] + step, partial(self._lost_node, name, times[-1] + step), 2)
        for name in [name for name in self.observer.history.kinds["Node"] if (name,) not in there]:
            yield self._step(start, partial(self._lost_node, name, start), 2)

    def _saw_node(self, name: str, at: float) -> None:
        now = _moment(at)
        self.observer.saw("Node", self._nodes[name].node(now if self._is_new("Node", name) else self._since(name)), now)

    def _is_new(self, kind: str, key: str) -> bool:
        return key not in self.observer.history.kinds[kind]

    def _since(self, name: str) -> datetime:
        """When a node that is there became ready, as it was written."""
        node = self.observer.history.decoded("Node", name)
        since = next((entry.last_transition_time for entry in node.status.conditions), None)
        return since or self.asked.start

    def _lost_node(self, name: str, at: float) -> None:
        self._nodes.pop(name, None)
        self.observer.lost("Node", name, _moment(at))

    # -- pods ----------------------------------------------------------------------------------------------------

    def _pod_steps(
        self, found: dict[str, list[PrometheusSeries]], start: float, end: float, step: float
    ) -> Iterator[tuple[float, int, LifetimeStep]]:
        infos: dict[_PodKey, list[PrometheusSeries]] = {}
        for series in found[_PODS]:
            if series.values and series.metric.get("pod"):
                infos.setdefault(_pod_key(series), []).append(series)
        facts = self._pod_facts(found, infos)
        ready, done = _presence(found[_READY], _POD), _presence(found[_DONE], (*_POD, "phase"))
        ended = {key[:3]: (times[0], key[3]) for key, times in done.items()}
        for key, listed in infos.items():
            self._any = True
            for series in sorted(listed, key=lambda series: series.values[0][0]):
                at, node = series.values[0][0], series.metric.get("node", "")
                yield self._step(at, partial(self._saw_pod, key, at, facts[key], node=node), 1)
            if key in ready:
                yield self._step(ready[key][0], partial(self._saw_pod, key, ready[key][0], facts[key], ready=True), 1)
            if key in ended:
                at, phase = ended[key]
                yield self._step(at, partial(self._saw_pod, key, at, facts[key], phase=phase), 1)
            last = max(series.values[-1][0] for series in listed)
            if last < end - step / 2:
                yield self._step(last + step, partial(self._lost_pod, key, last + step), 1)
        for key in [key for key in self._pods if key not in infos]:
            yield self._step(start, partial(self._lost_pod, key, start), 1)

    def _pod_facts(
        self, found: dict[str, list[PrometheusSeries]], infos: dict[_PodKey, list[PrometheusSeries]]
    ) -> dict[_PodKey, PodFacts]:
        facts = {key: PodFacts(listed[0].metric) for key, listed in infos.items()}
        for metric, kind in _REQUESTS.items():
            for series in found[metric]:
                of = facts.get(_pod_key(series))
                container, resource = series.metric.get("container", ""), series.metric.get("resource", "")
                if of is not None and series.values and resource:
                    of.requests[kind, container, resource] = series.values[-1][1]
        for series in found["kube_pod_created"]:
            of = facts.get(_pod_key(series))
            if of is not None and series.values:
                of.created = stamp(series.values[-1][1])
        return facts

    def _saw_pod(
        self,
        key: _PodKey,
        at: float,
        facts: PodFacts,
        *,
        node: str = "",
        ready: bool = False,
        phase: str = "",
    ) -> None:
        now = _moment(at)
        seen = self._pods.get(key)
        if seen is None:
            seen = self._pods[key] = _Seen(facts)
        seen.facts = facts if facts.requests else seen.facts
        seen.node = node or seen.node
        seen.ready = now if ready and seen.ready is None else seen.ready
        if not seen.done:
            seen.done = bool(phase)
            self.observer.saw("Pod", seen.facts.pod(now, node=seen.node, ready=seen.ready, phase=phase), now)

    def _lost_pod(self, key: _PodKey, at: float) -> None:
        seen = self._pods.pop(key, None)
        if seen is not None and not seen.done:
            self.observer.lost("Pod", f"{key[0]}/{key[1]}", _moment(at))

    # -- workloads -----------------------------------------------------------------------------------------------

    def _replica_steps(self, found: dict[str, list[PrometheusSeries]]) -> Iterator[tuple[float, int, LifetimeStep]]:
        for metric, (kind, label) in _REPLICAS.items():
            for series in found[metric]:
                namespace, name = series.metric.get("namespace", ""), series.metric.get(label, "")
                key = (kind, namespace, name)
                for at, text in series.values:
                    replicas = number(text)
                    if name and replicas is not None and self._replicas.get(key) != int(replicas):
                        self._replicas[key] = int(replicas)
                        obj = workload(kind, namespace, name, int(replicas))
                        yield self._step(at, partial(self.observer.saw, kind, obj, _moment(at)), 0)


_POD: Final = ("namespace", "pod", "uid")


def _pod_key(series: PrometheusSeries) -> _PodKey:
    said = series.metric
    return said.get("namespace", ""), said.get("pod", ""), said.get("uid", "")


def _presence(listed: Iterable[PrometheusSeries], names: Sequence[str]) -> dict[tuple[str, ...], list[float]]:
    """When there were samples, in order, by these labels."""
    found: dict[tuple[str, ...], list[list[float]]] = {}
    for series in listed:
        if series.values and series.metric.get(names[0]):
            key = tuple(series.metric.get(name, "") for name in names)
            found.setdefault(key, []).append([at for at, _ in series.values])
    return {key: times[0] if len(times) == 1 else list(heapq.merge(*times)) for key, times in found.items()}


def _learn_node(facts: MetricNode, metric: str, series: PrometheusSeries) -> None:
    value = series.values[-1][1]
    if metric == "kube_node_created":
        facts.created = stamp(value)
    elif metric == "kube_node_labels":
        facts.labels = series.metric
    else:
        amounts = facts.allocatable if metric.endswith("allocatable") else facts.capacity
        amounts[series.metric.get("resource", "")] = value


def _quoted(value: str) -> str:
    return msgspec.json.encode(value).decode()


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
