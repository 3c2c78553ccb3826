"""Scenarios of requirements, pools, instance types, minValues and reservations."""

from dataclasses import replace
from typing import Any

from tests.factories import (
    GPU_A,
    GPU_B,
    Z1,
    Z2,
    Z3,
    affinity_to,
    incremental_types,
    init_container,
    instance_type,
    node,
    node_pool,
    node_term,
    pod,
    pv,
    pvc,
)
from tests.packing.scenarios import Scenario, one_pod, pods

from karpool.catalog.instance_types import Catalog, Offering
from karpool.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, RESERVATION_ID, RESERVED, SPOT, ZONE
from karpool.model.nodepool import PoolRequirement
from karpool.model.requirements import Requirements, one_of
from karpool.packing.options import MinValues, Options
from karpool.packing.result import PlacementResult

FIVE = incremental_types(5)
APART = [affinity_to({"app": "web"}, HOSTNAME)]
CLEAN, SOFT, HARD = (
    node_pool("clean"),
    node_pool("soft", taints=["a=b:PreferNoSchedule"]),
    node_pool("hard", taints=["a"]),
)


def labelled(*rule: str) -> dict[str, Any]:
    return {"pools": [node_pool(labels={"k": "v"})], "require": [("k", *rule)]}


REQUIREMENTS = [
    one_pod(
        "a label the pool gives another value", fails=True, pools=[node_pool(labels={"k": "v"})], selector={"k": "w"}
    ),
    one_pod("a custom label nobody gives", fails=True, selector={"k": "v"}),
    one_pod("a label of the pool may have to exist", **labelled("Exists")),
    one_pod("a label of the pool may not have to be absent", fails=True, **labelled("DoesNotExist")),
    one_pod("the only value is excluded", fails=True, **labelled("NotIn", "v")),
    one_pod("another value is excluded", **labelled("NotIn", "w")),
    one_pod("an absent label is not another value", require=[("k", "NotIn", "v")]),
    one_pod("Exists does not widen In", fails=True, require=[(ZONE, "In", "nowhere"), (ZONE, "Exists")]),
    one_pod("contradictions on a custom key", fails=True, require=[("k", "In", "a"), ("k", "In", "b")]),
    one_pod(
        "contradictions with a preference",
        require=[(ZONE, "In", Z1)],
        prefer=[(1, node_term((ZONE, "In", Z2)))],
        new_nodes=1,
    ),
    one_pod("old label names", selector={"failure-domain.beta.kubernetes.io/zone": Z1}, new_nodes=1),
    one_pod("the large size", catalog=FIVE, selector={"size": "large"}, launches="fake-it-4"),
    one_pod("the small size", catalog=FIVE, selector={"size": "small"}, launches="fake-it-0"),
    one_pod("large and a small type", fails=True, catalog=FIVE, selector={"size": "large", INSTANCE_TYPE: "fake-it-0"}),
    one_pod("a label of large types exists", catalog=FIVE, require=[("special", "Exists")], types=["fake-it-4"]),
    one_pod(
        "a label of large types does not exist",
        catalog=FIVE,
        require=[("special", "DoesNotExist")],
        types=[f"fake-it-{i}" for i in range(4)],
    ),
    one_pod(
        "a bound on whole numbers", catalog=FIVE, require=[("integer", "Gt", "3")], types=["fake-it-3", "fake-it-4"]
    ),
    one_pod("spot only", selector={CAPACITY_TYPE: SPOT}, new_nodes=1),
    one_pod("spot in a zone without it", fails=True, selector={CAPACITY_TYPE: SPOT, ZONE: "test-zone-3"}),
    one_pod("a new node has no name yet", fails=True, selector={HOSTNAME: "n1"}),
    one_pod("a new node has none of the excluded names", require=[(HOSTNAME, "NotIn", "n1")], new_nodes=1),
    one_pod(
        "the second alternative will do", terms=[node_term(("k", "Exists")), node_term((ZONE, "In", Z1))], new_nodes=1
    ),
    one_pod("a preference is given up", prefer=[(1, node_term(("k", "Exists")))], new_nodes=1),
]

