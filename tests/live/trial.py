"""A trial: the controller in this process, on a control plane that no other test uses at the same time."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import yaml
from tests.live.control_plane import ControlPlane

from karpool.catalog.sources import open_catalog
from karpool.controller.ports import Intervals
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.settings import PREFIX, DisruptionSettings
from karpool.execution.settings import ExecutionSettings
from karpool.kube.api_objects import Event
from karpool.kube.client import Client
from karpool.kube.election import LeaseTimes
from karpool.kube.errors import ApiError, ConflictError, NotFoundError
from karpool.kube.kubeconfig import find_target
from karpool.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, LEASES, Resource
from karpool.kube.target import Target
from karpool.live import crds
from karpool.live import resources as r
from karpool.model import workloads
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.operator.kwok_node_class import KWOK_NODE_CLASSES
from karpool.operator.operator import Operator
from karpool.operator.settings import JournalSettings, LeaseSettings, RunSettings
from karpool.optimization.warmup import warm_up

QUICK = Intervals(poll=0.3, patience=0.3, refresh=1.0, validation=0.5, batch_idle=0.3, batch_most=1.0, latency=0.02)
QUICK_LEASE = LeaseSettings(times=LeaseTimes(duration=3.0, renew_deadline=2.0, retry_period=0.3))
BRAKES = BrakeSettings(
    after_failure=timedelta(seconds=1),
    after_scale_up=timedelta(0),
    after_replacement=timedelta(0),
    after_failed_launch=timedelta(seconds=1),
)
SETTINGS = RunSettings(
    provider="kwok",
    dry_run=False,
    decisions=DisruptionSettings(search=PREFIX, brakes=BRAKES),
    intervals=QUICK,
    execution=ExecutionSettings(
        nomination=timedelta(seconds=1), shortest_drain=timedelta(seconds=0.5), instance_retry=timedelta(seconds=0.5)
    ),
    lease=QUICK_LEASE,
    explain_every=timedelta(0),
    metrics_address=None,
    health_address=None,
)
NODE_CLASS = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}
MERGE = "application/merge-patch+json"
DEPLOYMENTS, JOBS = r.DEPLOYMENTS, r.resource_of(workloads.Job)
_PATHS: dict[str, Resource[Any]] = {
    "Deployment": DEPLOYMENTS,
    "StatefulSet": r.STATEFUL_SETS,
    "DaemonSet": r.DAEMON_SETS,
    "Job": JOBS,
    "PodDisruptionBudget": r.POD_DISRUPTION_BUDGETS,
    "Pod": r.PODS,
    "Node": r.NODES,
    "NodePool": r.NODE_POOLS,
    "NodeClaim": r.NODE_CLAIMS,
    "KWOKNodeClass": KWOK_NODE_CLASSES,
    "Namespace": r.NAMESPACES,
    "PodTemplate": r.POD_TEMPLATES,
    "CapacityBuffer": r.CAPACITY_BUFFERS,
    "ResourceClaimTemplate": r.RESOURCE_CLAIM_TEMPLATES,
    "ResourceSlice": r.RESOURCE_SLICES,
    "DeviceClass": r.DEVICE_CLASSES,
}
# What a test leaves behind, in the order in which it goes without anything coming again.
_LEFT: tuple[Resource[Any], ...] = (
    DEPLOYMENTS,
    r.STATEFUL_SETS,
    r.DAEMON_SETS,
    JOBS,
    r.REPLICA_SETS,
    r.CAPACITY_BUFFERS,
    r.POD_TEMPLATES,
    r.POD_DISRUPTION_BUDGETS,
    r.NODE_POOLS,
    KWOK_NODE_CLASSES,
    r.NODE_CLAIMS,
    r.NODES,
    r.PODS,
    r.RESOURCE_CLAIMS,
    r.RESOURCE_CLAIM_TEMPLATES,
    r.RESOURCE_SLICES,
    r.DEVICE_CLASSES,
    LEASES,
)


def machines(*types: str) -> list[dict[str, Any]]:
    """The requirements of a pool of on-demand amd64 machines, of these types alone if any are named."""
    requirements = {
        "karpenter.sh/capacity-type": ["on-demand"],
        "kubernetes.io/arch": ["amd64"],
        "kubernetes.io/os": ["linux"],
        **({"node.kubernetes.io/instance-type": [f"{name}-amd64-linux" for name in types]} if types else {}),
    }
    return [{"key": key, "operator": "In", "values": values} for key, values in requirements.items()]


def pool(name: str = "default", **spec: Any) -> dict[str, Any]:
    """A NodePool of on-demand amd64 machines that may be disrupted at once; `spec` replaces parts of it."""
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    whole = {
        "template": {"spec": {"requirements": machines(), "nodeClassRef": ref}},
        "disruption": {"consolidateAfter": "1s", "budgets": [{"nodes": "100%"}]},
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": _merged(whole, spec),
    }


def deployment(name: str, replicas: int, *, cpu: str = "1", memory: str = "1Gi", **pod: Any) -> dict[str, Any]:
    """A Deployment in `default`; `pod` is merged into its pods' spec."""
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i", "resources": resources}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": _merged(spec, pod)},
        },
    }


