"""What must hold after any fault: nothing is left behind, no rule was broken, and the controller still works."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, Self, TypeVar

from tests.live.trial import Trial, deployment, pool

from karpool.execution.conditions import DISRUPTION_REASON, INSTANCE_TERMINATING
from karpool.execution.tickets import COMMAND, REPLACES
from karpool.kube.client import Client
from karpool.kube.errors import ConflictError
from karpool.kube.reflector import Reflector
from karpool.kube.resources import Resource
from karpool.live import resources as r
from karpool.model.labels import DISRUPTED_TAINT, NODEPOOL, UNREGISTERED_TAINT
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.wire.objects import Object, condition

T = TypeVar("T", bound=Object)
PROBE = "probe"
_MARKS = (DISRUPTED_TAINT, UNREGISTERED_TAINT)


def in_pool(name: str) -> dict[str, Any]:
    """What is merged into a pod's spec so that it runs in one pool only."""
    return {"nodeSelector": {NODEPOOL: name}}


class Seen(Generic[T]):
    """Keeps the objects of a watch, and checks after every change."""

    def __init__(self, look: Callable[[], None]) -> None:
        self.objects: dict[str, T] = {}
        self._look = look

    def put(self, obj: T) -> None:
        self.objects[obj.key] = obj
        self._look()

    def remove(self, obj: T) -> None:
        self.objects.pop(obj.key, None)
        self._look()

    def replace(self, objects: Sequence[T], _version: str) -> None:
        self.objects = {obj.key: obj for obj in objects}
        self._look()


class Watching:
    """Follows kinds from the moment at which it is entered until it is left."""

    def __init__(self, trial: Trial) -> None:
        self._client = Client(trial.target)
        self._runs: list[tuple[Callable[[], Coroutine[Any, Any, None]], asyncio.Event]] = []
        self._tasks: list[asyncio.Task[None]] = []

    def follow(self, resource: Resource[T], seen: Seen[T]) -> None:
        """Have every change of a kind seen."""
        reflector = Reflector(self._client, resource, seen)
        self._runs.append((reflector.run, reflector.synced))

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        self._tasks = [asyncio.create_task(run()) for run, _ in self._runs]
        for _, synced in self._runs:
            await synced.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._client.__aexit__()


class RuleMonitor(Watching):
    """Watches how many pods of an app are healthy, and how many nodes of a pool are being disrupted."""

    def __init__(self, trial: Trial, *, healthy: Mapping[str, int], leaving: Mapping[str, int]) -> None:
        """`healthy`: the fewest pods by app, once there were as many; `leaving`: the most nodes by pool."""
        super().__init__(trial)
        self.broken: list[str] = []
        self._healthy = healthy
        self._leaving = leaving
        self._armed: set[str] = set()
        self._pods: Seen[Pod] = Seen(self._count_pods)
        self._claims: Seen[NodeClaim] = Seen(self._count_nodes)
        self.follow(r.PODS, self._pods)
        self.follow(r.NODE_CLAIMS, self._claims)

    def _count_pods(self) -> None:
        healthy = Counter(pod.metadata.labels.get("app", "") for pod in self._pods.objects.values() if is_healthy(pod))
        for app, least in self._healthy.items():
            if healthy[app] >= least:
                self._armed.add(app)
            elif app in self._armed:
                self.broken.append(f"only {healthy[app]} of {least} pods of {app} are healthy")

    def _count_nodes(self) -> None:
        leaving = Counter(
            claim.metadata.labels.get(NODEPOOL, "") for claim in self._claims.objects.values() if _leaves(claim)
        )
        for name, most in self._leaving.items():
            if leaving[name] > most:
                self.broken.append(f"{leaving[name]} nodes of pool {name} leave at the same time, not {most}")


def is_healthy(pod: Pod) -> bool:
    """Whether a pod counts as healthy for a PodDisruptionBudget."""
    ready = condition(pod.status.conditions, "Ready")
    return ready is not None and ready.status == "True" and pod.metadata.deletion_timestamp is None


