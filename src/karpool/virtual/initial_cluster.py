"""A simulation that starts with a real cluster: nodes and pods keep their places and ages.

Pods of a StatefulSet or DaemonSet stay such; those of any other owner become a Deployment of as many replicas. Volumes
keep pods where they can be attached. Nodes without a pool stay unless something drains them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.catalog.observed import observed
from karpool.catalog.pricing import capacity_type_of, has_no_zone, label_of, node_price
from karpool.cluster.node_groups import NO_OPTIONS, GroupOptions, memberships, with_groups
from karpool.controller.store import ClusterStore
from karpool.kube.store import Store
from karpool.model import labels as names
from karpool.model.devices import ResourceClaim
from karpool.model.managers import takes_no_pods
from karpool.model.node import Node
from karpool.model.node_group import NodeGroup as LearnedGroup
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.model.pod import Pod, PodSpec, PodStatus
from karpool.model.reading.unreadable import UNKNOWN
from karpool.virtual.changes import with_metadata, with_status
from karpool.virtual.cloud import PROVIDER, VirtualCloud
from karpool.virtual.control_plane.controller_manager import ControllerManager
from karpool.virtual.control_plane.deployment_controller import REVISION, DeploymentController
from karpool.virtual.control_plane.statefulset_controller import REVISION as STATEFUL_REVISION
from karpool.virtual.control_plane.statefulset_controller import StatefulSetController, ordinal
from karpool.virtual.control_plane.workload_controller import WorkloadController
from karpool.virtual.scenario import GROUP, MONDAY, Scenario, ScenarioError, ScenarioNodeGroup, ScenarioWorkload
from karpool.wire.objects import Object, condition

_AFTER_LAST_EVENT: Final = timedelta(minutes=1)
_POD_LABELS: Final = frozenset(
    {REVISION, STATEFUL_REVISION, "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"}
)
"""Labels that differ between pods of one workload."""
Kind = Literal["Deployment", "StatefulSet", "DaemonSet"]
Group = tuple[str, Kind, str]
"""The namespace, kind and name of a workload."""


def on_machines(objects: Objects) -> tuple[Objects, str]:
    """The cluster without nodes behind which is no machine, and a sentence that names them: nothing could be saved."""
    gone = {node.name for node in objects.nodes if takes_no_pods(node)}
    if not gone:
        return objects, ""
    pods = tuple(pod for pod in objects.pods if pod.spec.node_name not in gone)
    why = (
        f"nodes of Fargate and virtual kubelets, {len(gone)} such as {min(gone)}, are left out of the simulation with"
        f" their pods ({len(objects.pods) - len(pods)}): there is no machine that could be saved"
    )
    nodes = tuple(node for node in objects.nodes if node.name not in gone)
    return replace(objects, nodes=nodes, pods=pods), why


def with_cluster(scenario: Scenario, objects: Objects, groups: GroupOptions = NO_OPTIONS) -> Scenario:
    """The scenario with the pools, workloads and budgets of a cluster; its own are added, or replace them."""
    own = {(entry.namespace, entry.name) for entry in scenario.workloads}
    pools = {pool.name for pool in scenario.pools}
    added = [entry for entry in _workloads(objects) if (entry.namespace, entry.name) not in own]
    return replace(
        scenario,
        start=_latest(objects) + _AFTER_LAST_EVENT if scenario.start == MONDAY else scenario.start,
        pools=(*scenario.pools, *(pool for pool in objects.node_pools if pool.name not in pools)),
        workloads=(*scenario.workloads, *added),
        budgets=(*scenario.budgets, *objects.pod_disruption_budgets),
        buffers=(*scenario.buffers, *objects.capacity_buffers),
        node_groups=(*scenario.node_groups, *_learned_groups(scenario, objects, groups)),
    )


def _learned_groups(scenario: Scenario, objects: Objects, options: GroupOptions) -> Iterator[ScenarioNodeGroup]:
    """The cluster's own node groups, for the stand-in of their autoscaler; one in the scenario replaces its namesake.

    A group of unknown maximum, or of several machine types, has no more nodes than it has at the start.
    """
    own = {group.name for group in scenario.node_groups}
    grouped = with_groups(objects, options)
    members = memberships(grouped)
    for group in grouped.node_pools:
        if isinstance(group, LearnedGroup) and group.name not in own:
            nodes = [node for node in objects.nodes if members.get(node.name) == group.name]
            types = Counter(label_of(node.metadata.labels, names.INSTANCE_TYPE) for node in nodes)
            yield ScenarioNodeGroup(
                name=group.name,
                instance_type=types.most_common(1)[0][0],
                size=group.size,
                least=min(group.least, group.size),
                most=group.size if group.fixed or group.maximum is None else max(group.maximum, group.size),
                zones=tuple(zone for zone in group.zones if not has_no_zone(zone)),
                capacity_type=group.capacity_types[0],
                labels=group.spec.template.metadata.labels,
                taints=tuple(group.spec.template.spec.taints),
                local_storage_stays=group.local_storage_stays,
                learned=True,
            )


def load_static_objects(store: ClusterStore, objects: Objects) -> None:
    """Load what never changes: volumes, namespaces, priority classes and templates."""
    contents: tuple[tuple[Store[Any], tuple[Object, ...]], ...] = (
        (store.volume_claims, objects.persistent_volume_claims),
        (store.volumes, objects.persistent_volumes),
        (store.storage_classes, objects.storage_classes),
        (store.csi_nodes, objects.csi_nodes),
        (store.namespaces, objects.namespaces),
        (store.priority_classes, objects.priority_classes),
        (store.pod_templates, objects.pod_templates),
        (store.device_classes, objects.device_classes),
        (store.pod_groups, objects.pod_groups),
        (store.workloads, objects.workloads),
        (store.resource_claim_templates, objects.resource_claim_templates),
        (store.resource_slices, objects.resource_slices),
        (store.resource_claims, tuple(map(_without_uids, objects.resource_claims))),
    )
    for kind, listed in contents:
        for obj in listed:
            kind.put(obj)


def _without_uids(claim: ResourceClaim) -> ResourceClaim:
    """A claim that knows its pods by name: they get other uids here."""
    users = tuple(replace(user, uid="") for user in claim.status.reserved_for)
    return replace(claim, status=replace(claim.status, reserved_for=users))


def load_nodes_and_pods(
    cloud: VirtualCloud, manager: ControllerManager, objects: Objects, groups: GroupOptions = NO_OPTIONS
) -> None:
    """The nodes and pods as they are; nodes of groups get the label by which the autoscaler's stand-in knows them."""
    claims = {claim.status.node_name: claim for claim in objects.node_claims if claim.status.node_name}
    members = memberships(with_groups(objects, groups))
    for node in objects.nodes:
        if node.metadata.deletion_timestamp is None:
            _load_node(cloud, _labelled(node, members.get(node.name)), claims.get(node.name))
    for workload, pods in _groups(objects).items():
        controller = _controller(manager, workload)
        if controller is not None:
            _hand_over(controller, pods, objects)
    for entry in objects.daemon_sets:
        if entry.unreadable:
            cloud.world.store.daemon_sets.put(entry)


