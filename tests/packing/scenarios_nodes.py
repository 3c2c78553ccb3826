"""Scenarios of existing nodes, daemons, host ports and volumes."""

from typing import Any

from msgspec.structs import replace
from tests.factories import (
    GPU_A,
    LONG_AGO,
    Z1,
    Z2,
    affinity_to,
    claim_for,
    csi_node,
    daemon_set,
    incremental_types,
    node,
    node_claim,
    node_pool,
    node_term,
    pod,
    pv,
    pvc,
    storage_class,
)
from tests.packing.scenarios import Scenario, T, one_pod, pods

from karpool.catalog.instance_types import Catalog
from karpool.model.labels import ARCH, OS, WINDOWS_BUILD, ZONE
from karpool.model.pod import DiskOfCloud, Pod, PodSystem, Volume
from karpool.model.scheduling import Toleration

WINDOWS_NODE = node("n1", labels={OS: "windows", WINDOWS_BUILD: "10.0.20348"})


def disk_of(name: str, disk: str) -> Pod:
    return pod(name, volumes=[Volume(name="disk", aws_elastic_block_store=DiskOfCloud(volume_id=disk))])


FIVE = incremental_types(5)


def starting(name: str, **rest: Any) -> Any:
    return node(name, initialized=False, registered=False, **rest)


CROWD = [starting(f"a{i:02}") for i in range(99)]
EXISTING = [
    one_pod(
        "the one node that is up",
        nodes=[*CROWD, node("up")],
        claims=[claim_for(entry) for entry in (*CROWD, node("up"))],
        placed_on={"web-1": "up"},
    ),
    one_pod(
        "the one node that is up among claims without nodes",
        nodes=[node("up")],
        claims=[
            claim_for(node("up")),
            *(node_claim(f"a{i:02}", capacity={"cpu": 4, "memory": "4Gi", "pods": 9}) for i in range(99)),
        ],
        placed_on={"web-1": "up"},
    ),
    one_pod(
        "a claim without a node takes pods",
        claims=[node_claim("a", capacity={"cpu": 4, "memory": "4Gi", "pods": 9})],
        placed_on={"web-1": "a"},
    ),
    one_pod(
        "a GPU that a starting node does not show yet",
        requests={GPU_A: 1},
        nodes=[starting("n1", resources={GPU_A: 0})],
        claims=[claim_for(node("n1", resources={GPU_A: 2}), registered=False)],
        placed_on={"web-1": "n1"},
    ),
    one_pod(
        "startup taints of a starting node",
        nodes=[node("n1", initialized=False, taints=["boot", "node.kubernetes.io/not-ready:NoExecute"])],
        claims=[claim_for(node("n1", initialized=False), startup_taints=["boot"])],
        placed_on={"web-1": "n1"},
    ),
    one_pod("a node that is being deleted", nodes=[node("n1", pool=None, deleted=LONG_AGO)], new_nodes=1),
    one_pod("a node that is gone", nodes=[node("n1")], asked={"gone": ["n1"]}, new_nodes=1),
    one_pod("a closed node", nodes=[node("n1")], asked={"closed": ["n1"]}, new_nodes=1),
    one_pod(
        "a closed node and a pod that may",
        nodes=[node("n1")],
        asked={"closed": ["n1"], "exempt": ["default/web-1"]},
        new_nodes=0,
    ),
    one_pod("no new nodes", fails=True, asked={"existing_only": True}),
    one_pod("a Windows node and a pod that does not ask for it", nodes=[WINDOWS_NODE], new_nodes=1),
    one_pod(
        "toleration is no wish for Windows",
        nodes=[WINDOWS_NODE],
        tolerations=[Toleration(operator="Exists")],
        new_nodes=1,
    ),
    one_pod(
        "any system is no wish for Windows", nodes=[WINDOWS_NODE], require=[(OS, "In", "linux", "windows")], new_nodes=1
    ),
    one_pod(
        "a pod whose selector asks for Windows",
        nodes=[node("n0"), WINDOWS_NODE],
        selector={OS: "windows"},
        placed_on={"web-1": "n1"},
    ),
    one_pod(
        "a pod whose affinity asks for Windows",
        nodes=[node("n0"), WINDOWS_NODE],
        require=[(OS, "NotIn", "linux"), (OS, "Exists")],
        placed_on={"web-1": "n1"},
    ),
    one_pod(
        "a pod that asks for a build of Windows",
        nodes=[node("n0"), WINDOWS_NODE],
        require=[(WINDOWS_BUILD, "Exists")],
        placed_on={"web-1": "n1"},
    ),
    Scenario(
        name="a pod that is said to be one of Windows",
        pods=[replace(pod(), spec=replace(pod().spec, os=PodSystem(name="windows")))],
        nodes=[node("n0"), WINDOWS_NODE],
        placed_on={"web-1": "n1"},
    ),
    one_pod(
        "no new Windows node for a pod that does not ask for it",
        fails=True,
        pools=[node_pool(requirements=[(OS, "In", "windows")])],
    ),
    one_pod("a cordoned node", nodes=[node("n1", cordoned=True)], new_nodes=1),
    one_pod(
        "a node that is too full", nodes=[node("n1", cpu=1)], bound=[pod("a-1", cpu="0.8", node="n1")], new_nodes=1
    ),
    one_pod(
        "finished pods take no room",
        nodes=[node("n1", cpu=1)],
        bound=[pod("a-1", cpu=1, node="n1", phase="Succeeded")],
        new_nodes=0,
    ),
    one_pod(
        "an overcommitted node takes nothing",
        cpu=0,
        nodes=[node("n1", memory="1Gi")],
        bound=[pod("a-1", memory="2Gi", node="n1")],
        new_nodes=1,
    ),
    one_pod("no place for another pod", nodes=[node("n1", pods=1)], bound=[pod("a-1", node="n1")], new_nodes=1),
    one_pod("labels of a node are all it has", nodes=[node("n1", zone=None)], require=[(ZONE, "Exists")], new_nodes=1),
    Scenario(
        name="nodes by name", pods=pods(2, cpu=3), nodes=[node("b"), node("a")], placed_on={"web-1": "a", "web-2": "b"}
    ),
    Scenario(
        name="large pods first",
        pods=[*pods(1), *pods(1, app="x", cpu=4)],
        nodes=[node("a"), node("b")],
        placed_on={"x-1": "a", "web-1": "b"},
    ),
    Scenario(
        name="a pod on a node that goes looks for a place",
        pods=[pod("web-1", node="n1", memory="1Gi")],
        nodes=[node("n1"), node("n2")],
        asked={"gone": ["n1"]},
        placed_on={"web-1": "n2"},
    ),
]