def _leaves(claim: NodeClaim) -> bool:
    """Whether a node is on its way out, as budgets count: marked or deleted, and its machine not yet ended."""
    marked = claim.metadata.deletion_timestamp is not None or COMMAND in claim.metadata.annotations
    return marked and not claim.is_true(INSTANCE_TERMINATING)


# -- nothing is left behind --------------------------------------------------------------------------------------------


async def left_behind(trial: Trial) -> list[str]:
    """What should not be there once everything is at rest."""
    pods, nodes, claims = await trial.pods(), await trial.nodes(), await trial.claims()
    machines = {claim.status.provider_id for claim in claims}
    named = {node.spec.provider_id for node in nodes}
    return [
        *_complaints("pod", pods, lambda pod: [] if is_healthy(pod) else ["does not run"]),
        *_complaints("node", nodes, lambda node: _of_node(node, machines)),
        *_complaints("claim", claims, lambda claim: _of_claim(claim, named)),
    ]


def _complaints(kind: str, objects: Iterable[T], ask: Callable[[T], list[str]]) -> list[str]:
    return [f"{kind} {obj.key} {complaint}" for obj in objects for complaint in ask(obj)]


def _of_node(node: Node, machines: set[str]) -> list[str]:
    complaints = [f"has the taint {taint.key}" for taint in node.spec.taints if taint.key in _MARKS]
    if node.metadata.deletion_timestamp is not None:
        complaints.append(f"is deleted but kept by {node.metadata.finalizers}")
    if node.spec.provider_id not in machines:
        complaints.append("has no claim")
    return complaints


def _of_claim(claim: NodeClaim, machines: set[str]) -> list[str]:
    complaints = [f"has the annotation {key}" for key in (COMMAND, REPLACES) if key in claim.metadata.annotations]
    if claim.metadata.deletion_timestamp is not None:
        complaints.append(f"is deleted but kept by {claim.metadata.finalizers}")
    if condition(claim.status.conditions, DISRUPTION_REASON) is not None:
        complaints.append("has a reason for its disruption")
    if claim.status.provider_id not in machines:
        complaints.append("has no node")
    return complaints


async def wait_until_settled(trial: Trial, pools: Mapping[str, int], seconds: float = 40.0) -> float:
    """Wait until pools have so many nodes and nothing is left behind; how long that took."""
    complaints: list[str] = []

    async def rests() -> bool:
        nodes = Counter(node.metadata.labels.get(NODEPOOL, "") for node in await trial.nodes())
        wrong = [f"pool {name} has {nodes[name]} nodes" for name, count in pools.items() if nodes[name] != count]
        complaints[:] = [*wrong, *await left_behind(trial)]
        return not complaints

    try:
        return await trial.until("everything is at rest", rests, seconds)
    except AssertionError as error:
        raise AssertionError("; ".join(complaints) + f"\n{error}") from None


async def expect_nothing_left_behind(trial: Trial, monitor: RuleMonitor, pools: Mapping[str, int]) -> None:
    """The check at the end of every fault test."""
    await wait_until_settled(trial, pools)
    await expect_still_working(trial)
    await wait_until_settled(trial, pools)
    assert not monitor.broken, monitor.broken


async def expect_still_working(trial: Trial) -> None:
    """A pod that needs a node of its own gets one, and that goes again when the pod is gone."""
    with suppress(ConflictError):
        await trial.make(pool(PROBE, disruption={"consolidateAfter": "0s"}))
        await trial.make(deployment(PROBE, 0, **in_pool(PROBE)))
    await trial.scale(PROBE, 1)

    async def count() -> int:
        return sum(node.metadata.labels.get(NODEPOOL) == PROBE for node in await trial.nodes())

    async def runs() -> bool:
        return any(pod.metadata.labels.get("app") == PROBE for pod in await trial.running())

    async def gone() -> bool:
        return await count() == 0

    await trial.until("a new pod gets a node", runs)
    await trial.scale(PROBE, 0)
    await trial.until("a node that is not needed goes", gone)
