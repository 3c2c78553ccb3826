"""Random small clusters whose running pods sit where every rule holds, and what their pools could buy."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import strategies as st
from msgspec.structs import replace as changed

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    NODEPOOL,
    ON_DEMAND,
    RESERVATION_ID,
    RESERVED,
    SPOT,
    ZONE,
)
from karpool.model.node import CSINode, Node
from karpool.model.nodepool import NodePool, PoolRequirement
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.requirements import Requirements, one_of
from karpool.model.scheduling import NodeExpression, NodeTerm
from karpool.model.storage import PersistentVolume, PersistentVolumeClaim
from karpool.model.workloads import DaemonSet, PodDisruptionBudget
from karpool.wire.objects import Condition
from tests.checker import Option, Placement, could_place, state_of, template_of, with_pod_bound
from tests.factories import (
    LONG_AGO,
    affinity_to,
    anti_affinity,
    claim_for,
    csi_node,
    daemon_set,
    host_path_volume,
    instance_type,
    local_volume,
    namespace,
    node,
    node_pool,
    node_term,
    pdb,
    pod,
    pv,
    pvc,
    spread,
    storage_class,
)

ZONES: Final = ("zone-a", "zone-b", "zone-c")
HOSTS: Final = ("node-00", "node-01", "node-02", "node-99")
"""Some that are there in most clusters, and one that never is."""
DRIVER: Final = "csi.example.com"
RESERVATIONS: Final[tuple[tuple[tuple[str, str, int], ...], ...]] = (
    (),
    (),
    (("r1", ZONES[0], 1),),
    (("r2", ZONES[1], 2),),
    (("r1", ZONES[0], 1), ("r2", ZONES[1], 2)),
)
Draw = Callable[[st.SearchStrategy[Any]], Any]
Feature = Callable[[Draw, int], dict[str, Any]]


@dataclass(frozen=True)
class Cluster:
    """A cluster and its catalogue."""

    objects: Objects
    catalog: Catalog


@st.composite
def clusters(
    draw: st.DrawFn,
    *,
    max_nodes: int = 12,
    max_workloads: int = 8,
    max_pods: int = 40,
    in_motion: bool = False,
    choosy: bool = False,
) -> Cluster:
    """A cluster of 1 to `max_nodes` nodes with up to `max_pods` pods, some of them pending.

    `in_motion`: some nodes are being deleted, some are only claims yet, some pods are about to end. `choosy`: there is
    reserved capacity, and pools may want several values of a key.
    """
    catalog = draw(catalogs(reserved=choosy))
    pools = tuple(draw(node_pools(index, choosy=choosy)) for index in range(draw(st.integers(1, 3))))
    nodes = tuple(_nodes(draw, pools, catalog, max_nodes))
    daemons = tuple(draw(daemon_sets(index)) for index in range(draw(st.integers(0, 2))))
    claims = tuple(claim_for(entry) for entry in nodes if NODEPOOL in entry.metadata.labels)
    volumes, volume_claims = _volumes(draw, max_workloads)
    bare = Objects(
        nodes=nodes,
        node_pools=pools,
        node_claims=claims,
        daemon_sets=daemons,
        persistent_volumes=volumes,
        persistent_volume_claims=volume_claims,
        storage_classes=(storage_class("standard", provisioner=DRIVER), storage_class("local-zone", zones=ZONES[:2])),
        csi_nodes=tuple(_csi_nodes(draw, nodes)),
        namespaces=(namespace("default", team="red"), namespace("other", team="blue")),
    )
    pods_to_place = [made for index in range(draw(st.integers(0, max_workloads))) for made in draw(workloads(index))]
    budgets = tuple(draw(pod_disruption_budgets(max_workloads)))
    pods = _settled(bare, _daemon_pods(draw, bare), pods_to_place[:max_pods], first=draw(st.integers(0, 11)))
    full = changed(bare, pods=pods, pod_disruption_budgets=budgets)
    return Cluster(_in_motion(draw, full, catalog) if in_motion else full, catalog)


def _in_motion(draw: Draw, objects: Objects, catalog: Catalog) -> Objects:
    """The cluster with some nodes and pods about to go, and some nodes about to come."""
    leaving = draw(st.sets(st.integers(0, 11), max_size=3))
    ending = draw(st.sets(st.integers(0, 39), max_size=4))
    nodes = tuple(
        _deleted(n) if i in leaving and NODEPOOL not in n.metadata.labels else n for i, n in enumerate(objects.nodes)
    )
    names = {n.name for i, n in enumerate(objects.nodes) if i in leaving}
    claims = [_deleted(c) if c.status.node_name in names else c for c in objects.node_claims]
    templates = [(p, t) for p in objects.node_pools if (t := template_of(p, catalog.types)) is not None]
    for index in range(draw(st.integers(0, 2)) if templates else 0):
        pool, template = draw(st.sampled_from(templates))
        coming = _node(f"new-{index}", pool, draw(st.sampled_from(template.options)), initialized=False)
        claims.append(claim_for(coming, node_name="", registered=False))
    return changed(
        objects,
        nodes=nodes,
        node_claims=tuple(claims),
        pods=tuple(_deleted(p) if i in ending and p.bound else p for i, p in enumerate(objects.pods)),
    )


def _deleted(obj: Any) -> Any:
    return changed(obj, metadata=changed(obj.metadata, deletion_timestamp=LONG_AGO))


@st.composite
def catalogs(draw: st.DrawFn, *, reserved: bool = False) -> Catalog:
    """Two to eight types of both architectures; some offerings may be sold out, some types reserved."""
    sizes = draw(st.lists(st.sampled_from((2, 4, 8, 16)), min_size=1, max_size=4, unique=True))
    sold_out = draw(st.lists(st.tuples(st.sampled_from((SPOT, ON_DEMAND)), st.sampled_from(ZONES)), max_size=2))
    zones = ZONES[: draw(st.integers(2, 3))]
    types = [
        instance_type(
            f"{family}-{cpu}",
            cpu,
            f"{cpu * 4}Gi",
            arch=arch,
            pods=draw(st.sampled_from((4, 16, 110))),
            zones=zones,
            price=cpu * price,
            spot_price=cpu * price * 0.4,
            unavailable=sold_out,
        )
        for family, arch, price in (("m", "amd64", 0.05), ("g", "arm64", 0.04))
        for cpu in sizes
    ]
    if reserved:
        types = [_with_reservation(entry, draw(st.sampled_from(RESERVATIONS))) for entry in types]
    return Catalog(tuple(types))


def _with_reservation(entry: InstanceType, offers: tuple[tuple[str, str, int], ...]) -> InstanceType:
    """A type of which some machines, by name of the reservation, zone and number, are paid for."""
    made = [
        Offering(
            requirements=Requirements.of_labels({CAPACITY_TYPE: RESERVED, ZONE: zone, RESERVATION_ID: name}),
            price=0.001,
            reservation_id=name,
            reservation_capacity=units,
        )
        for name, zone, units in offers
        if zone in entry.requirements[ZONE].values
    ]
    kinds = entry.requirements[CAPACITY_TYPE].values | {RESERVED} if made else entry.requirements[CAPACITY_TYPE].values
    requirements = Requirements(
        (*entry.requirements.without(CAPACITY_TYPE).items(), (CAPACITY_TYPE, one_of(*kinds))),
    )
    return replace(entry, requirements=requirements, offerings=(*entry.offerings, *made))


@st.composite
def node_pools(draw: st.DrawFn, index: int, *, choosy: bool = False) -> NodePool:
    """A pool of either architecture or both, perhaps with a taint, a label, a weight or limits."""
    paid = ((RESERVED, ON_DEMAND), (RESERVED, SPOT, ON_DEMAND)) if choosy else ()
    requirements: list[Any] = [
        (ARCH, "In", *draw(st.sampled_from((("amd64",), ("arm64",), ("amd64", "arm64"))))),
        (CAPACITY_TYPE, "In", *draw(st.sampled_from(((ON_DEMAND,), (SPOT,), (SPOT, ON_DEMAND), *paid)))),
    ]
    if choosy and draw(st.booleans()):
        key, most = draw(st.sampled_from(((INSTANCE_TYPE, 4), (ARCH, 2), (ZONE, 3))))
        fewest = draw(st.integers(1, most))
        requirements.append(PoolRequirement(key=key, operator="Exists", min_values=fewest))
    if draw(st.booleans()):
        requirements.append((ZONE, "In", *ZONES[: draw(st.integers(1, 3))]))
    return node_pool(
        f"pool-{index}",
        requirements=requirements,
        taints=draw(st.sampled_from(((), (), ("team=blue",), ("soft:PreferNoSchedule",)))),
        labels=draw(st.sampled_from(({}, {"team": "blue"}, {"team": "red"}))),
        weight=draw(st.sampled_from((None, None, 10, 50))),
        limits=draw(st.sampled_from(({}, {}, {"cpu": 40}, {"nodes": 4}))),
        consolidate_after=draw(st.sampled_from(("0s", "0s", "5m", "Never"))),
        policy=draw(st.sampled_from(("WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "WhenEmpty"))),
        budgets=draw(st.sampled_from((("100%",), ("100%",), ("1",), ("30%",)))),
    )


def _nodes(draw: Draw, pools: tuple[NodePool, ...], catalog: Catalog, most: int) -> Iterator[Node]:
    """Nodes as the pools would have opened them, and now and then one that nobody manages."""
    templates = [(pool, template) for pool in pools if (template := template_of(pool, catalog.types)) is not None]
    for index in range(draw(st.integers(1, most))):
        if not templates or draw(st.integers(0, 9)) == 9:
            yield node(f"node-{index:02}", pool=None, zone=draw(st.sampled_from(ZONES)))
            continue
        pool, template = draw(st.sampled_from(templates))
        option = draw(st.sampled_from(template.options))
        yield _node(f"node-{index:02}", pool, option, initialized=draw(st.integers(0, 9)) < 9)


def _node(name: str, pool: NodePool, option: Option, *, initialized: bool) -> Node:
    return node(
        name,
        type=option.labels[INSTANCE_TYPE],
        pool=pool.name,
        cpu=None,
        memory=None,
        pods=None,
        resources={key: str(amount) for key, amount in option.allocatable.items()},
        capacity={key: str(amount) for key, amount in option.capacity.items()},
        labels={**{key: value for key, value in option.labels.items() if key != INITIALIZED}, HOSTNAME: name},
        taints=pool.spec.template.spec.taints,
        initialized=initialized,
    )


def _csi_nodes(draw: Draw, nodes: tuple[Node, ...]) -> Iterator[CSINode]:
    limit = draw(st.sampled_from((None, 1, 3)))
    if limit is not None:
        yield from (csi_node(entry.name, **{DRIVER: limit}) for entry in nodes)


def _volumes(draw: Draw, workloads: int) -> tuple[tuple[PersistentVolume, ...], tuple[PersistentVolumeClaim, ...]]:
    """For each workload a volume, and claims that are bound to it or wait for their first pod."""
    volumes, claims = [], []
    for index in range(workloads):
        volumes.append(_volume(draw, f"disk-{index}"))
        bound = draw(st.booleans())
        waiting = draw(st.sampled_from(("standard", "local-zone")))
        kept = {"volume": f"disk-{index}"} if bound else {"storage_class": waiting}
        claims += [pvc(f"data-{index}", namespace=space, **kept) for space in ("default", "other")]
    return tuple(volumes), tuple(claims)


def _volume(draw: Draw, name: str) -> PersistentVolume:
    """A disk in one or two zones, or a directory of a host that it names or does not."""
    zones = draw(st.sampled_from((ZONES[:1], ZONES[1:2], ZONES[:2], ())))
    if zones:
        return pv(name, zones=zones, driver=DRIVER)
    host = draw(st.sampled_from((*HOSTS, None)))
    return local_volume(name, host) if draw(st.booleans()) else host_path_volume(name)


@st.composite
def daemon_sets(draw: st.DrawFn, index: int) -> DaemonSet:
    """A small DaemonSet on every node, on one architecture, or on nodes without taints; perhaps with a host port."""
    return daemon_set(
        f"agent-{index}",
        cpu=draw(st.sampled_from(("50m", "200m"))),
        memory="64Mi",
        selector=draw(st.sampled_from(({}, {}, {ARCH: "arm64"}))),
        tolerations=draw(st.sampled_from(((), ("",)))),
        ports=draw(st.sampled_from(((), (9100 + index,)))),
    )


def _daemon_pods(draw: Draw, bare: Objects) -> list[Pod]:
    """The daemons' pods; on some nodes one has not come yet."""
    made = []
    for index, entry in enumerate(bare.daemon_sets):
        missing = draw(st.sets(st.integers(0, 11), max_size=2))
        for number, where in enumerate(bare.nodes):
            template = entry.spec.template
            if number in missing:
                continue
            daemon = pod(f"{entry.name}-{number:02}", namespace="kube-system", owner="DaemonSet", node=where.name)
            labels = {"app": f"agent-{index}"}
            spec = changed(template.spec, node_name=where.name)
            made.append(changed(daemon, metadata=changed(daemon.metadata, labels=labels), spec=spec))
    return made


