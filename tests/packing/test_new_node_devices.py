"""New nodes for pods with claims on devices: types that will have them, and devices that many nodes can reach."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from msgspec.structs import replace as changed
from tests.factories import Z1, Z2, instance_type, node, node_claim, node_pool, pod
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
from tests.packing.placing import place

from karpool.catalog.instance_types import Catalog
from karpool.model.devices import NO_DEVICES, ResourceClaim, ResourceSlice, TypeDevices
from karpool.model.labels import INITIALIZED, INSTANCE_TYPE, ZONE
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.packing.options import Options
from karpool.packing.result import PlacementResult

DRA = Options(ignore_dra_requests=False)


def catalog(**types: TypeDevices) -> Catalog:
    """Types by name with their devices, cheapest first; each has 8 CPUs and is sold in two zones."""
    return Catalog(
        tuple(
            replace(instance_type(name, 8, "32Gi", price=1.0 + at, zones=(Z1, Z2)), devices=given)
            for at, (name, given) in enumerate(types.items())
        )
    )


def wait(name: str, *claims: str, cpu: str = "500m") -> Pod:
    return using(pod(name, pending=True, cpu=cpu), *claims)


def cluster(
    pods: Sequence[Pod], *claims: ResourceClaim, slices: Sequence[ResourceSlice] = (), **others: object
) -> Objects:
    return Objects(
        pods=tuple(pods),
        node_pools=(node_pool(),),
        resource_claims=claims,
        resource_slices=tuple(slices),
        device_classes=(device_class(),),
        **others,  # type: ignore[arg-type]
    )


def placed(objects: Objects, types: Catalog) -> PlacementResult:
    return place(objects, types, pods=objects.pods, options=DRA)


def launched(objects: Objects, types: Catalog) -> list[tuple[list[str], list[str]]]:
    """The pods and the types of each new node."""
    result = placed(objects, types)
    return [
        (sorted(key.removeprefix("default/") for key in new.pods), list(new.instance_types)) for new in result.new_nodes
    ]


def test_a_new_node_has_only_types_that_will_have_the_devices() -> None:
    types = catalog(plain=NO_DEVICES, one=of_type(devices(1)), two=of_type(devices(2)))
    assert launched(cluster([wait("x-1", "c")], claim("c")), types) == [(["x-1"], ["one", "two"])]
    two = claim("c", asking(exactly(2)))
    assert launched(cluster([wait("x-1", "c")], two), types) == [(["x-1"], ["two"])]
    assert launched(cluster([wait("x-1", "c")], claim("c", asking(exactly(3)))), types) == []
    assert placed(cluster([wait("x-1", "c")], two), types).new_nodes[0].drivers == (DRIVER,)


def test_the_first_alternative_that_some_type_fulfils_is_judged_type_by_type() -> None:
    either = claim("c", asking([exactly(2, name="big"), exactly(1, name="small")]))
    types = catalog(one=of_type(devices(1)), two=of_type(devices(2)))
    assert launched(cluster([wait("x-1", "c")], either), types) == [(["x-1"], ["one", "two"])]


def test_pods_share_a_new_node_as_long_as_a_type_has_devices_for_all() -> None:
    pods = [wait(f"x-{at}", f"c{at}") for at in range(3)]
    claims = [claim(f"c{at}") for at in range(3)]
    types = catalog(one=of_type(devices(1)), two=of_type(devices(2)))
    assert launched(cluster(pods, *claims), types) == [(["x-0", "x-1"], ["two"]), (["x-2"], ["one", "two"])]


def test_pods_without_claims_join_a_node_with_devices_and_the_other_way_round() -> None:
    types = catalog(plain=NO_DEVICES, one=of_type(devices(1)))
    small = cluster([pod("web-1", pending=True, cpu="1"), wait("x-1", "c")], claim("c"))
    assert launched(small, types) == [(["web-1", "x-1"], ["one"])]
    large = cluster([pod("web-1", pending=True, cpu="100m"), wait("x-1", "c")], claim("c"))
    assert launched(large, types) == [(["web-1", "x-1"], ["one"])]


def test_two_pods_that_share_a_claim_on_devices_of_a_new_node_share_the_node() -> None:
    types = catalog(one=of_type(devices(1)))
    both = cluster([wait("x-1", "c"), wait("x-2", "c")], claim("c"))
    assert launched(both, types) == [(["x-1", "x-2"], ["one"])]
    crowded = cluster([wait("x-1", "c", cpu="5"), wait("x-2", "c", cpu="5")], claim("c"))
    assert launched(crowded, types) == [(["x-1"], ["one"])]


def test_devices_that_many_nodes_reach_are_given_once_whatever_the_type_becomes() -> None:
    types = catalog(plain=NO_DEVICES, other=of_type(devices(1, "nic")))
    network = slice_of(devices(1), all_nodes=True, pool="net")
    pods = [wait(f"x-{at}", f"c{at}", cpu="5") for at in range(2)]
    selecting = asking(exactly(1, 'device.driver == "gpu.example.com"'))
    objects = cluster(pods, claim("c0", selecting), claim("c1", selecting), slices=[network])
    # Published devices come before those that a node will have; the second pod gets what is left.
    assert launched(objects, types) == [(["x-0"], ["plain", "other"]), (["x-1"], ["other"])]


def test_a_device_of_a_zone_binds_the_new_node_to_the_zone() -> None:
    types = catalog(plain=NO_DEVICES)
    zonal = slice_of(devices(1), selector=in_zone(Z2), pool="net")
    (new,) = placed(cluster([wait("x-1", "c")], claim("c"), slices=[zonal]), types).new_nodes
    assert new.requirements[ZONE].values == {Z2}
    elsewhere = slice_of(devices(1), selector=in_zone("nowhere"), pool="net")
    assert launched(cluster([wait("x-1", "c")], claim("c"), slices=[elsewhere]), types) == []


def test_devices_of_another_node_are_not_for_new_nodes() -> None:
    types = catalog(plain=NO_DEVICES)
    objects = cluster([wait("x-1", "c")], claim("c"), slices=[slice_of(devices(1), node="away")])
    assert launched(objects, types) == []


def test_a_claim_that_is_allocated_says_where_a_new_node_must_be() -> None:
    types = catalog(plain=NO_DEVICES)
    net = slice_of(devices(1), selector=in_zone(Z1), pool="net")
    away = using(pod("y-1", node="n"), "c")
    given = claim("c", has=["gpu-0"], pool="net", users=["y-1"], selector=in_zone(Z1))
    full = node("n", cpu="1", zone=Z1)
    objects = Objects(
        pods=(away, wait("x-1", "c", cpu="4")),
        nodes=(full,),
        node_pools=(node_pool(),),
        resource_claims=(given,),
        resource_slices=(net,),
        device_classes=(device_class(),),
    )
    (new,) = place(objects, types, pods=objects.pods[1:], options=DRA).new_nodes
    assert new.requirements[ZONE].values == {Z1}


@pytest.mark.parametrize(("bound", "types_left"), [([["a", "b"]], ["t"]), ([["a", "x"], ["x", "b"]], ["t"]), ([], [])])
def test_devices_that_will_have_a_value_in_common_match(bound: list[list[str]], types_left: list[str]) -> None:
    types = catalog(t=of_type([device(name) for name in "abx"], bound={f"{DRIVER}/bus": bound}))
    wanted = claim("c", asking(exactly(2), match=f"{DRIVER}/bus"))
    assert [new[1] for new in launched(cluster([wait("x-1", "c")], wanted), types)] == (
        [types_left] if types_left else []
    )


def test_counters_of_a_type_hold_for_all_pods_of_a_new_node() -> None:
    parts = [device(f"part-{at}", counters={"card": {"memory": 40}}) for at in range(3)]
    types = catalog(t=of_type(parts, counters={"card": {"memory": 80}}))
    pods = [wait(f"x-{at}", f"c{at}") for at in range(3)]
    claims = [claim(f"c{at}") for at in range(3)]
    assert [new[0] for new in launched(cluster(pods, *claims), types)] == [["x-0", "x-1"], ["x-2"]]


def test_a_node_that_still_starts_has_the_devices_of_its_type_and_not_twice() -> None:
    types = catalog(one=of_type(devices(1)))
    starting = node("n", cpu="8", memory="32Gi", labels={INSTANCE_TYPE: "one", INITIALIZED: "false"})
    pods = [wait(f"x-{at}", f"c{at}") for at in range(2)]
    claims = [claim(f"c{at}") for at in range(2)]
    objects = cluster(
        pods,
        *claims,
        slices=[slice_of(devices(1), node="n")],
        nodes=(starting,),
        node_claims=(node_claim("n", node_name="n", labels=starting.metadata.labels),),
    )
    result = placed(objects, types)
    assert result.placed["default/x-0"] == "n"
    assert [new.pods for new in result.new_nodes] == [("default/x-1",)]
    there = changed(
        starting, metadata=changed(starting.metadata, labels={**starting.metadata.labels, INITIALIZED: "true"})
    )
    assert placed(changed(objects, nodes=(there,)), types).placed["default/x-0"] == "n"