def guarded_pod(node: str) -> dict[str, Any]:
    """A pod that must not be disrupted, and that somebody has bound to a node, whatever taints it has."""
    metadata = {"name": "guarded", "namespace": "default", "annotations": {DO_NOT_DISRUPT: "true"}}
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]
    spec = {"nodeName": node, "containers": containers, "tolerations": [{"operator": "Exists"}]}
    return {"kind": "Pod", "metadata": metadata, "spec": spec}


def budget(name: str, **spec: Any) -> dict[str, Any]:
    """A PodDisruptionBudget for the Deployment of the same name."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, **spec},
    }


def buffer(name: str, *, kind: str = "Deployment", of: str = "web", **spec: Any) -> dict[str, Any]:
    """A CapacityBuffer for pods of a workload, or of a PodTemplate."""
    ref = {"podTemplateRef": {"name": of}} if kind == "PodTemplate" else {"scalableRef": {"kind": kind, "name": of}}
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**ref, **spec},
    }


def _merged(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    merged = dict(whole)
    for key, value in part.items():
        current = merged.get(key)
        merged[key] = _merged(current, value) if isinstance(current, dict) and isinstance(value, dict) else value
    return merged


class Trial:
    """Use as an async context manager; what the test made is gone afterwards, whatever became of it."""

    def __init__(self, plane: ControlPlane, settings: RunSettings = SETTINGS) -> None:
        self.plane = plane
        self.settings = settings
        self.target = find_target(kubeconfig=plane.kubeconfig())
        self.client = Client(self.target)
        self.catalog = open_catalog("kwok")
        self.operators: dict[asyncio.Task[None], tuple[Operator, asyncio.Event]] = {}

    async def __aenter__(self) -> Self:
        # Kernels that are still to be compiled would keep a controller from deciding for minutes.
        warm_up()
        await self.client.__aenter__()
        await self._install()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            for task in list(self.operators):
                with suppress(Exception, asyncio.CancelledError):
                    await self.kill(task)
            await self._clean()
        finally:
            await self.client.__aexit__()

    # -- the controller ------------------------------------------------------------------------------------------

    def start(
        self, settings: RunSettings | None = None, *, target: Target | None = None, **options: Any
    ) -> asyncio.Task[None]:
        """Start a controller; `target`: another way to the API server than straight ahead."""
        operator = Operator(
            settings or self.settings, target or self.target, lambda _nodes, _claims, _pools: self.catalog, **options
        )
        stop = asyncio.Event()
        task = asyncio.create_task(operator.run(stop))
        self.operators[task] = (operator, stop)
        return task

    async def stop(self, task: asyncio.Task[None]) -> None:
        """Ask a controller to stop, and wait until it has."""
        self.operators.pop(task)[1].set()
        await asyncio.wait_for(task, 10)

    async def kill(self, task: asyncio.Task[None]) -> None:
        """End a controller as a signal does that cannot be caught: nothing more is sent, not even a goodbye."""
        operator, _ = self.operators.pop(task)
        await operator.client.__aexit__()
        task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()  # whatever it died of: it was meant to die

    # -- objects -------------------------------------------------------------------------------------------------

    async def make(self, *manifests: dict[str, Any]) -> None:
        """Create objects."""
        for manifest in manifests:
            await self.client.create(
                _PATHS[manifest["kind"]], manifest, namespace=manifest["metadata"].get("namespace", "")
            )

    async def change(self, kind: str, name: str, patch: dict[str, Any], *, subresource: str = "") -> None:
        """Patch an object; those with a namespace are in `default`."""
        resource = _PATHS[kind]
        namespace = "default" if resource.namespaced else ""
        path = resource.path(namespace, name, subresource)
        await self.client.raw("PATCH", path, body=json.dumps(patch).encode(), content_type=MERGE)

    async def scale(self, name: str, replicas: int) -> None:
        """Give a Deployment another number of replicas."""
        await self.change("Deployment", name, {"spec": {"replicas": replicas}})

    async def delete(self, kind: str, name: str) -> None:
        """Delete an object."""
        resource = _PATHS[kind]
        await self.client.delete(resource, name, namespace="default" if resource.namespaced else "")

    async def pods(self) -> tuple[Pod, ...]:
        """The pods in `default`."""
        return (await self.client.list(r.PODS, namespace="default")).items

    async def running(self) -> list[Pod]:
        """The pods in `default` that run and are not told to stop."""
        pods = await self.pods()
        return [pod for pod in pods if pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None]

    async def nodes(self) -> tuple[Node, ...]:
        """All nodes."""
        return (await self.client.list(r.NODES)).items

    async def claims(self) -> tuple[NodeClaim, ...]:
        """All NodeClaims."""
        return (await self.client.list(r.NODE_CLAIMS)).items

    async def events(self, reason: str, about: str = "") -> list[Event]:
        """What Karpool told people for this reason, about one object or any."""
        events = (await self.client.list(EVENTS)).items
        ours = [event for event in events if event.reporting_component == "karpool" and event.reason == reason]
        return [event for event in ours if about in ("", event.involved_object.name)]

    async def until_running(self, count: int, seconds: float = 40.0) -> list[Pod]:
        """Wait until so many pods run, no more and no fewer."""

        async def holds() -> bool:
            return len(await self.running()) == count

        await self.until(f"{count} pods run", holds, seconds)
        return await self.running()

    async def until_nodes(self, count: int, seconds: float = 40.0) -> tuple[Node, ...]:
        """Wait until there are so many nodes and NodeClaims, and none of them is on its way out."""

        async def holds() -> bool:
            objects = (*await self.nodes(), *await self.claims())
            return len(objects) == 2 * count and not any(obj.metadata.deletion_timestamp for obj in objects)

        await self.until(f"there are {count} nodes", holds, seconds)
        return await self.nodes()

    async def until_initialized(self) -> None:
        """Wait until all NodeClaims have nodes that may be used, and say so."""

        async def holds() -> bool:
            kinds = ("Launched", "Registered", "Initialized", "Ready")
            return all(claim.is_true(kind) for claim in await self.claims() for kind in kinds)

        await self.until("all NodeClaims are initialized", holds)

    async def until(self, what: str, holds: Callable[[], Awaitable[bool]], seconds: float = 40.0) -> float:
        """Wait until something holds; how long that took. Fails with what the cluster looks like then."""
        began = time.monotonic()
        while not await holds():
            for task in self.operators:
                if task.done():
                    task.result()
            if time.monotonic() - began > seconds:
                raise AssertionError(f"after {seconds:g} s not yet: {what}\n{await self.picture()}")
            await asyncio.sleep(0.1)
        return time.monotonic() - began

    async def picture(self) -> str:
        """What there is, for a person."""
        lines = [f"pod {pod.key} {pod.status.phase} on {pod.spec.node_name or '-'}" for pod in await self.pods()]
        lines += [f"node {node.name} ready={node.ready} {[*map(str, node.spec.taints)]}" for node in await self.nodes()]
        for claim in await self.claims():
            conditions = [
                f"{condition.type}={condition.status} {condition.reason}" for condition in claim.status.conditions
            ]
            lines.append(f"claim {claim.name} deleted={claim.metadata.deletion_timestamp} {conditions}")
            lines += [f"  {key}={value}" for key, value in claim.metadata.annotations.items()]
        return "\n".join(lines)

    # -- before and after ----------------------------------------------------------------------------------------

    async def _install(self) -> None:
        for document in yaml.safe_load_all(crds.definitions()):
            await self._made(CUSTOM_RESOURCE_DEFINITIONS, document)
        for resource in (r.NODE_POOLS, r.NODE_CLAIMS, KWOK_NODE_CLASSES):
            await self.until(f"{resource.plural} are served", lambda resource=resource: self._served(resource))
        await self._clean()  # of what tests without a trial left on this plane
        await self._made(r.NAMESPACES, {"metadata": {"name": "karpool"}})
        await self._made(KWOK_NODE_CLASSES, NODE_CLASS)

    async def _made(self, resource: Any, document: dict[str, Any]) -> None:
        with suppress(ConflictError):
            await self.client.create(resource, document)

    async def _served(self, resource: Any) -> bool:
        try:
            await self.client.raw("GET", resource.path())
        except ApiError:
            return False
        return True

    async def _clean(self) -> None:
        for resource in _LEFT:
            listed = await self.client.list(resource)
            await self._gone(resource, [obj for obj in listed.items if obj.metadata.namespace != "kube-system"])
        await self.until("everything is gone", self._is_clean)

    async def _gone(self, resource: Any, objects: Iterable[Any]) -> None:
        for obj in objects:
            space = obj.metadata.namespace
            with suppress(NotFoundError, ConflictError):
                if obj.metadata.finalizers:
                    patch = {"metadata": {"finalizers": None}}
                    await self.client.merge_patch(resource, obj.name, patch, namespace=space)
                await self.client.delete(resource, obj.name, namespace=space, grace_seconds=0)

    async def _is_clean(self) -> bool:
        for resource in (r.PODS, r.NODES, r.NODE_CLAIMS, r.NODE_POOLS):
            listed = await self.client.list(resource)
            if listed.items:
                await self._gone(resource, listed.items)
                return False
        return True


async def fill_three_nodes(trial: Trial, replicas: int, *, cpu: str, others: Iterable[dict[str, Any]] = ()) -> None:
    """Have the Deployment web on three nodes that are too large for it, in a pool that is not consolidated yet."""
    template = {"spec": {"requirements": machines("c-4x")}}
    await trial.make(pool(template=template, disruption={"consolidateAfter": "Never"}))
    trial.start()
    await trial.make(deployment("filler", 3, cpu="2400m"))
    await trial.until_running(3)
    await trial.make(deployment("web", replicas, cpu=cpu), *others)
    await trial.until_running(3 + replicas)
    await trial.until_nodes(3)
    await trial.scale("filler", 0)
    await trial.until_running(replicas)
    # Nodes that pods were sent to a moment ago would take no part.
    await asyncio.sleep(SETTINGS.execution.nomination.total_seconds() + 0.5)


def play(plane: ControlPlane, scenario: Callable[[Trial], Awaitable[None]], settings: RunSettings = SETTINGS) -> None:
    """Run a story on a trial of its own."""

    async def whole() -> None:
        async with Trial(plane, settings) as trial:
            await scenario(trial)

    asyncio.run(whole())


def with_journal(path: Path, settings: RunSettings = SETTINGS) -> RunSettings:
    """Settings of a controller that keeps a journal."""
    return replace(settings, journal=JournalSettings(path=path))


def journal(path: Path, kind: str) -> list[dict[str, Any]]:
    """The lines of one kind in a journal."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in map(json.loads, lines) if line["kind"] == kind]