POOLS = [
    one_pod("a pool that asks pods to stay away comes last", pools=[SOFT, CLEAN], pool="clean"),
    one_pod(
        "the only pool asks pods to stay away", pools=[SOFT], prefer=[(1, node_term(("k", "Exists")))], pool="soft"
    ),
    one_pod("a pool keeps pods away", fails=True, pools=[HARD]),
    one_pod("a tolerated taint", pools=[HARD], tolerations=["a"], pool="hard"),
    one_pod("startup taints do not count", pools=[node_pool(startup_taints=["a"])], new_nodes=1),
    one_pod("the heavier pool is tried first", pools=[CLEAN, node_pool("heavy", weight=50)], pool="heavy"),
    one_pod("static pools are left out", fails=True, pools=[node_pool(replicas=3)]),
    one_pod("a limit with room for a small type", pools=[node_pool(limits={"cpu": 2})], cpu="1.75", types=["small"]),
    one_pod("a limit too low for the type it needs", fails=True, pools=[node_pool(limits={"cpu": 2})], cpu="2.1"),
    one_pod(
        "a limit that a node has used up",
        fails=True,
        pools=[node_pool(limits={"cpu": 2})],
        nodes=[node("n1", cpu=2)],
        bound=[pod("old-1", cpu="1.75", node="n1")],
        cpu="1.75",
    ),
    one_pod(
        "a node that goes gives its share of the limit back",
        pools=[node_pool(limits={"cpu": 2})],
        nodes=[node("n1", cpu=2, cordoned=True)],
        asked={"gone": ["n1"]},
        cpu="1.75",
        new_nodes=1,
    ),
    Scenario(
        name="a limit holds within a run", pods=pods(2, cpu="1.75"), unplaced=1, pools=[node_pool(limits={"cpu": 3})]
    ),
    Scenario(
        name="a limit of two nodes",
        pods=pods(3, anti=APART),
        unplaced=1,
        new_nodes=2,
        pools=[node_pool(limits={"nodes": 2})],
    ),
    Scenario(
        name="two nodes of a limit of two are there",
        pods=pods(1, anti=APART, first=3),
        unplaced=1,
        pools=[node_pool(limits={"nodes": 2})],
        nodes=[node("n1"), node("n2")],
        bound=[pod("web-1", node="n1", anti=APART), pod("web-2", node="n2", anti=APART)],
    ),
    one_pod("a limit of no node", fails=True, pools=[node_pool(limits={"nodes": 0})]),
]

THREE = Catalog(tuple(instance_type(name, price=price) for name, price in (("small", 2), ("medium", 3), ("large", 1))))
TYPES = [
    Scenario(
        name="two to a node",
        pods=pods(40, cpu="10m", memory="1.8G", selector={ARCH: "amd64"}),
        launches=["default"] * 20,
    ),
    Scenario(
        name="small pods fill the gaps",
        pods=pods(40, cpu="10m", memory="1.8G", selector={ARCH: "amd64"})
        + pods(20, app="tiny", cpu="10m", memory="400M", selector={ARCH: "amd64"}),
        new_nodes=20,
    ),
    one_pod(
        "an init container larger than the rest", cpu=1, init_containers=[init_container(cpu=2)], launches="default"
    ),
    one_pod("overhead on top", cpu=1, overhead={"cpu": 2}, launches="default"),
    one_pod("the cheapest type comes first", catalog=THREE, launches="large", types=["small", "medium", "large"]),
    Scenario(
        name="two kinds of GPU, two nodes",
        pods=[pod("a-1", requests={GPU_A: 1}), pod("b-1", requests={GPU_B: 1})],
        launches=["gpu-a", "gpu-b"],
    ),
    one_pod("no type has both kinds of GPU", fails=True, requests={GPU_A: 1, GPU_B: 1}),
    one_pod("a request of nothing", requests={"example.com/unknown": 0}, new_nodes=1),
    one_pod(
        "a type that is sold out",
        fails=True,
        catalog=Catalog((instance_type("t", offers=[(SPOT, Z1)], unavailable=[(SPOT, Z1)]),)),
    ),
    Scenario(
        name="pods are spread over open nodes, fewest first",
        pods=[*pods(2, cpu=3, selector={ARCH: "amd64"}), *pods(2, app="x")],
        placed_on={"x-1": 0, "x-2": 1},
    ),
]


def at_least(count: int, key: str = INSTANCE_TYPE, operator: str = "Exists", *values: str) -> PoolRequirement:
    return PoolRequirement(key=key, operator=operator, values=values, min_values=count)


def minimum(answer: PlacementResult) -> int | None:
    return answer.new_nodes[0].requirements[INSTANCE_TYPE].min_values