# -- nodes -------------------------------------------------------------------------------------------------------


def _labelled(node: Node, group: str | None) -> Node:
    """The node with the label by which the stand-in for its autoscaler knows it."""
    if group is None:
        return node
    return with_metadata(node, labels={**node.metadata.labels, GROUP: group})


def _load_node(cloud: VirtualCloud, node: Node, claim: NodeClaim | None) -> None:
    """A node with its instance and its claim, if it has one, under the name of the node."""
    offered = _offered(cloud.catalog, node)
    if offered is None:
        kind = label_of(node.metadata.labels, names.INSTANCE_TYPE)
        reason = f"the catalogue has no type {kind}" if kind else "it does not say what it has for pods"
        raise ScenarioError("cluster", f"node {node.name} cannot be simulated: {reason}")
    store = cloud.world.store
    if claim is not None:
        # Files that were cleaned or written by hand lack it, and without it a deleted node would go with its pods.
        node = with_metadata(node, finalizers=_finalizers(node))
        renamed = with_metadata(claim, name=node.name, uid=f"claim-{node.name}", finalizers=_finalizers(claim))
        store.claims.put(with_status(renamed, provider_id=PROVIDER + node.name, node_name=node.name))
    cloud.start_at(node.name, *offered, node_price(cloud.catalog, node.metadata.labels))
    placed = with_metadata(node, uid=f"node-{node.name}")
    store.nodes.put(replace(placed, spec=replace(placed.spec, provider_id=PROVIDER + node.name)))


