"""Nodes whose pods have claims on devices: they go only if every claim finds its devices elsewhere."""

from dataclasses import replace
from typing import Any

from tests.disruption.scenarios import CATALOG, NOTHING, NodeWithPods, Scenario, either_search, node, pool_of
from tests.factories import Z2, pod
from tests.factories.devices import (
    DRIVER,
    asking,
    claim,
    device,
    device_class,
    devices,
    exactly,
    in_zone,
    of_type,
    slice_of,
    using,
)

from karpool.disruption.plan import Plan
from karpool.model.devices import ResourceClaim, ResourceSlice
from karpool.packing.options import Options

DRA = Options(ignore_dra_requests=False)
NO_SUPPLY = pool_of(limits={"cpu": 0})
STILL = pool_of("still", consolidate_after="Never", limits={"cpu": 0})


def holder(name: str, at: str, cpu: str = "500m") -> Any:
    """A pod on a node with a claim that is called as the pod."""
    return using(pod(name, node=at, cpu=cpu), name)


def held(name: str, at: str, *has: str, **rest: Any) -> ResourceClaim:
    return claim(name, has=has, node=at, users=[name], **rest)


def case(
    name: str,
    *,
    nodes: list[NodeWithPods],
    claims: list[ResourceClaim],
    slices: list[ResourceSlice],
    **expected: Any,
) -> Scenario:
    others = {
        "resource_claims": tuple(claims),
        "resource_slices": tuple(slices),
        "device_classes": (device_class(),),
    }
    known = {"options": DRA, "pools": (NO_SUPPLY, STILL), "other_objects": others, **expected}
    return Scenario(name, nodes=nodes, **known)


def still(name: str, *pods: Any, **rest: Any) -> NodeWithPods:
    return node(name, "large", pods=list(pods), pool="still", **rest)


def targets(plan: Plan) -> dict[str, Any]:
    return {move.pod.removeprefix("default/"): move.target for step in plan.steps for move in step.command.moves}


WITH_GPUS = replace(
    CATALOG,
    types=tuple(
        replace(entry, devices=of_type(devices(2))) if entry.name in ("medium", "large") else entry
        for entry in CATALOG.types
    ),
)
A = node("a", pods=[holder("x-1", "a")])
MINE = held("x-1", "a", "gpu-0")
ON_A = slice_of(devices(2), node="a")

