"""Pods with claims on devices go only where their claims can be fulfilled."""

from collections.abc import Sequence

from msgspec.structs import replace
from tests.factories import default_catalog, node, node_pool, pod
from tests.factories.devices import (
    asking,
    claim,
    device,
    device_class,
    devices,
    exactly,
    in_zone,
    slice_of,
    template,
    using,
)
from tests.packing.placing import place

from karpool.cluster.snapshot import Snapshot
from karpool.model.devices import ClaimConsumer, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from karpool.model.node import Node
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.packing.engine import Engine
from karpool.packing.options import Options
from karpool.packing.refusal_messages import RefusalRule
from karpool.packing.refusals import refusals, why_unplaced

DRA = Options(ignore_dra_requests=False)
A, B, C = (node(name) for name in "abc")


def cluster(
    pods: Sequence[Pod],
    *,
    nodes: Sequence[Node] = (A, B, C),
    claims: Sequence[ResourceClaim] = (),
    slices: Sequence[ResourceSlice] = (),
    templates: Sequence[ResourceClaimTemplate] = (),
) -> Objects:
    return Objects(
        pods=tuple(pods),
        nodes=tuple(nodes),
        node_pools=(node_pool(),),
        resource_claims=tuple(claims),
        resource_slices=tuple(slices),
        resource_claim_templates=tuple(templates),
        device_classes=(device_class(),),
    )


def places(objects: Objects, *pods: Pod, gone: Sequence[str] = ("a",), **rest: object) -> dict[str, str]:
    """Where pods go without some nodes; those that go nowhere are left out."""
    result = place(objects, default_catalog(), pods=pods, gone=gone, options=DRA, **rest)  # type: ignore[arg-type]
    return {key.removeprefix("default/"): str(target) for key, target in result.placed.items()}


def why(objects: Objects, only: Pod, gone: Sequence[str] = ("a",), options: Options = DRA) -> str:
    snapshot = Snapshot(objects, ignore_dra_requests=options.ignore_dra_requests)
    engine = Engine(snapshot, default_catalog(), options)
    row = snapshot.pods.rows[only.key]
    with engine.what_if() as trial:
        trial.remove([snapshot.nodes.rows[name] for name in gone])
        assert trial.place([row]).unplaced == [row]
        assert all(entry.rule in (RefusalRule.DEVICES, RefusalRule.REFUSED) for entry in refusals(engine, row))
        return why_unplaced(engine, row)


def test_by_default_a_pod_with_claims_goes_nowhere() -> None:
    moving = using(pod("x-1", node="a"), "c")
    objects = cluster([moving], claims=[claim("c")], slices=[slice_of(devices(1), node="b")])
    assert "--ignore-dra-requests" in why(objects, moving, options=Options())
    assert places(objects, moving) == {"x-1": "b"}


def test_a_pod_goes_to_the_node_with_a_free_device_although_another_comes_first() -> None:
    moving = using(pod("x-1", node="a"), "mine")
    objects = cluster(
        [moving, using(pod("y-1", node="b"), "theirs")],
        claims=[
            claim("mine", has=["gpu-0"], node="a", users=["x-1"]),
            claim("theirs", has=["gpu-0"], node="b", users=["y-1"]),
        ],
        slices=[slice_of(devices(1), node=name) for name in "abc"],
    )
    assert places(objects, moving) == {"x-1": "c"}


def test_pods_that_move_together_do_not_get_the_same_device() -> None:
    moving = [using(pod(f"x-{at}", node="a"), f"c{at}") for at in range(3)]
    claims = [claim(f"c{at}", has=[f"gpu-{at}"], node="a", users=[f"x-{at}"]) for at in range(3)]
    slices = [slice_of(devices(3), node="a"), slice_of(devices(2), node="b"), slice_of(devices(1), node="c")]
    objects = cluster(moving, claims=claims, slices=slices)
    assert places(objects, *moving) == {"x-0": "b", "x-1": "b", "x-2": "c"}
    assert places(objects, *moving, gone=["a", "c"]) == {"x-0": "b", "x-1": "b"}


