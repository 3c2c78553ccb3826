"""Which devices claims get: counts, alternatives, selectors, constraints, counters and shared capacity."""

from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.factories.devices import (
    DRIVER,
    asking,
    device,
    device_class,
    devices,
    exactly,
    in_zone,
    slice_of,
)

from karpool.cluster.devices.claims import ClaimError, demand
from karpool.cluster.devices.pools import Place, SliceTable
from karpool.cluster.devices.search import Grant, Holdings, NoDevicesError, allocate
from karpool.model.devices import (
    CapacityPolicy,
    Device,
    DeviceCapacity,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequests,
    DeviceSelector,
    DeviceTaint,
    DeviceToleration,
    ExactRequest,
    ResourceClaimSpec,
    ResourceSlice,
    ValidRange,
)
from karpool.wire.quantity import parse_quantity

CLASSES = {
    entry.name: entry
    for entry in (
        device_class(),
        device_class("big", 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'),
    )
}
HERE = Place("a", {"topology.kubernetes.io/zone": "z1"})


def solve(
    specs: ResourceClaimSpec | Sequence[ResourceClaimSpec],
    *slices: ResourceSlice,
    taken: Sequence[str] = (),
    shares: Sequence[Grant] = (),
    place: Place = HERE,
) -> list[list[str]]:
    """By claim the names of the devices that it gets; `taken`: devices of pool `a` that somebody has."""
    listed = [specs] if isinstance(specs, ResourceClaimSpec) else specs
    holdings = Holdings()
    holdings.book("other", [*(Grant((DRIVER, "a", name)) for name in taken), *shares])
    reach = SliceTable(slices).reach(place, lambda _: True)
    before = dict(holdings.of_device)
    demands = [(f"ns/c{at}", demand(spec, CLASSES)) for at, spec in enumerate(listed)]
    granted = allocate(demands, reach, holdings)
    assert holdings.of_device == before
    return [[grant.device[2] for grant in granted[key]] for key, _ in demands]


def local(*listed: object, **rest: object) -> ResourceSlice:
    return slice_of(listed, node="a", **rest)  # type: ignore[arg-type]


def test_a_claim_gets_as_many_devices_as_it_counts_and_none_that_is_taken() -> None:
    assert solve(asking(exactly(2)), local(*devices(4)), taken=["gpu-1"]) == [["gpu-0", "gpu-2"]]
    with pytest.raises(NoDevicesError, match="claim ns/c0: request r0 asks for 3 of class gpu, 2 of 4 free"):
        solve(asking(exactly(3)), local(*devices(4)), taken=["gpu-1", "gpu-3"])


def test_two_claims_of_a_pod_get_different_devices() -> None:
    assert solve([asking(exactly(1)), asking(exactly(2))], local(*devices(3))) == [["gpu-0"], ["gpu-1", "gpu-2"]]


def test_all_devices_means_every_one_that_suits_none_taken_and_at_least_one() -> None:
    assert solve(asking(exactly(None)), local(*devices(3))) == [["gpu-0", "gpu-1", "gpu-2"]]
    with pytest.raises(NoDevicesError, match="asks for all of class gpu, 2 of 3 free"):
        solve(asking(exactly(None)), local(*devices(3)), taken=["gpu-1"])
    with pytest.raises(NoDevicesError, match="asks for all of class gpu, 0 of 0 free"):
        solve(asking(exactly(None, 'device.driver == "other"')), local(*devices(3)))


def test_all_devices_cannot_be_had_while_a_pool_is_incomplete_or_invalid() -> None:
    incomplete = slice_of(devices(1, "nic"), node="a", pool="nics", driver="nic.example.com", count=2)
    assert solve(asking(exactly(1)), local(*devices(1)), incomplete) == [["gpu-0"]]
    with pytest.raises(NoDevicesError, match=r"pool nics of driver nic.example.com is incomplete: 1 of 2 slices"):
        solve(asking(exactly(None)), local(*devices(1)), incomplete)
    doubled = local(device("same"), device("same"))
    with pytest.raises(NoDevicesError, match="invalid: two devices have the same name"):
        solve(asking(exactly(None)), doubled)
    with pytest.raises(NoDevicesError, match="0 of 0 free"):
        solve(asking(exactly(1)), doubled)


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old = local(*devices(4), name="old")
    new = local(*devices(1, "new"), name="new", generation=2)
    assert solve(asking(exactly(1)), old, new) == [["new-0"]]
    with pytest.raises(NoDevicesError):
        solve(asking(exactly(2)), old, new)


def test_the_first_alternative_that_completes_everything_is_used() -> None:
    either = [exactly(2, of="gpu", name="two"), exactly(1, of="gpu", name="one")]
    assert solve(asking(either), local(*devices(2))) == [["gpu-0", "gpu-1"]]
    assert solve(asking(either), local(*devices(1))) == [["gpu-0"]]
    # The first alternative would leave nothing to the second request.
    assert solve(asking(either, exactly(1)), local(*devices(2))) == [["gpu-0", "gpu-1"]]


def test_selectors_of_the_class_and_of_the_request_must_both_be_true() -> None:
    small = device("small", capacity={"memory": "16Gi"}, attributes={"model": "a100"})
    large = device("large", capacity={"memory": "80Gi"}, attributes={"model": "a100"})
    other = device("other", capacity={"memory": "80Gi"}, attributes={"model": "h100"})
    wanted = exactly(1, 'device.attributes["gpu.example.com"].model == "h100"', of="big")
    assert solve(asking(exactly(1, of="big")), local(small, large, other)) == [["large"]]
    assert solve(asking(wanted), local(small, large, other)) == [["other"]]


def test_what_cannot_be_evaluated_is_not_to_be_had_and_says_why() -> None:
    with pytest.raises(NoDevicesError, match="request r0: a selector cannot be evaluated: KeyError"):
        solve(asking(exactly(1, 'device.attributes["gpu.example.com"].absent == 1')), local(device("x")))
    with pytest.raises(NoDevicesError, match=r"a selector cannot be evaluated: .*cost"):
        solve(asking(exactly(1, "cost(device)")), local(device("x")))
    with pytest.raises(NoDevicesError, match="neither true nor false"):
        solve(asking(exactly(1, "device.driver")), local(device("x")))


def test_devices_of_a_constraint_have_the_same_value() -> None:
    def on(bus: str, name: str) -> object:
        return device(name, attributes={"bus": bus, "example.com/rack": 1})

    slices = local(on("x", "a0"), on("y", "b0"), on("y", "b1"))
    assert solve(asking(exactly(2), match=f"{DRIVER}/bus"), slices) == [["b0", "b1"]]
    assert solve(asking(exactly(3), match="example.com/rack"), slices) == [["a0", "b0", "b1"]]
    # Only the devices of the requests that it names.
    assert solve(asking(exactly(1), exactly(1), exactly(1), match=f"{DRIVER}/bus", of=["r1", "r2"]), slices) == [
        ["a0", "b0", "b1"]
    ]
    with pytest.raises(NoDevicesError):
        solve(asking(exactly(3), match=f"{DRIVER}/bus"), slices)
    with pytest.raises(NoDevicesError):
        solve(asking(exactly(1), match=f"{DRIVER}/nothing"), slices)


def test_a_constraint_can_name_one_alternative_of_a_request() -> None:
    x, y = (device(bus, attributes={"bus": bus}) for bus in "xy")
    either = [exactly(1, name="first"), exactly(1, name="second")]
    held = asking(exactly(1), either, match=f"{DRIVER}/bus", of=["r0", "r1/first"])
    assert solve(held, local(x, y)) == [["x", "y"]]


def test_partitions_of_a_device_share_its_counters() -> None:
    def part(name: str, memory: str) -> object:
        return device(name, counters={"card": {"memory": memory}})

    parts = local(
        part("whole", "80Gi"), part("half-0", "40Gi"), part("half-1", "40Gi"), counters={"card": {"memory": "80Gi"}}
    )
    assert solve(asking(exactly(1)), parts) == [["whole"]]
    assert solve(asking(exactly(2)), parts) == [["half-0", "half-1"]]
    assert solve(asking(exactly(1)), parts, taken=["half-0"]) == [["half-1"]]
    with pytest.raises(NoDevicesError):
        solve(asking(exactly(1)), parts, taken=["whole"])
    with pytest.raises(NoDevicesError, match="0 of 0"):
        solve(asking(exactly(1)), local(part("x", "1Gi")))


def test_counters_may_be_published_in_a_slice_of_their_own() -> None:
    counted = local(name="counters", count=2, counters={"card": {"slots": 1}})
    parts = local(*(device(f"p{at}", counters={"card": {"slots": 1}}) for at in range(2)), name="parts", count=2)
    assert solve(asking(exactly(1)), counted, parts) == [["p0"]]
    with pytest.raises(NoDevicesError):
        solve(asking(exactly(2)), counted, parts)


def test_several_claims_share_a_device_until_its_capacity_is_used_up() -> None:
    nic = local(device("nic", shared=True, capacity={"bandwidth": "10"}))
    wanted = asking(exactly(1, capacity={"bandwidth": "4"}))
    assert solve([wanted, wanted], nic) == [["nic"], ["nic"]]
    with pytest.raises(NoDevicesError):
        solve([wanted, wanted, wanted], nic)
    half = Grant((DRIVER, "a", "nic"), (("bandwidth", parse_quantity("7").nano),))
    with pytest.raises(NoDevicesError):
        solve(wanted, nic, shares=[half])
    # Who does not say how much takes everything.
    with pytest.raises(NoDevicesError):
        solve(asking(exactly(1)), nic, shares=[half])


@pytest.mark.parametrize(
    ("policy", "asked", "taken"),
    [
        (CapacityPolicy(default=parse_quantity(2)), None, 2),
        (CapacityPolicy(valid_values=(parse_quantity(2), parse_quantity(5))), 3, 5),
        (CapacityPolicy(valid_values=(parse_quantity(2), parse_quantity(5))), 6, None),
        (CapacityPolicy(valid_range=ValidRange(min=parse_quantity(2), step=parse_quantity(3))), 1, 2),
        (CapacityPolicy(valid_range=ValidRange(min=parse_quantity(2), step=parse_quantity(3))), 6, 8),
        (CapacityPolicy(valid_range=ValidRange(min=parse_quantity(1), max=parse_quantity(4))), 5, None),
        (None, None, 10),
    ],
)
def test_what_is_asked_of_a_capacity_is_rounded_as_its_policy_says(
    policy: CapacityPolicy | None, asked: int | None, taken: int | None
) -> None:
    nic = device("nic", shared=True, capacity={"share": DeviceCapacity(parse_quantity(10), policy)})
    wanted = asking(exactly(1, capacity={} if asked is None else {"share": asked}))
    reach = SliceTable([local(nic)]).reach(HERE, lambda _: True)
    if taken is None:
        with pytest.raises(NoDevicesError):
            allocate([("c", demand(wanted, CLASSES))], reach, Holdings())
    else:
        granted = allocate([("c", demand(wanted, CLASSES))], reach, Holdings())
        assert granted["c"][0].consumed == (("share", parse_quantity(taken).nano),)


def test_a_tainted_device_is_only_for_those_who_tolerate_it() -> None:
    broken = local(device("gpu", taints=[DeviceTaint(key="broken", effect="NoSchedule")]))
    with pytest.raises(NoDevicesError):
        solve(asking(exactly(1)), broken)
    assert solve(asking(exactly(1, tolerations=[DeviceToleration(key="broken", operator="Exists")])), broken) == [
        ["gpu"]
    ]


def test_a_node_reaches_its_own_slices_those_for_all_and_those_that_select_it() -> None:
    slices = (
        slice_of(devices(1, "own"), node="a"),
        slice_of(devices(1, "foreign"), node="b"),
        slice_of(devices(1, "all"), all_nodes=True, pool="all"),
        slice_of(devices(1, "zonal"), selector=in_zone("z1"), pool="zonal"),
        slice_of(devices(1, "elsewhere"), selector=in_zone("z2"), pool="elsewhere"),
        slice_of(devices(1, "nowhere"), pool="nowhere"),
    )
    assert solve(asking(exactly(None)), *slices) == [["own-0", "all-0", "zonal-0"]]
    # What a node that still starts has published may not be all of it.
    starting = Place(HERE.name, HERE.labels, local=False)
    assert solve(asking(exactly(None)), *slices, place=starting) == [["all-0", "zonal-0"]]


def test_slices_of_a_node_that_goes_are_not_there() -> None:
    owned = slice_of(devices(1), all_nodes=True, owner="gone")
    reach = SliceTable([owned]).reach(HERE, lambda name: name != "gone")
    assert reach.devices == ()


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (asking(exactly(1, of="none")), "device class none does not exist"),
        (asking(exactly(33)), "asks for 33 devices; a claim can have 32"),
        (asking(exactly(1), constraints=[DeviceConstraint(distinct_attribute="x")]), "distinctAttribute"),
        (asking(exactly(1), constraints=[DeviceConstraint()]), "constraint of an unknown kind"),
        (asking(ExactRequest(device_class_name="gpu", allocation_mode="Some")), "allocation mode Some"),
        (
            asking(ExactRequest(device_class_name="gpu", selectors=(DeviceSelector(),))),
            "has a selector that is no CEL expression",
        ),
        (ResourceClaimSpec(devices=DeviceRequests(requests=(DeviceRequest(name="r0"),))), "kind that is not known"),
    ],
)
def test_what_is_not_supported_is_refused_with_the_reason(spec: ResourceClaimSpec, says: str) -> None:
    with pytest.raises(ClaimError, match=says):
        demand(spec, CLASSES)