def with_daemon(
    name: str, *, pools: Any = None, catalog: Catalog = T, launches: str = "default", **daemon: Any
) -> Scenario:
    sets = {"daemon_sets": (daemon_set(**{"cpu": 2, "memory": "2Gi", **daemon}),)}
    given: dict[str, Any] = {} if pools is None else {"pools": [pools]}
    return one_pod(
        name, others=sets, cpu=1, memory="1Gi", catalog=catalog, launches=launches, **given, tolerations=["soft"]
    )


SIZES = (
    daemon_set("small", cpu=1, selector={"size": "small"}),
    daemon_set("large", cpu=10, selector={"size": "large"}, ports=[8080]),
)
AGENT = daemon_set("agent", cpu=2, memory="1Gi")


def agent(**rest: Any) -> Pod:
    return pod("agent-x", namespace="kube-system", owner="DaemonSet", **{"memory": "1Gi", **rest})


DAEMONS = [
    with_daemon("a daemon makes a larger type necessary"),
    with_daemon("a daemon and a startup taint", pools=node_pool(startup_taints=["boot"])),
    with_daemon("a daemon that selects a label of the pool", pools=node_pool(labels={"k": "v"}), selector={"k": "v"}),
    with_daemon("a daemon that excludes a value of an unknown key", require=[("k", "NotIn", "v")]),
    with_daemon("a daemon on a pool that asks to stay away", pools=node_pool(taints=["soft:PreferNoSchedule"])),
    with_daemon("a daemon whose second term holds", terms=[node_term(("k", "Exists")), node_term((ARCH, "Exists"))]),
    with_daemon("a daemon for other nodes", selector={"k": "v"}, launches="small"),
    with_daemon("a daemon kept away by a taint", pools=node_pool(taints=["soft"]), launches="small"),
    one_pod(
        "small types without the large daemon",
        others={"daemon_sets": SIZES},
        catalog=FIVE,
        cpu="0.5",
        launches="fake-it-1",
    ),
    one_pod(
        "a port that only daemons of large types take",
        others={"daemon_sets": SIZES},
        catalog=incremental_types(40),
        ports=[8080],
        check=lambda answer: answer.new_nodes[0].instance_types == ("fake-it-1", "fake-it-2", "fake-it-3"),
    ),
    one_pod(
        "a running daemon tells more than its template",
        others={"daemon_sets": (AGENT,)},
        cpu=1,
        launches="small",
        nodes=[node("n1", cpu="0.2")],
        bound=[agent(cpu="0.1", node="n1")],
    ),
    one_pod("a daemon still to come", others={"daemon_sets": (AGENT,)}, nodes=[node("n1", cpu="2.1")], new_nodes=1),
    one_pod(
        "a daemon that is there",
        others={"daemon_sets": (AGENT,)},
        nodes=[node("n1", cpu="2.25")],
        bound=[agent(cpu=2, node="n1")],
        new_nodes=0,
    ),
    one_pod(
        "an unexpected daemon gives nothing back",
        nodes=[node("n1", cpu=1)],
        bound=[agent(cpu="0.8", node="n1")],
        new_nodes=1,
    ),
]