def test_pods_without_claims_are_placed_as_ever_beside_those_that_have_some() -> None:
    large, small = pod("big-1", node="a", cpu="1500m"), pod("tiny-1", node="a", cpu="100m")
    moving = using(pod("x-1", node="a", cpu="1"), "c")
    objects = cluster(
        [large, moving, small],
        nodes=[A, node("b", cpu="2"), node("c", cpu="4")],
        claims=[claim("c", has=["gpu-0"], node="a", users=["x-1"])],
        slices=[slice_of(devices(1), node="b"), slice_of(devices(1), node="a")],
    )
    # The largest is placed first, and takes the room beside the only free device.
    assert places(objects, large, moving, small) == {"big-1": "b", "tiny-1": "b"}
    free = replace(objects, resource_slices=(*objects.resource_slices, slice_of(devices(1), node="c")))
    assert places(free, large, moving, small) == {"big-1": "b", "x-1": "c", "tiny-1": "b"}


def test_a_claim_that_others_still_use_keeps_its_devices_and_its_place() -> None:
    leaving, staying = using(pod("x-1", node="a"), "shared"), using(pod("x-2", node="b"), "shared")
    slices = [slice_of(devices(1), all_nodes=True, pool="net"), slice_of(devices(1), node="c")]
    everywhere = claim("shared", has=["gpu-0"], pool="net", users=["x-1", "x-2"])
    assert places(cluster([leaving, staying], claims=[everywhere], slices=slices), leaving) == {"x-1": "b"}
    zonal = claim("shared", has=["gpu-0"], pool="net", users=["x-1", "x-2"], selector=in_zone("elsewhere"))
    assert places(cluster([leaving, staying], claims=[zonal], slices=slices), leaving) == {}


def test_a_claim_whose_pods_all_leave_is_allocated_anew_and_its_devices_are_free() -> None:
    first, second = (using(pod(f"x-{at}", node="a"), "shared") for at in (1, 2))
    other = using(pod("y-1", node="a"), "own")
    objects = cluster(
        [first, second, other],
        claims=[
            claim("shared", has=["gpu-0"], pool="net", users=["x-1", "x-2"]),
            claim("own", has=["gpu-1"], pool="net", users=["y-1"]),
        ],
        slices=[slice_of(devices(2), all_nodes=True, pool="net")],
    )
    assert set(places(objects, first, second, other)) == {"x-1", "x-2", "y-1"}


def test_pods_that_share_a_claim_of_local_devices_stay_together() -> None:
    first, second = (using(pod(f"x-{at}", node="a", cpu="1500m"), "shared") for at in (1, 2))
    slices = [slice_of(devices(1), node="b"), slice_of(devices(1), node="c")]
    objects = cluster(
        [first, second], nodes=[A, node("b", cpu="2"), node("c", cpu="2")], claims=[claim("shared")], slices=slices
    )
    assert places(objects, first, second) == {"x-1": "b"}
    roomy = replace(objects, nodes=(A, node("b", cpu="8"), node("c", cpu="8")))
    assert places(roomy, first, second) == {"x-1": "b", "x-2": "b"}


def test_a_claim_that_is_used_by_somebody_unknown_is_not_taken_away() -> None:
    moving = using(pod("x-1", node="a"), "c")
    held = claim("c", has=["gpu-0"], node="a", users=["x-1", "stranger"])
    slices = [slice_of(devices(1), node="a"), slice_of(devices(1), node="b")]
    assert "has devices that cannot be reached from there" in why(
        cluster([moving], claims=[held], slices=slices), moving
    )
    workload = ClaimConsumer(resource="podgroups", api_group="scheduling.k8s.io", name="x-1")
    status = replace(held.status, reserved_for=(workload,))
    objects = cluster([moving], claims=[replace(held, status=status)], slices=slices)
    assert "has devices that cannot be reached from there" in why(objects, moving)


def test_claims_made_from_a_template_are_found_by_the_name_in_the_status() -> None:
    made = using(pod("x-1", node="a"), templates={"one": "x-1-one-abc"})
    objects = cluster([made], claims=[claim("x-1-one-abc")], slices=[slice_of(devices(1), node="c")])
    assert places(objects, made) == {"x-1": "c"}
    assert "claim default/x-1-one-abc does not exist" in why(cluster([made]), made)