@st.composite
def pod_disruption_budgets(draw: st.DrawFn, workloads: int) -> list[PodDisruptionBudget]:
    """Budgets over some of the workloads."""
    indices = draw(st.lists(st.integers(0, max(workloads - 1, 0)), max_size=2, unique=True))
    return [pdb(f"keep-{index}", {"app": f"w{index}"}, allowed=draw(st.integers(0, 3))) for index in indices]


def _zone_spread(draw: Draw, index: int) -> dict[str, Any]:
    constraint = spread(
        {"app": f"w{index}"},
        draw(st.sampled_from((ZONE, ZONE, HOSTNAME, CAPACITY_TYPE))),
        draw(st.integers(1, 2)),
        min_domains=draw(st.sampled_from((None, None, 2, 3))),
        match_label_keys=draw(st.sampled_from(((), (), ("rev",)))),
        affinity_policy=draw(st.sampled_from(("Honor", "Honor", "Ignore"))),
        taints_policy=draw(st.sampled_from(("Ignore", "Honor"))),
    )
    return {"spread": [constraint]}


def _apart(draw: Draw, index: int) -> dict[str, Any]:
    target = draw(st.sampled_from((index, index, (index + 1) % 8)))
    key = draw(st.sampled_from((HOSTNAME, HOSTNAME, ZONE)))
    scope = draw(
        st.sampled_from(({}, {}, {"namespaces": ["default", "other"]}, {"namespace_selector": {"team": "blue"}}))
    )
    return {"anti": [anti_affinity({"app": f"w{target}"}, key, **scope)]}


