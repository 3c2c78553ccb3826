"""Why pools make no node for a pod, one line each, and what is said of a whole cluster."""

from dataclasses import replace as with_fields

from msgspec.structs import replace
from tests.factories import (
    Z1,
    Z2,
    affinity_to,
    csi_node,
    daemon_set,
    instance_type,
    node,
    node_pool,
    node_term,
    pod,
    pv,
    pvc,
    spread,
)
from tests.packing.refusal_cases import DRIVER, N1, N2, PVC, WEB, Case, in_pool

from karpool.catalog.instance_types import Catalog, Offering
from karpool.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, OS, RESERVATION_ID, RESERVED, ZONE
from karpool.model.nodepool import PoolRequirement
from karpool.model.pod import Container, Resources
from karpool.model.requirements import Requirements
from karpool.packing.refusal_messages import NODES, RefusalRule


def reserved_type() -> Catalog:
    offered = Requirements.of_labels({CAPACITY_TYPE: RESERVED, ZONE: Z1, RESERVATION_ID: "r-1"})
    plain = instance_type("small", 4, "16Gi")
    held = Offering(requirements=offered, price=0.0, reservation_id="r-1", reservation_capacity=1)
    return Catalog((with_fields(plain, offerings=(*plain.offerings, held)),))


TAKES_ALL = pod("first", cpu="3900m", selector={ZONE: Z1})


def values_wanted(count: int) -> PoolRequirement:
    return PoolRequirement(key=INSTANCE_TYPE, operator="Exists", min_values=count)