def _finalizers(obj: Object) -> tuple[str, ...]:
    """The finalizers of a node or claim, with that of whoever terminates its machine."""
    own = obj.metadata.finalizers
    return own if names.TERMINATION_FINALIZER in own else (*own, names.TERMINATION_FINALIZER)


def _offered(catalog: Catalog, node: Node) -> tuple[InstanceType, Offering] | None:
    """The type and offering in a node's labels; of another zone or capacity type if the catalogue has none there.

    A node that names no type, as on bare metal, on Fargate or in kind, is one of its own.
    """
    labels = node.metadata.labels
    name = label_of(labels, names.INSTANCE_TYPE)
    entry = catalog.by_name.get(name) if name else _type_of(node)
    if entry is None or not entry.offerings:
        return None
    zone, kind = label_of(labels, names.ZONE), capacity_type_of(labels)
    return entry, max(entry.offerings, key=lambda offering: (offering.capacity_type == kind, offering.zone == zone))


def _type_of(node: Node) -> InstanceType | None:
    """A type of which only this node is known."""
    named = with_metadata(node, labels={**node.metadata.labels, names.INSTANCE_TYPE: node.name})
    return next(iter(observed([named])), None)


# -- pods --------------------------------------------------------------------------------------------------------


def _controller(manager: ControllerManager, group: Group) -> WorkloadController | None:
    """The controller that adopts the pods of a group; a Deployment of that name adopts all but those of DaemonSets."""
    namespace, kind, name = group
    named = [
        controller
        for controller in manager.controllers
        if (controller.workload.namespace, controller.workload.name) == (namespace, name)
    ]
    same = next((controller for controller in named if controller.workload.kind == kind), None)
    if same is not None or kind == "DaemonSet":
        return same
    return next((controller for controller in named if isinstance(controller, DeploymentController)), None)


def _hand_over(controller: WorkloadController, pods: list[Pod], objects: Objects) -> None:
    if isinstance(controller, StatefulSetController):
        controller.first, controller.replicas = _ordinals(pods, objects)
    else:
        controller.replicas = sum(pod.active for pod in pods)
    for pod in pods:
        placed = placed_pod(pod, controller.world.store, controller.world.queue.moment)
        if placed is not None:
            controller.adopt(placed)


def _ordinals(pods: list[Pod], objects: Objects) -> tuple[int, int]:
    """The first ordinal of a StatefulSet and its replicas, from its spec or from its pods."""
    ordinals = {ordinal(pod) for pod in pods}
    written = [entry.spec.replicas for entry in objects.stateful_sets if entry.key == _owner_key(pods[0])]
    if not written or written[0] is None:
        return min(ordinals), max(ordinals) + 1 - min(ordinals)
    return min(ordinals) if len(ordinals) == written[0] else 0, written[0]


def placed_pod(pod: Pod, store: ClusterStore, now: datetime) -> Pod | None:
    """The pod at the start: on its node, or pending; None if it is being deleted and has no node."""
    meta = replace(pod.metadata, uid=pod.metadata.uid or f"pod-{pod.key}")
    if pod.spec.node_name == UNKNOWN:
        return replace(pod, metadata=meta)
    if pod.spec.node_name in store.nodes:
        start = pod.status.start_time or pod.metadata.creation_timestamp or now
        # A kubelet starts a pod that has no Ready condition.
        phase = pod.status.phase if condition(pod.status.conditions, "Ready") is not None else "Pending"
        return replace(pod, metadata=meta, status=replace(pod.status, phase=phase, start_time=start))
    if not pod.active or pod.is_daemon:
        return None
    spec = replace(pod.spec, node_name="")
    return replace(pod, metadata=meta, spec=spec, status=PodStatus(phase="Pending"))


