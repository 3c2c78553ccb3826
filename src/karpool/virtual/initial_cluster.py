"""A scenario that begins with a real cluster: its nodes as they are, and its pods where they are, with their ages.

Pods of a StatefulSet or DaemonSet stay such; those of any other owner become a Deployment of as many replicas. Volumes
keep pods where they can be reached. Nodes without a pool stay as long as nobody drains them.
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.controller.store import ClusterStore
from karpool.model import labels as names
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.model.pod import Pod, PodSpec, PodStatus
from karpool.virtual.changes import with_metadata
from karpool.virtual.cloud import PROVIDER, VirtualCloud
from karpool.virtual.deployments import REVISION, DeploymentOwner
from karpool.virtual.owners import Owner
from karpool.virtual.scenario import MONDAY, Scenario, Workload
from karpool.virtual.statefulsets import REVISION as STATEFUL_REVISION
from karpool.virtual.statefulsets import StatefulSetOwner, number_of
from karpool.virtual.workloads import Workloads
from karpool.wire.objects import condition

_MOMENT: Final = timedelta(minutes=1)
_POD_LABELS: Final = frozenset(
    {REVISION, STATEFUL_REVISION, "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"}
)
"""Labels that are not the same on all pods of an owner."""
Kind = Literal["Deployment", "StatefulSet", "DaemonSet"]
Group = tuple[str, Kind, str]
"""The namespace, kind and name of a workload."""


class UnknownNodeError(Exception):
    """A node of the cluster is of a type that nobody can price or start."""


def with_cluster(scenario: Scenario, objects: Objects) -> Scenario:
    """The scenario with the pools, workloads and budgets of a cluster; its own come on top, or instead."""
    own = {(entry.namespace, entry.name) for entry in scenario.workloads}
    pools = {pool.name for pool in scenario.pools}
    found = [entry for entry in _workloads(objects) if (entry.namespace, entry.name) not in own]
    return replace(
        scenario,
        start=_latest(objects) + _MOMENT if scenario.start == MONDAY else scenario.start,
        pools=(*scenario.pools, *(pool for pool in objects.node_pools if pool.name not in pools)),
        workloads=(*scenario.workloads, *found),
        budgets=(*scenario.budgets, *objects.pod_disruption_budgets),
    )


def furnish(store: ClusterStore, objects: Objects) -> None:
    """Put in what decides about pods without moving itself: volumes, namespaces and priorities."""
    for claim in objects.persistent_volume_claims:
        store.volume_claims.put(claim)
    for volume in objects.persistent_volumes:
        store.volumes.put(volume)
    for kind in objects.storage_classes:
        store.storage_classes.put(kind)
    for limits in objects.csi_nodes:
        store.csi_nodes.put(limits)
    for namespace in objects.namespaces:
        store.namespaces.put(namespace)
    for priority in objects.priority_classes:
        store.priority_classes.put(priority)


def settle(cloud: VirtualCloud, workloads: Workloads, objects: Objects) -> None:
    """Put nodes and pods where they are, before the clock runs."""
    claims = {claim.status.node_name: claim for claim in objects.node_claims if claim.status.node_name}
    for node in objects.nodes:
        if node.metadata.deletion_timestamp is None:
            _place_node(cloud, node, claims.get(node.name))
    for group, pods in _groups(objects).items():
        owner = _owner(workloads, group)
        if owner is not None:
            _hand_over(owner, pods, objects)


# -- nodes -------------------------------------------------------------------------------------------------------


def _place_node(cloud: VirtualCloud, node: Node, claim: NodeClaim | None) -> None:
    """A node with its machine and, if a pool has it, its claim, which bears the node's name here."""
    found = _offered(cloud.catalog, node.metadata.labels)
    if found is None:
        kind = node.metadata.labels.get(names.INSTANCE_TYPE, "")
        said = f"the catalogue has no type {kind}" if kind else f"it has no label {names.INSTANCE_TYPE}"
        raise UnknownNodeError(f"node {node.name} cannot be simulated: {said}")
    store = cloud.world.store
    if claim is not None:
        renamed = with_metadata(claim, name=node.name, uid=f"claim-{node.name}")
        status = replace(renamed.status, provider_id=PROVIDER + node.name, node_name=node.name)
        store.claims.put(replace(renamed, status=status))
    cloud.start(node.name, *found)
    placed = with_metadata(node, uid=f"node-{node.name}")
    store.nodes.put(replace(placed, spec=replace(placed.spec, provider_id=PROVIDER + node.name)))


def _offered(catalog: Catalog, labels: Mapping[str, str]) -> tuple[InstanceType, Offering] | None:
    """The machine that a node's labels name; in another zone or capacity type if the catalogue has none there."""
    entry = catalog.by_name.get(labels.get(names.INSTANCE_TYPE, ""))
    if entry is None or not entry.offerings:
        return None
    zone, kind = labels.get(names.ZONE, ""), labels.get(names.CAPACITY_TYPE, names.ON_DEMAND)
    return entry, max(entry.offerings, key=lambda one: (one.capacity_type == kind, one.zone == zone))


# -- pods --------------------------------------------------------------------------------------------------------