DEVICES = [
    case(
        "a free device elsewhere",
        nodes=[A, still("b")],
        claims=[MINE],
        slices=[ON_A, slice_of(devices(1), node="b")],
        removes="a",
        check=lambda plan: targets(plan) == {"x-1": "b"},
    ),
    case(
        "claims are not looked at",
        nodes=[A, still("b")],
        claims=[MINE],
        slices=[ON_A, slice_of(devices(1), node="b")],
        options=Options(),
        removes=NOTHING,
        reasons={"a": "PodsWouldNotFit"},
        messages={"a": "--ignore-dra-requests"},
    ),
    case(
        "the device elsewhere is taken",
        nodes=[A, still("b", holder("y-1", "b"))],
        claims=[MINE, held("y-1", "b", "gpu-0")],
        slices=[ON_A, slice_of(devices(1), node="b")],
        removes=NOTHING,
        reasons={"a": "PodsWouldNotFit"},
        messages={"a": "asks for 1 of class gpu, 0 of 1 free"},
    ),
    case(
        "the node with room has no device, the one with a device has room too",
        nodes=[A, still("b"), still("c")],
        claims=[MINE],
        slices=[ON_A, slice_of(devices(1), node="c")],
        removes="a",
        check=lambda plan: targets(plan) == {"x-1": "c"},
    ),
    case(
        "two pods, one device",
        nodes=[node("a", pods=[holder("x-1", "a"), holder("x-2", "a")]), still("b")],
        claims=[MINE, held("x-2", "a", "gpu-1")],
        slices=[ON_A, slice_of(devices(1), node="b")],
        removes=NOTHING,
        reasons={"a": "PodsWouldNotFit"},
    ),
    case(
        "a device of the network follows its pod",
        nodes=[A, still("b")],
        claims=[claim("x-1", has=["gpu-0"], pool="net", users=["x-1"])],
        slices=[slice_of(devices(1), all_nodes=True, pool="net")],
        removes="a",
    ),
    case(
        "a device of a zone cannot be reached from another",
        nodes=[A, still("b", zone="elsewhere")],
        claims=[claim("x-1", has=["gpu-0"], pool="net", users=["x-1"])],
        slices=[slice_of(devices(1), selector=in_zone("test-zone-1"), pool="net")],
        removes=NOTHING,
        reasons={"a": "PodsWouldNotFit"},
    ),
    case(
        "a larger alternative gives way to a smaller one",
        nodes=[A, still("b")],
        claims=[held("x-1", "a", "gpu-0", "gpu-1", spec=asking([exactly(2, name="two"), exactly(1, name="one")]))],
        slices=[ON_A, slice_of(devices(1), node="b")],
        removes="a",
    ),
    case(
        "a selector that no device elsewhere satisfies",
        nodes=[A, still("b")],
        claims=[
            held("x-1", "a", "gpu-0", spec=asking(exactly(1, 'device.attributes["gpu.example.com"].model == "x"')))
        ],
        slices=[ON_A, slice_of([device("gpu-0", attributes={"model": "y"})], node="b")],
        removes=NOTHING,
        messages={"a": "asks for 1 of class gpu, 0 of 0 free"},
    ),
    case(
        "no new node is made for claims on devices that nobody knows of",
        nodes=[node("a", "huge", pods=[holder("x-1", "a")])],
        claims=[MINE],
        slices=[ON_A],
        pools=(pool_of(),),
        removes=NOTHING,
        messages={"a": "pool default: claim default/x-1: request r0 asks for 1 of class gpu, 0 of 0 free"},
    ),
    case(
        "a cheaper node of a type that will have the devices",
        nodes=[node("a", "huge", pods=[holder("x-1", "a")])],
        claims=[MINE],
        slices=[ON_A],
        pools=(pool_of(),),
        catalog=WITH_GPUS,
        removes="a",
        launches="medium",
        check=lambda plan: plan.steps[0].command.replacements[0].drivers == (DRIVER,),
    ),
    case(
        "a cheaper node for a device that every node can reach",
        nodes=[node("a", "huge", pods=[holder("x-1", "a")])],
        claims=[claim("x-1", has=["gpu-0"], pool="net", users=["x-1"])],
        slices=[slice_of(devices(1), all_nodes=True, pool="net")],
        pools=(pool_of(),),
        removes="a",
        launches="tiny",
    ),
    case(
        "a cheaper node in the zone of the devices",
        nodes=[node("a", "huge", pods=[holder("x-1", "a")])],
        claims=[claim("x-1", has=["gpu-0"], pool="net", users=["x-1"])],
        slices=[slice_of(devices(1), selector=in_zone(Z2), pool="net")],
        pools=(pool_of(),),
        removes="a",
        check=lambda plan: plan.steps[0].command.replacements[0].zones == (Z2,),
    ),
]


@either_search(DEVICES)
def test_devices_decide(scenario: Scenario) -> None:
    scenario.verify()


def test_later_steps_of_a_plan_know_who_took_the_devices_in_earlier_ones() -> None:
    """Two nodes want the one free device of a third: the first gets it, and is remembered."""
    nodes = [node(name, pods=[holder(f"{name}-1", name)]) for name in "ab"]
    scenario = case(
        "one device for two",
        nodes=[*nodes, still("c")],
        claims=[held(f"{name}-1", name, "gpu-0") for name in "ab"],
        slices=[*(slice_of(devices(1), node=name) for name in "abc")],
    )
    for search in ("prefix", "global"):
        made = replace(scenario, settings=replace(scenario.settings, search=search)).plan(None)
        assert [len(step.command.nodes) for step in made.steps] == [1]
        assert list(targets(made).values()) == ["c"]
        gone = made.steps[0].command.nodes
        (left,) = [fate for fate in made.fates if fate.candidate.name in "ab" and fate.candidate.name not in gone]
        assert "0 of 1 free" in " ".join(reason.message for reason in left.reasons)


def test_a_pending_pod_keeps_the_device_that_it_will_get() -> None:
    scenario = case(
        "a pod waits for the device",
        nodes=[A, still("b")],
        claims=[MINE, claim("waiting")],
        slices=[slice_of(devices(1), node="a"), slice_of(devices(1), node="b")],
        pods=[using(pod("z-1", pending=True, cpu="700m"), "waiting")],
    )
    assert not scenario.plan(None).steps


def test_several_nodes_go_together_when_all_their_claims_fit() -> None:
    scenario = case(
        "three into one",
        nodes=[*(node(name, pods=[holder(f"{name}-1", name)]) for name in "abc"), still("d")],
        claims=[held(f"{name}-1", name, "gpu-0") for name in "abc"],
        slices=[*(slice_of(devices(1), node=name) for name in "abc"), slice_of(devices(2), node="d")],
    )
    made = scenario.plan(None)
    assert sum(len(step.command.nodes) for step in made.steps) == 2
    assert list(targets(made).values()) == ["d", "d"]