def _near(draw: Draw, index: int) -> dict[str, Any]:
    target = draw(st.sampled_from((index, max(index - 1, 0))))
    terms = [affinity_to({"app": f"w{target}"}, draw(st.sampled_from((HOSTNAME, ZONE))))]
    if draw(st.integers(0, 2)) == 2:
        terms.append(affinity_to({"rev": "0"}, draw(st.sampled_from((HOSTNAME, ZONE, CAPACITY_TYPE)))))
    return {"near": terms}


def _node_affinity(draw: Draw, _: int) -> dict[str, Any]:
    zones = draw(st.lists(st.sampled_from(ZONES), min_size=1, max_size=2, unique=True))
    alternatives = (
        [node_term((ZONE, "In", *zones))],
        [node_term((ZONE, "NotIn", zones[0]))],
        [node_term((ARCH, "In", "arm64")), node_term((ZONE, "In", zones[0]))],
        [node_term(("team", "DoesNotExist"))],
        [node_term(("team", "Exists"))],
    )
    return {"terms": draw(st.sampled_from(alternatives))}


def _host(draw: Draw, _: int) -> dict[str, Any]:
    """A host by its label or by the name of its node, asked for or avoided."""
    hosts = draw(st.lists(st.sampled_from(HOSTS), min_size=1, max_size=2, unique=True))
    way = draw(st.sampled_from(("In", "In", "NotIn")))
    named = NodeTerm(match_fields=(NodeExpression("metadata.name", way, (hosts[0],)),))
    alternatives: tuple[dict[str, Any], ...] = (
        {"selector": {HOSTNAME: hosts[0]}},
        {"terms": [node_term((HOSTNAME, way, *hosts))]},
        {"terms": [named]},
        {"terms": [node_term((ZONE, "In", ZONES[0])), named]},
    )
    chosen: dict[str, Any] = draw(st.sampled_from(alternatives))
    return chosen


