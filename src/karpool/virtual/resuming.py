"""A scenario that begins with a real cluster: its nodes as they are, and its pods where they are.

Pods of one owner become a Deployment of as many replicas, and those of DaemonSets are made anew on every node. Volumes
are left out, ages of pods begin at the start, and nodes without a pool stay as long as nobody drains them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.model import labels as names
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.virtual.changes import with_metadata
from karpool.virtual.cloud import PROVIDER
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.deployments import REVISION, DeploymentOwner
from karpool.virtual.owners import APP, reference
from karpool.virtual.scenario import MONDAY, Scenario, Workload

_MOMENT: Final = timedelta(minutes=1)
Groups = dict[tuple[str, str], list[Pod]]


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


def settle(cluster: VirtualCluster, objects: Objects) -> None:
    """Put nodes and pods where they are, before the clock runs."""
    claims = {claim.status.node_name: claim for claim in objects.node_claims if claim.status.node_name}
    for node in objects.nodes:
        if node.metadata.deletion_timestamp is None:
            _place_node(cluster, node, claims.get(node.name))
    for (namespace, name), pods in _groups(objects).items():
        owner = next(
            (
                entry
                for entry in cluster.workloads.owners
                if (entry.workload.namespace, entry.workload.name) == (namespace, name)
            ),
            None,
        )
        if isinstance(owner, DeploymentOwner):
            owner.wanted = len(pods)
            for pod in pods:
                _place_pod(owner, pod)
    cluster.ledger.begin()  # nodes that were there are not launched


# -- nodes -------------------------------------------------------------------------------------------------------


def _place_node(cluster: VirtualCluster, node: Node, claim: NodeClaim | None) -> None:
    """A node with its machine and, if a pool has it, its claim, which bears the node's name here."""
    found = _offered(cluster.cloud.catalog, node.metadata.labels)
    if found is None:
        kind = node.metadata.labels.get(names.INSTANCE_TYPE, "")
        said = f"the catalogue has no type {kind}" if kind else f"it has no label {names.INSTANCE_TYPE}"
        raise UnknownNodeError(f"node {node.name} cannot be simulated: {said}")
    cluster.cloud.start(node.name, *found)
    placed = with_metadata(node, uid=f"node-{node.name}")
    cluster.store.nodes.put(replace(placed, spec=replace(placed.spec, provider_id=PROVIDER + node.name)))
    if claim is not None:
        renamed = with_metadata(claim, name=node.name, uid=f"claim-{node.name}")
        status = replace(renamed.status, provider_id=PROVIDER + node.name, node_name=node.name)
        cluster.store.claims.put(replace(renamed, status=status))


def _offered(catalog: Catalog, labels: Mapping[str, str]) -> tuple[InstanceType, Offering] | None:
    """The machine that a node's labels name; in another zone or capacity type if the catalogue has none there."""
    entry = catalog.by_name.get(labels.get(names.INSTANCE_TYPE, ""))
    if entry is None or not entry.offerings:
        return None
    zone, kind = labels.get(names.ZONE, ""), labels.get(names.CAPACITY_TYPE, names.ON_DEMAND)
    return entry, max(entry.offerings, key=lambda one: (one.capacity_type == kind, one.zone == zone))


# -- pods --------------------------------------------------------------------------------------------------------


def _place_pod(owner: DeploymentOwner, pod: Pod) -> None:
    there = pod.spec.node_name if pod.spec.node_name in owner.world.store.nodes else ""
    owner.create(
        owner.next_name(owner.replica_set),
        reference("ReplicaSet", owner.replica_set),
        labels={**owner.labels, REVISION: str(owner.revision)},
        node=there,
    )


def _owner_name(pod: Pod) -> str:
    return next((one.name for one in pod.metadata.owner_references if one.controller), pod.name)


def _groups(objects: Objects) -> Groups:
    """Pods by namespace and the name of their workload: the one of its app label where only one owner has that."""
    by_owner: Groups = defaultdict(list)
    for pod in objects.pods:
        if not pod.terminal and not pod.is_daemon and not pod.is_mirror and pod.metadata.deletion_timestamp is None:
            by_owner[pod.metadata.namespace, _owner_name(pod)].append(pod)
    apps = Counter((space, _app(pods)) for (space, _), pods in by_owner.items())
    return {
        (space, _app(pods) if _app(pods) and apps[space, _app(pods)] == 1 else name): pods
        for (space, name), pods in by_owner.items()
    }


def _app(pods: Iterable[Pod]) -> str:
    return next(iter(pods)).metadata.labels.get(APP, "")


def _workloads(objects: Objects) -> list[Workload]:
    made = [_workload(name, pods[0], len(pods)) for (_, name), pods in _groups(objects).items()]
    written = {(entry.metadata.namespace, entry.name): entry.spec.template.spec for entry in objects.daemon_sets}
    daemons: dict[tuple[str, str], Pod] = {}
    for pod in objects.pods:
        if pod.is_daemon:
            daemons.setdefault((pod.metadata.namespace, _owner_name(pod)), pod)
    for (namespace, name), pod in daemons.items():
        # A pod of a DaemonSet is bound to its node by an affinity that only its template does not have.
        spec = written.get((namespace, name)) or replace(pod.spec, affinity=None)
        made.append(_workload(name, replace(pod, spec=spec), None))
    return made


def _workload(name: str, pod: Pod, replicas: int | None) -> Workload:
    """A workload of pods like this one; without replicas a DaemonSet."""
    return Workload(
        name=name,
        kind="Deployment" if replicas is not None else "DaemonSet",
        namespace=pod.metadata.namespace,
        replicas=replicas or 0,
        labels={key: value for key, value in pod.metadata.labels.items() if key not in (APP, REVISION)},
        annotations=pod.metadata.annotations,
        spec=replace(pod.spec, node_name="", volumes=()),
    )


def _latest(objects: Objects) -> datetime:
    """The last moment that the cluster tells of."""
    every = (*objects.pods, *objects.nodes, *objects.node_claims)
    created = [entry.metadata.creation_timestamp for entry in every]
    events = [claim.status.last_pod_event_time for claim in objects.node_claims]
    return max((moment for moment in (*created, *events) if moment is not None), default=MONDAY)