DISK = {"persistent_volume_claims": (pvc("disk", volume="disk"),), "persistent_volumes": (pv("disk", zones=[Z1]),)}
THREE_ZONES = node_pool(requirements=[at_least(2, ZONE, "In", Z1, Z2, Z3)])
TEN, TWO, MAKE_DO = incremental_types(10), incremental_types(2), {"options": Options(min_values=MinValues.BEST_EFFORT)}
MIN_VALUES = [
    one_pod("eleven of ten types", fails=True, catalog=TEN, pools=[node_pool(requirements=[at_least(11)])]),
    one_pod("ten of ten types", catalog=TEN, pools=[node_pool(requirements=[at_least(10)])], new_nodes=1),
    one_pod(
        "too few types are large enough", fails=True, catalog=TEN, pools=[node_pool(requirements=[at_least(5)])], cpu=7
    ),
    one_pod(
        "the larger of two minimums holds",
        catalog=TWO,
        pools=[
            node_pool(
                requirements=[
                    at_least(1, INSTANCE_TYPE, "In", "fake-it-0", "fake-it-1"),
                    at_least(2, INSTANCE_TYPE, "NotIn", "x"),
                ]
            )
        ],
        check=lambda answer: minimum(answer) == 2,
    ),
    one_pod(
        "values that the pod excludes do not count",
        fails=True,
        pools=[node_pool(requirements=[at_least(2, ZONE)])],
        selector={ZONE: Z1},
    ),
    one_pod(
        "values that the pod leaves count",
        pools=[node_pool(requirements=[at_least(2, ZONE)])],
        require=[(ZONE, "In", Z1, Z2)],
        new_nodes=1,
    ),
    one_pod(
        "best effort lowers a minimum to the values that the pod leaves",
        pools=[node_pool(requirements=[at_least(2, ZONE)])],
        selector={ZONE: Z1},
        asked=MAKE_DO,
        check=lambda answer: (
            answer.new_nodes[0].requirements[ZONE].min_values == 1 and answer.new_nodes[0].min_values_relaxed
        ),
    ),
    Scenario(
        name="zones that a volume excludes do not count, and another pod's node keeps its minimum",
        pods=[pod("pinned-1", claims=["disk"]), *pods(1)],
        pools=[THREE_ZONES],
        others=DISK,
        unplaced=["pinned-1"],
        check=lambda answer: [new.requirements[ZONE].min_values for new in answer.new_nodes] == [2],
    ),
    Scenario(
        name="best effort lowers a minimum to the zone of a volume",
        pods=[pod("pinned-1", claims=["disk"])],
        pools=[THREE_ZONES],
        others=DISK,
        asked=MAKE_DO,
        check=lambda answer: (
            [
                (set(new.requirements[ZONE].values), new.requirements[ZONE].min_values, new.min_values_relaxed)
                for new in answer.new_nodes
            ]
            == [({Z1}, 1, True)]
        ),
    ),
    one_pod(
        "best effort makes do with fewer rather than take a lighter pool",
        catalog=TWO,
        pools=[node_pool("heavy", weight=9, requirements=[at_least(3)]), CLEAN],
        asked=MAKE_DO,
        pool="heavy",
        check=lambda answer: minimum(answer) == 2 and answer.new_nodes[0].min_values_relaxed,
    ),
    Scenario(
        name="best effort never lowers the minimum of a node that has pods",
        pods=[*pods(1, cpu="1.5"), *pods(1, app="x", cpu="1.4", selector={"size": "small"})],
        catalog=incremental_types(3),
        pools=[node_pool(requirements=[at_least(3)])],
        asked=MAKE_DO,
        new_nodes=2,
        check=lambda answer: minimum(answer) == 2,
    ),
]


def reserved(name: str, units: int) -> Offering:
    wanted = Requirements.of_labels({CAPACITY_TYPE: RESERVED, ZONE: Z1, RESERVATION_ID: name})
    return Offering(requirements=wanted, price=0.01, reservation_id=name, reservation_capacity=units)


def with_reservations(**units: int) -> Catalog:
    plain = instance_type("t", cpu=4)
    kinds = plain.requirements.without(CAPACITY_TYPE).with_key(CAPACITY_TYPE, one_of(RESERVED, "spot", "on-demand"))
    extra = tuple(reserved(name, count) for name, count in units.items())
    return Catalog((replace(plain, requirements=kinds, offerings=(*plain.offerings, *extra)),))


WAITS = {"reserved_strict": True}
RESERVATIONS = [
    Scenario(
        name="one reservation, two pools, two pods: one waits",
        pods=pods(2, anti=APART),
        pools=[node_pool("heavy", weight=9), CLEAN],
        catalog=with_reservations(r1=1),
        asked=WAITS,
        unplaced=1,
        pool="heavy",
        check=lambda answer: (
            answer.new_nodes[0].reservations == ("r1",)
            and answer.new_nodes[0].requirements[CAPACITY_TYPE] == one_of(RESERVED)
        ),
    ),
    Scenario(
        name="two reservations of one and two nodes, four pods: two wait",
        pods=pods(4, anti=APART),
        catalog=with_reservations(r1=1, r2=2),
        asked=WAITS,
        unplaced=2,
        check=lambda answer: [new.reservations for new in answer.new_nodes] == [("r1", "r2"), ("r2",)],
    ),
    Scenario(
        name="pods that need not wait take other capacity",
        pods=pods(2, anti=APART),
        catalog=with_reservations(r1=1),
        check=lambda answer: [new.reservations for new in answer.new_nodes] == [("r1",), ()],
    ),
    Scenario(
        name="a pod that would cost a node its reservation goes elsewhere",
        pods=[*pods(1, cpu=2), *pods(1, app="x", selector={CAPACITY_TYPE: SPOT})],
        catalog=with_reservations(r1=1),
        asked=WAITS,
        check=lambda answer: [new.reservations for new in answer.new_nodes] == [("r1",), ()],
    ),
    one_pod(
        "reserved capacity switched off",
        catalog=with_reservations(r1=1),
        asked={"options": Options(reserved_capacity=False)},
        check=lambda answer: answer.new_nodes[0].reservations == (),
    ),
]

POOL_SCENARIOS = [*REQUIREMENTS, *POOLS, *TYPES, *MIN_VALUES, *RESERVATIONS]