def _owner_key(pod: Pod) -> str:
    owner = next((owner for owner in pod.metadata.owner_references if owner.controller), None)
    return f"{pod.metadata.namespace}/{pod.name if owner is None else owner.name}"


def group_of(pod: Pod) -> Group:
    """The workload of a pod; the name of a ReplicaSet is that of its Deployment and the hash of its template."""
    namespace, _, name = _owner_key(pod).partition("/")
    if pod.is_daemon:
        return namespace, "DaemonSet", name
    if pod.owned_by("StatefulSet") and pod.name.removeprefix(f"{name}-").isdecimal():
        return namespace, "StatefulSet", name
    template_hash = pod.metadata.labels.get(REVISION, "") if pod.owned_by("ReplicaSet") else ""
    return namespace, "Deployment", name.removesuffix(f"-{template_hash}") if template_hash else name


def _groups(objects: Objects) -> dict[Group, list[Pod]]:
    """Pods by their workload, without terminal ones, static ones, and pending ones that no scheduler may bind."""
    groups: dict[Group, list[Pod]] = defaultdict(list)
    for pod in objects.pods:
        if not pod.terminal and not pod.is_mirror and (pod.bound or pod.waits_for_node):
            groups[group_of(pod)].append(pod)
    # What a workload asks for is read from its first pod.
    return {group: sorted(pods, key=lambda pod: bool(pod.unreadable)) for group, pods in groups.items()}


# -- workloads ---------------------------------------------------------------------------------------------------


def _workloads(objects: Objects) -> list[ScenarioWorkload]:
    written = {entry.key: entry.spec.template.spec for entry in objects.daemon_sets}
    return [
        workload_like(pods[0], group, _replicas(group[1], pods, objects), written.get(_owner_key(pods[0])))
        for group, pods in _groups(objects).items()
    ]


def workload_like(pod: Pod, group: Group, replicas: int = 0, written: PodSpec | None = None) -> ScenarioWorkload:
    """A workload whose pods are like this one; `written` is the spec of its template, if that is known."""
    namespace, kind, name = group
    return ScenarioWorkload(
        name=name,
        kind=kind,
        namespace=namespace,
        replicas=replicas,
        labels={key: value for key, value in pod.metadata.labels.items() if key not in _POD_LABELS},
        annotations=pod.metadata.annotations,
        spec=_template(kind, pod, written),
    )


def _replicas(kind: Kind, pods: list[Pod], objects: Objects) -> int:
    if kind == "StatefulSet":
        return _ordinals(pods, objects)[1]
    return sum(pod.active for pod in pods) if kind == "Deployment" else 0


def _template(kind: Kind, pod: Pod, written: PodSpec | None) -> PodSpec:
    if kind == "DaemonSet":
        # Its pods have an affinity to their nodes, which the template does not have.
        return written or replace(pod.spec, node_name="", affinity=None)
    # Ephemeral claims, and those of a StatefulSet, belong to one pod.
    shared = [
        volume
        for volume in pod.spec.volumes
        if volume.ephemeral is None and (kind != "StatefulSet" or volume.persistent_volume_claim is None)
    ]
    return replace(pod.spec, node_name="", volumes=tuple(shared))


def _latest(objects: Objects) -> datetime:
    every = (*objects.pods, *objects.nodes, *objects.node_claims)
    created = [entry.metadata.creation_timestamp for entry in every]
    started = [pod.status.start_time for pod in objects.pods]
    events = [claim.status.last_pod_event_time for claim in objects.node_claims]
    return max((moment for moment in (*created, *started, *events) if moment is not None), default=MONDAY)