POOL_CASES = [
    in_pool(
        "a pool's taint",
        pod=pod(),
        pool=node_pool(taints=["team=blue"]),
        rule=RefusalRule.TAINT,
        says="taint team=blue:NoSchedule",
    ),
    in_pool(
        "a pool of Windows nodes",
        pod=pod(),
        pool=node_pool(requirements=[(OS, "In", "windows")]),
        rule=RefusalRule.SYSTEM,
        says="runs Windows, which the pod does not ask for",
        count=0,
    ),
    in_pool(
        "a pool's requirement",
        pod=pod(selector={ARCH: "amd64"}),
        pool=node_pool("arm", requirements=[(ARCH, "In", "arm64")]),
        rule=RefusalRule.NO_TYPE,
        says="no available type meets the pool's own requirements",
        count=0,
    ),
    in_pool(
        "a label that nobody knows",
        pod=pod(),
        pool=node_pool("odd", requirements=[("karpenter.k8s.aws/instance-flavour", "In", "vanilla")]),
        rule=RefusalRule.UNKNOWN_LABEL,
        says="no known type meets karpenter.k8s.aws/instance-flavour In [vanilla]: "
        "the catalogue does not know this label",
        count=0,
    ),
    in_pool(
        "another value than the pool's",
        pod=pod(selector={ZONE: Z2}),
        pool=node_pool(requirements=[(ZONE, "In", Z1)]),
        rule=RefusalRule.LABEL,
        says=f"requires {ZONE} In [{Z2}], the pool has In [{Z1}]",
    ),
    in_pool(
        "a label the pool does not set",
        pod=pod(selector={"team": "blue"}),
        pool=node_pool(),
        rule=RefusalRule.LABEL,
        says="requires team In [blue], the pool does not set it",
    ),
    in_pool(
        "the name of a node",
        pod=pod(selector={HOSTNAME: "n9"}),
        pool=node_pool(),
        rule=RefusalRule.LABEL,
        says=f"requires {HOSTNAME} In [n9], which no new node has",
    ),
    in_pool(
        "a zone where nothing is sold",
        pod=pod(selector={ZONE: "z9"}),
        pool=node_pool(),
        rule=RefusalRule.NO_TYPE,
        says=f"no available type has {ZONE} In [z9]",
    ),
    in_pool(
        "a volume outside the pool",
        pod=pod(claims=["data"]),
        pool=node_pool(requirements=[(ZONE, "In", Z1)]),
        rule=RefusalRule.VOLUME,
        says=f"its volumes require {ZONE} In [{Z2}]",
        others={**PVC, "persistent_volumes": (pv("disk", zones=[Z2]),)},
    ),
    in_pool(
        "more than any type has",
        pod=pod(cpu=64),
        pool=node_pool(),
        rule=RefusalRule.NOT_ENOUGH,
        says="no type has 64 cpu (15.9 at most)",
    ),
    in_pool(
        "more than daemons leave",
        pod=pod(cpu=15),
        pool=node_pool(),
        rule=RefusalRule.NOT_ENOUGH,
        says="no type has 15 cpu left after its daemons (14.9 at most)",
        others={"daemon_sets": (daemon_set(cpu=1),)},
    ),
    in_pool(
        "no type has both",
        pod=pod(cpu=15, memory="15Gi"),
        pool=node_pool(),
        rule=RefusalRule.NOT_ENOUGH,
        says="no type has 15 cpu and 15Gi memory",
        catalog=Catalog((instance_type("c", 16, "8Gi"), instance_type("m", 4, "32Gi"))),
    ),
    in_pool(
        "a daemon's port",
        pod=pod(ports=[9100]),
        pool=node_pool(),
        rule=RefusalRule.PORT,
        says="its daemons take the host port on every type",
        others={"daemon_sets": (daemon_set(ports=[9100]),)},
    ),
    in_pool(
        "a limit of cpu",
        pod=pod(cpu=1),
        pool=node_pool(limits={"cpu": 3}),
        rule=RefusalRule.LIMIT,
        says="limit cpu 3 reached (3 left, the smallest type that fits has 4)",
    ),
    in_pool(
        "a limit that leaves only types too small",
        pod=pod(cpu=10),
        pool=node_pool(limits={"cpu": 5}),
        rule=RefusalRule.LIMIT,
        says="limit cpu 5 reached (5 left, the smallest type that fits has 16)",
        count=1,
    ),
    in_pool(
        "a limit of nodes",
        pod=pod(),
        pool=node_pool(limits={"nodes": 0}),
        rule=RefusalRule.LIMIT,
        says="limit nodes 0 reached",
    ),
    in_pool(
        "affinity to nobody",
        pod=pod(near=[affinity_to({"app": "db"}, ZONE)]),
        pool=node_pool(),
        rule=RefusalRule.AFFINITY,
        says="zone affinity: no pod app=db there",
    ),
    in_pool(
        "affinity to a host",
        pod=pod(near=[affinity_to({"app": "db"})]),
        pool=node_pool(),
        rule=RefusalRule.AFFINITY,
        says="host affinity: no pod app=db there",
    ),
    in_pool(
        "too few types left for minValues",
        pod=pod(cpu=10),
        pool=node_pool(requirements=[values_wanted(2)]),
        rule=RefusalRule.MIN_VALUES,
        says=f"the types that fit have 1 values of {INSTANCE_TYPE}, minValues is 2",
        count=1,
    ),
    in_pool(
        "too few types at all for minValues",
        pod=pod(),
        pool=node_pool(requirements=[values_wanted(3)]),
        rule=RefusalRule.MIN_VALUES,
        says="the available types are too few for its minValues",
    ),
    in_pool(
        "reserved capacity is taken",
        pod=pod(),
        pool=node_pool(),
        rule=RefusalRule.RESERVED,
        says="waits for reserved capacity that other pods took",
        count=1,
        first=[TAKES_ALL],
        catalog=reserved_type(),
        asked={"strict_reserved": True},
    ),
    in_pool(
        "a pool with a fixed number of nodes",
        pod=pod(),
        pool=node_pool(replicas=2),
        rule=RefusalRule.CLOSED,
        says="keeps a fixed number of nodes",
        count=0,
    ),
    in_pool(
        "types cut from the list break minValues",
        pod=pod(),
        pool=node_pool(requirements=[values_wanted(601)]),
        rule=RefusalRule.MIN_VALUES,
        says="the cheapest types that may be listed are too few for its minValues",
        count=601,
        catalog=Catalog(tuple(instance_type(f"t{i:03}", price=1 + i) for i in range(601))),
    ),
]