def test_a_pod_whose_claim_is_not_made_yet_asks_for_what_its_template_says() -> None:
    waiting = using(pod("x-1", pending=True), templates={"two": None})
    slices = [slice_of(devices(1), node="a"), slice_of(devices(2), node="b")]
    two = template("two", asking(exactly(2)))
    assert places(cluster([waiting], slices=slices, templates=[two]), waiting, gone=()) == {"x-1": "b"}
    assert "its template two is missing" in why(cluster([waiting], slices=slices), waiting)


def test_the_reason_says_which_request_lacks_how_many_devices_on_how_many_nodes() -> None:
    moving = using(pod("x-1", node="a"), "c")
    slices = [slice_of(devices(1), node="b"), slice_of(devices(1), node="c")]
    objects = cluster([moving], claims=[claim("c", asking(exactly(2)))], slices=slices)
    assert why(objects, moving).startswith("2 nodes: claim default/c: request r0 asks for 2 of class gpu, 1 of 1 free")
    lost = cluster([moving], claims=[claim("c", asking(exactly(1, of="none")))], slices=slices)
    assert why(lost, moving) == "claim default/c request r0: device class none does not exist"


def test_a_node_whose_pods_have_devices_that_nobody_knows_takes_no_pod_with_claims() -> None:
    moving, unknown = using(pod("x-1", node="a"), "c"), using(pod("y-1", node="b"), "gone")
    slices = [slice_of(devices(4), node="b")]
    objects = cluster([moving, unknown], claims=[claim("c")], slices=slices)
    assert "pod default/y-1 has devices there that are not known" in why(objects, moving)
    # One without a written allocation counts with the devices that it would get.
    assumed = cluster(
        [moving, using(pod("y-1", node="b"), "d")], claims=[claim("c"), claim("d", asking(exactly(4)))], slices=slices
    )
    assert "asks for 1 of class gpu, 0 of 4 free" in why(assumed, moving)


def test_a_device_that_an_administrator_looks_at_is_free() -> None:
    moving = using(pod("x-1", node="a"), "c")
    watched = claim("admin", has=["gpu-0"], node="b", admin=True, users=["someone"])
    objects = cluster([moving], claims=[claim("c"), watched], slices=[slice_of(devices(1), node="b")])
    assert places(objects, moving) == {"x-1": "b"}


def test_of_a_shared_device_only_the_share_of_those_who_leave_is_freed() -> None:
    moving = [using(pod(f"x-{at}", node="a"), f"c{at}") for at in (1, 2)]
    spec = asking(exactly(1, capacity={"bandwidth": 4}))
    shares = [
        claim(f"c{at}", spec, has=["nic"], pool="net", consumed={"bandwidth": 4}, users=[f"x-{at}"]) for at in (1, 2)
    ]
    other = claim("stays", spec, has=["nic"], pool="net", consumed={"bandwidth": 4}, users=["y-1"])
    nic = slice_of([device("nic", shared=True, capacity={"bandwidth": 12})], all_nodes=True, pool="net")
    late = using(pod("z-1", pending=True), "late")
    objects = cluster(
        [*moving, using(pod("y-1", node="b"), "stays"), late],
        claims=[*shares, other, claim("late", spec)],
        slices=[nic],
    )
    assert set(places(objects, *moving, late)) == {"x-1", "x-2"}
    assert set(places(objects, moving[0], late, gone=())) == {"x-1"}


def test_an_unreadable_claim_leaves_nobody_sure_of_any_device() -> None:
    moving = using(pod("x-1", node="a"), "c")
    spoiled = claim("other")
    spoiled = replace(spoiled, metadata=replace(spoiled.metadata, unreadable="status: expected an object"))
    objects = cluster([moving], claims=[claim("c"), spoiled], slices=[slice_of(devices(1), node="b")])
    assert why(objects, moving) == "claim default/other cannot be read: status: expected an object"