PORTS = [
    Scenario(name="one port, two nodes", pods=pods(2, ports=[80]), new_nodes=2),
    Scenario(
        name="one port, two protocols", pods=[*pods(1, ports=[80]), *pods(1, app="x", ports=["80/UDP"])], new_nodes=1
    ),
    Scenario(
        name="one port, two addresses",
        pods=[*pods(1, ports=["10.0.0.1:80"]), *pods(1, app="x", ports=["10.0.0.2:80"])],
        new_nodes=1,
    ),
    Scenario(
        name="one port, every address",
        pods=[*pods(1, ports=["10.0.0.1:80"]), *pods(1, app="x", ports=[80])],
        new_nodes=2,
    ),
    one_pod(
        "a port that is taken", ports=[80], nodes=[node("n1")], bound=[pod("x-1", ports=[80], node="n1")], new_nodes=1
    ),
]


def stored(claim: Any, **given: Any) -> Scenario:
    """One pod with a bad claim is refused, one without is placed."""
    name = f"a claim that {given.pop('name')}"
    return Scenario(
        name=name,
        pods=[pod("web-1", claims=["data"]), *pods(1, app="fine")],
        others={"persistent_volume_claims": (claim,) if claim else (), **given},
        unplaced=["web-1"],
    )


EITHER = [node_term((ZONE, "In", Z1)), node_term((ZONE, "In", Z2))]
BINDS_LATE, BINDS_NOW = storage_class("late"), storage_class("now", binding="Immediate")
DISKS = {
    "persistent_volume_claims": tuple(pvc(name, volume=name) for name in ("d1", "d2", "d3")),
    "persistent_volumes": tuple(pv(name, driver="disk") for name in ("d1", "d2", "d3")),
    "csi_nodes": (csi_node("n1", **{"disk": 2, "ebs.csi.aws.com": 2}),),
}

FIFTH = Catalog(FIVE.types[4:])
FULL = node("n1", type="fake-it-4", taints=["full"])


def mounts(*claims: str) -> list[Pod]:
    return [pod(f"web-{i}", claims=[claim]) for i, claim in enumerate(claims, start=1)]


VOLUMES = [
    Scenario(
        name="a volume in either zone and pods that want different ones",
        pods=[pod(f"web-{i}", claims=[f"d{i}"], anti=[affinity_to({"app": "web"}, ZONE)]) for i in (1, 2)],
        others={
            "persistent_volume_claims": (pvc("d1", volume="d1"), pvc("d2", volume="d2")),
            "persistent_volumes": (pv("d1", terms=EITHER), pv("d2", terms=EITHER)),
        },
        skew=(ZONE, (1, 1)),
    ),
    Scenario(
        name="a volume in the zone of one node",
        pods=mounts("d1"),
        nodes=[node("a", zone=Z1), node("b", zone=Z2)],
        others={"persistent_volume_claims": (pvc("d1", volume="d1"),), "persistent_volumes": (pv("d1", zones=[Z2]),)},
        placed_on={"web-1": "b"},
    ),
    stored(None, name="does not exist"),
    stored(pvc("data", storage_class="late", deleted=LONG_AGO), name="is being deleted", storage_classes=(BINDS_LATE,)),
    stored(pvc("data", storage_class="late", phase="Lost"), name="is lost", storage_classes=(BINDS_LATE,)),
    stored(pvc("data", storage_class="now"), name="should be bound and is not", storage_classes=(BINDS_NOW,)),
    stored(pvc("data", storage_class="gone"), name="names no class there is"),
    Scenario(
        name="a node attaches two disks", pods=mounts("d1", "d2", "d3"), nodes=[node("n1")], others=DISKS, new_nodes=1
    ),
    Scenario(
        name="disks that pods name themselves count",
        pods=[disk_of("w-1", "a"), disk_of("w-2", "b"), disk_of("w-3", "c")],
        nodes=[node("n1")],
        others=DISKS,
        new_nodes=1,
    ),
    Scenario(
        name="a shared disk that pods name themselves counts once",
        pods=[disk_of("w-1", "a"), disk_of("w-2", "b"), disk_of("w-3", "b")],
        nodes=[node("n1")],
        others=DISKS,
        new_nodes=0,
    ),
    Scenario(
        name="a shared disk counts once", pods=mounts("d1", "d2", "d2"), nodes=[node("n1")], others=DISKS, new_nodes=0
    ),
    Scenario(
        name="a new node attaches as many disks as a node of its type",
        pods=mounts("d1", "d2", "d3"),
        nodes=[FULL],
        catalog=FIFTH,
        others=DISKS,
        new_nodes=2,
    ),
    Scenario(
        name="a shared disk counts once on a new node",
        pods=mounts("d1", "d2", "d2"),
        nodes=[FULL],
        catalog=FIFTH,
        others=DISKS,
        new_nodes=1,
    ),
    Scenario(
        name="a type that no node shows attaches any number of disks",
        pods=mounts("d1", "d2", "d3"),
        nodes=[FULL],
        catalog=incremental_types(5),
        others=DISKS,
        new_nodes=1,
        types=[f"fake-it-{number}" for number in (1, 2, 3)],
    ),
]

NODE_SCENARIOS = [*EXISTING, *DAEMONS, *PORTS, *VOLUMES]