def test_a_claim_has_no_more_than_32_devices() -> None:
    assert len(solve(asking(exactly(20), exactly(12)), local(*devices(40)))[0]) == 32
    with pytest.raises(ClaimError, match="more than the 32 devices"):
        solve(asking(exactly(20), exactly(13)), local(*devices(40)))
    # The smaller alternative is the one that leaves room for the other request.
    either = [exactly(20, name="many"), exactly(2, name="few")]
    assert len(solve(asking(either, exactly(14)), local(*devices(40)))[0]) == 16


def test_a_search_that_takes_too_long_gives_up_and_says_so() -> None:
    pairs = local(*(device(f"d{at}", attributes={"bus": at // 2}) for at in range(40)))
    with pytest.raises(NoDevicesError, match="after 20,000 steps"):
        solve(asking(exactly(10), exactly(3), match=f"{DRIVER}/bus", of=["r1"]), pairs)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Device], list[str], list[ResourceClaimSpec]]:
    """A few devices with a bus and a size each, some of them taken, and claims on them, perhaps with a constraint."""
    count = draw(st.integers(1, 5))
    made = [
        device(f"d{at}", attributes={"bus": draw(st.sampled_from("xy")), "size": draw(st.integers(1, 2))})
        for at in range(count)
    ]
    taken = draw(st.lists(st.sampled_from([entry.name for entry in made]), max_size=2, unique=True))
    large = f'device.attributes["{DRIVER}"].size == 2'
    request = st.builds(
        lambda count, picky: exactly(count, *([large] if picky else [])), st.integers(1, 2), st.booleans()
    )
    requests = st.lists(request, min_size=1, max_size=2)
    bound = st.sampled_from((None, f"{DRIVER}/bus"))
    specs = st.builds(lambda listed, match: asking(*listed, match=match), requests, bound)
    return made, taken, draw(st.lists(specs, min_size=1, max_size=2))


def possible(made: Sequence[Device], taken: Sequence[str], specs: Sequence[ResourceClaimSpec]) -> bool:
    """Whether some assignment fulfils all claims, found by trying every one."""
    slots = [
        (number, bool(request.exactly and request.exactly.selectors))
        for number, spec in enumerate(specs)
        for request in spec.devices.requests
        for _ in range(request.exactly.count if request.exactly else 0)
    ]
    free = [entry for entry in made if entry.name not in taken]
    for chosen in permutations(free, len(slots)):
        fits = all(
            not picky or entry.attributes["size"].integer == 2 for entry, (_, picky) in zip(chosen, slots, strict=True)
        )
        buses = [
            {entry.attributes["bus"].string for entry, (owner, _) in zip(chosen, slots, strict=True) if owner == number}
            for number, spec in enumerate(specs)
            if spec.devices.constraints
        ]
        if fits and all(len(values) == 1 for values in buses):
            return True
    return False


@pytest.mark.slow
@examples(150)
@given(problems())
def test_devices_are_found_if_and_only_if_there_are_any(
    problem: tuple[list[Device], list[str], list[ResourceClaimSpec]],
) -> None:
    made, taken, specs = problem
    try:
        found = solve(specs, local(*made), taken=taken)
    except NoDevicesError:
        assert not possible(made, taken, specs)
        return
    names = [name for listed in found for name in listed]
    assert len(set(names)) == len(names)
    assert not set(names) & set(taken)
    assert possible(made, taken, specs)