def _preferences(draw: Draw, index: int) -> dict[str, Any]:
    mine = {"app": f"w{index}"}
    alternatives: tuple[dict[str, Any], ...] = (
        {"prefer": [(10, node_term((ZONE, "In", ZONES[0]))), (5, node_term((CAPACITY_TYPE, "In", SPOT)))]},
        {"prefer_anti": [(10, anti_affinity(mine))]},
        {"prefer_near": [(3, affinity_to(mine, ZONE))]},
        {"spread": [spread(mine, when="ScheduleAnyway")]},
    )
    chosen: dict[str, Any] = draw(st.sampled_from(alternatives))
    return chosen


def _one_of(name: str, *values: Any) -> Feature:
    return lambda draw, _: {name: draw(st.sampled_from(values))}


FEATURES: Final[dict[str, Feature]] = {
    "spread": _zone_spread,
    "apart": _apart,
    "near": _near,
    "selector": _one_of("selector", {ZONE: ZONES[0]}, {ARCH: "amd64"}, {CAPACITY_TYPE: SPOT}, {"team": "blue"}),
    "affinity": _node_affinity,
    "host": _host,
    "port": _one_of("ports", (8080,), ("8080/UDP",), (9100,), ("10.0.0.1:8080",)),
    "volume": lambda _, index: {"claims": [f"data-{index}"]},
    "preferences": _preferences,
    "priority": _one_of("priority", -10, 1000),
    "protected": lambda _draw, _index: {"annotations": {DO_NOT_DISRUPT: "true"}},
}