def _owner(workloads: Workloads, group: Group) -> Owner | None:
    """Who takes over the pods of a group; a Deployment of that name takes any, but those of DaemonSets."""
    namespace, kind, name = group
    alike = [one for one in workloads.owners if (one.workload.namespace, one.workload.name) == (namespace, name)]
    same = next((one for one in alike if one.workload.kind == kind), None)
    if same is not None or kind == "DaemonSet":
        return same
    return next((one for one in alike if isinstance(one, DeploymentOwner)), None)


def _hand_over(owner: Owner, pods: list[Pod], objects: Objects) -> None:
    if isinstance(owner, StatefulSetOwner):
        owner.first, owner.wanted = _numbering(pods, objects)
    else:
        owner.wanted = sum(pod.active for pod in pods)
    for pod in pods:
        placed = _placed(pod, owner.world.store, owner.world.queue.moment)
        if placed is not None:
            owner.adopt(placed)


def _numbering(pods: list[Pod], objects: Objects) -> tuple[int, int]:
    """The number of a StatefulSet's first pod, and how many it wants: what it says, or what its pods show."""
    numbers = {number_of(pod) for pod in pods}
    said = [entry.spec.replicas for entry in objects.stateful_sets if entry.key == _owner_key(pods[0])]
    if not said or said[0] is None:
        return min(numbers), max(numbers) + 1 - min(numbers)
    return min(numbers) if len(numbers) == said[0] else 0, said[0]


def _placed(pod: Pod, store: ClusterStore, now: datetime) -> Pod | None:
    """The pod as it begins here: where it is and as it fares, or waiting; None for one that goes and has no node."""
    meta = replace(pod.metadata, uid=pod.metadata.uid or f"pod-{pod.key}")
    if pod.spec.node_name in store.nodes:
        start = pod.status.start_time or pod.metadata.creation_timestamp or now
        # A kubelet starts whoever does not say whether it is ready.
        phase = pod.status.phase if condition(pod.status.conditions, "Ready") is not None else "Pending"
        return replace(pod, metadata=meta, status=replace(pod.status, phase=phase, start_time=start))
    if not pod.active or pod.is_daemon:
        return None
    spec = replace(pod.spec, node_name="")
    return replace(pod, metadata=meta, spec=spec, status=PodStatus(phase="Pending"))


def _owner_key(pod: Pod) -> str:
    found = next((one for one in pod.metadata.owner_references if one.controller), None)
    return f"{pod.metadata.namespace}/{pod.name if found is None else found.name}"


def _group(pod: Pod) -> Group:
    """Whose a pod is; a ReplicaSet of a Deployment has its name and the hash of its template."""
    namespace, _, name = _owner_key(pod).partition("/")
    if pod.is_daemon:
        return namespace, "DaemonSet", name
    if pod.owned_by("StatefulSet") and pod.name.removeprefix(f"{name}-").isdecimal():
        return namespace, "StatefulSet", name
    mark = pod.metadata.labels.get(REVISION, "") if pod.owned_by("ReplicaSet") else ""
    return namespace, "Deployment", name.removesuffix(f"-{mark}") if mark else name


def _groups(objects: Objects) -> dict[Group, list[Pod]]:
    """Pods by their workload, without those that have ended, that belong to a node, or that nobody may schedule."""
    found: dict[Group, list[Pod]] = defaultdict(list)
    for pod in objects.pods:
        if not pod.terminal and not pod.is_mirror and (pod.bound or pod.waits_for_node):
            found[_group(pod)].append(pod)
    return found


# -- workloads ---------------------------------------------------------------------------------------------------


def _workloads(objects: Objects) -> list[Workload]:
    written = {entry.key: entry.spec.template.spec for entry in objects.daemon_sets}
    return [
        Workload(
            name=name,
            kind=kind,
            namespace=namespace,
            replicas=_replicas(kind, pods, objects),
            labels={key: value for key, value in pods[0].metadata.labels.items() if key not in _POD_LABELS},
            annotations=pods[0].metadata.annotations,
            spec=_template(kind, pods[0], written.get(_owner_key(pods[0]))),
        )
        for (namespace, kind, name), pods in _groups(objects).items()
    ]


def _replicas(kind: Kind, pods: list[Pod], objects: Objects) -> int:
    if kind == "StatefulSet":
        return _numbering(pods, objects)[1]
    return sum(pod.active for pod in pods) if kind == "Deployment" else 0


def _template(kind: Kind, pod: Pod, written: PodSpec | None) -> PodSpec:
    """What pods that are made anew ask for."""
    if kind == "DaemonSet":
        # Its pods are bound to their nodes by an affinity that only the template does not have.
        return written or replace(pod.spec, node_name="", affinity=None)
    # Claims that come with a pod, or are its own by number, are not those of another pod.
    shared = [
        volume
        for volume in pod.spec.volumes
        if volume.ephemeral is None and (kind != "StatefulSet" or volume.persistent_volume_claim is None)
    ]
    return replace(pod.spec, node_name="", volumes=tuple(shared))


def _latest(objects: Objects) -> datetime:
    """The last moment that the cluster tells of."""
    every = (*objects.pods, *objects.nodes, *objects.node_claims)
    created = [entry.metadata.creation_timestamp for entry in every]
    started = [pod.status.start_time for pod in objects.pods]
    events = [claim.status.last_pod_event_time for claim in objects.node_claims]
    return max((moment for moment in (*created, *started, *events) if moment is not None), default=MONDAY)