MIXED_CASES = [
    Case(
        name="several rules, the most frequent first",
        pod=pod(memory="20Gi", labels=WEB, spread=[spread(WEB)]),
        nodes=[N1, N2, node("n3", memory="64Gi", zone=Z1), node("n4", taints=["team=blue"], zone=Z2)],
        bound=[pod("a-1", node="n1", labels=WEB)],
        asked={"existing_only": True},
        expect=[(2, NODES, RefusalRule.NOT_ENOUGH), (1, NODES, RefusalRule.SPREAD), (1, NODES, RefusalRule.TAINT)],
        says="2 nodes: not enough memory (20Gi wanted, at most 16Gi free); 1: would break zone spread; "
        "1: taint team=blue:NoSchedule",
    ),
    Case(
        name="nodes, then pools as they are tried",
        pod=pod(cpu=64, selector={ARCH: "amd64"}),
        nodes=[N1],
        pools=[node_pool("light", limits={"cpu": 100}), node_pool("heavy", weight=9, taints=["gpu"])],
        expect=[
            (1, NODES, RefusalRule.NOT_ENOUGH),
            (2, "pool heavy", RefusalRule.TAINT),
            (2, "pool light", RefusalRule.NOT_ENOUGH),
        ],
        says="1 node: not enough cpu (64 wanted, at most 4 free); pool heavy: taint gpu:NoSchedule; "
        "pool light: no type has 64 cpu (15.9 at most)",
    ),
    *(
        Case(
            name=f"more {kind} volumes than a node of the type attaches",
            pod=pod(claims=["d1", "d2"]),
            nodes=[node("n1", type="small", taints=["full"])],
            pools=[node_pool()],
            bound=bound,
            catalog=Catalog((instance_type("small", 4, "16Gi"),)),
            others={
                "persistent_volume_claims": (pvc("d1", volume="d1"), pvc("d2", volume="d2")),
                "persistent_volumes": (pv("d1", driver=DRIVER), pv("d2", driver=DRIVER)),
                "csi_nodes": (csi_node("n1", **{DRIVER: 1}),),
            },
            expect=[(1, NODES, RefusalRule.TAINT), (1, "pool default", RefusalRule.ATTACH_LIMIT)],
            says=f"1 node: taint full:NoSchedule; pool default: no type attaches 2 {DRIVER} volumes (1 at most)",
        )
        for kind, bound in (("own", ()), ("shared", (pod("b-1", claims=["d1", "d2"], node="n1"),)))
    ),
    Case(
        name="a pod that waits for reserved capacity keeps its preferences",
        pod=pod(prefer=[(1, node_term((ZONE, "In", Z1)))]),
        nodes=[N2],
        pools=[node_pool()],
        first=[TAKES_ALL],
        catalog=reserved_type(),
        asked={"strict_reserved": True},
        expect=[(1, NODES, RefusalRule.RESERVED), (1, "pool default", RefusalRule.RESERVED)],
        says="1 node: would accept it without its preferences, but the pod waits for reserved capacity; "
        "pool default: waits for reserved capacity that other pods took",
    ),
    Case(
        name="a cluster without anything",
        pod=pod(),
        expect=[(0, "new nodes", RefusalRule.NO_TYPE)],
        says="new nodes: there is no NodePool to create one",
    ),
    Case(
        name="a pod that can be nowhere",
        pod=pod(claims=["gone"]),
        nodes=[N1],
        pools=[node_pool()],
        expect=[(1, "pod", RefusalRule.REFUSED)],
        says="claim default/gone does not exist",
    ),
    Case(
        name="a pod with dynamic resource claims",
        pod=replace(
            pod(),
            spec=replace(
                pod().spec, containers=(Container(name="main", resources=Resources(claims=({"name": "gpu"},))),)
            ),
        ),
        nodes=[N1],
        expect=[(1, "pod", RefusalRule.REFUSED)],
        says="uses dynamic resource claims, which are not looked at (--ignore-dra-requests)",
    ),
]