@st.composite
def workloads(draw: st.DrawFn, index: int) -> list[Pod]:
    """One to eight equal pods with up to three of the features above; some workloads have two revisions."""
    asked: dict[str, Any] = {
        "namespace": draw(st.sampled_from(("default", "default", "default", "other"))),
        "cpu": draw(st.sampled_from(("100m", "500m", "1", "1500m", "3"))),
        "memory": draw(st.sampled_from(("128Mi", "1Gi", "4Gi"))),
        "tolerations": draw(st.sampled_from(((), (), ("team=blue",), ("",)))),
        "owner": draw(st.sampled_from(("ReplicaSet", "ReplicaSet", "StatefulSet", None))),
    }
    for name in draw(st.lists(st.sampled_from(sorted(FEATURES)), max_size=3, unique=True)):
        asked = {**FEATURES[name](draw, index), **asked}
    revisions = draw(st.integers(1, 2))
    return [
        pod(f"w{index}-{number}", labels={"app": f"w{index}", "rev": str(number % revisions)}, **asked)
        for number in range(draw(st.integers(1, 8)))
    ]


def _settled(bare: Objects, daemons: list[Pod], pods: list[Pod], *, first: int) -> tuple[Pod, ...]:
    """The pods where they legally run, each on the first node that takes it, counted from `first`; else pending."""
    state, placed = state_of(bare), []
    for daemon in daemons:
        alone = changed(daemon, spec=changed(daemon.spec, node_name=""))
        if daemon.spec.node_name in could_place(alone, state):
            state = with_pod_bound(state, Placement(daemon, state.machines[daemon.spec.node_name]))
            placed.append(daemon)
    for waiting in pods:
        places = could_place(waiting, state)
        if not places:
            placed.append(_pending(waiting))
            continue
        name = places[first % len(places)]
        running = _running(waiting, name)
        state = with_pod_bound(state, Placement(running, state.machines[name]))
        placed.append(running)
    return tuple(placed)


def _running(waiting: Pod, name: str) -> Pod:
    status = changed(
        waiting.status,
        phase="Running",
        start_time=waiting.metadata.creation_timestamp,
        conditions=(Condition(type="Ready", status="True"),),
    )
    return changed(waiting, spec=changed(waiting.spec, node_name=name), status=status)


def _pending(waiting: Pod) -> Pod:
    refused = Condition(type="PodScheduled", status="False", reason="Unschedulable")
    return changed(waiting, status=changed(waiting.status, conditions=(refused,)))
