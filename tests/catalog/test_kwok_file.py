"""Catalogue files: both spellings of field names, what is filled in, and what is refused with one line."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.factories import amounts

from karpool.catalog.instance_types import InstanceType
from karpool.catalog.kwok_file import read_types
from karpool.catalog.sources import open_catalog
from karpool.model.devices import NO_DEVICES
from karpool.model.requirements import one_of
from karpool.wire.problems import InputError


def rule(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def offering(price: float | None = 0.1, zone: str = "z1", kind: str = "on-demand", **rest: Any) -> dict[str, Any]:
    rules = [rule("karpenter.sh/capacity-type", kind), rule("topology.kubernetes.io/zone", zone)]
    return {"Price": price, "Available": True, "Requirements": rules, **rest}


def entry(name: str = "m5.large", **rest: Any) -> dict[str, Any]:
    return {
        "name": name,
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "2", "memory": "8Gi"},
        "offerings": [offering()],
        **rest,
    }


def read(*entries: Any) -> tuple[InstanceType, ...]:
    return read_types(json.dumps(entries).encode(), "types.json")


def capitalised(value: Any) -> Any:
    if isinstance(value, list):
        return [capitalised(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {key[0].upper() + key[1:]: part if key == "resources" else capitalised(part) for key, part in value.items()}


def test_a_type_is_read_with_its_labels_and_overhead() -> None:
    (made,) = read(entry(resources={"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": 1}))
    assert made.allocatable == amounts({"cpu": "1900m", "memory": "8182Mi", "pods": 110, "nvidia.com/gpu": 1})
    expected = {
        "node.kubernetes.io/instance-type": "m5.large",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "karpenter.kwok.sh/instance-size": "large",
        "karpenter.kwok.sh/instance-family": "m5",
        "karpenter.kwok.sh/instance-cpu": "2",
        "karpenter.kwok.sh/instance-memory": "8Gi",
        "karpenter.sh/capacity-type": "on-demand",
        "topology.kubernetes.io/zone": "z1",
    }
    assert dict(made.requirements) == {key: one_of(value) for key, value in expected.items()}
    (sold,) = made.offerings
    assert (sold.price, sold.available, sold.zone, sold.capacity_type) == (0.1, True, "z1", "on-demand")


def test_field_names_may_be_written_in_either_case() -> None:
    written = entry(offerings=[offering(0.2, Available=False), offering(0.3, "z2", "spot")])
    lower = {**written, "offerings": [{k.lower(): v for k, v in sold.items()} for sold in written["offerings"]]}
    assert read(written) == read(lower) == read(capitalised(written))


@pytest.mark.parametrize(
    ("name", "size", "family"),
    [("m5.large", "large", "m5"), ("c-4x-amd64", "2", "c"), ("n2-standard-2", "2", "n2"), ("big", "2", "b")],
)
def test_size_and_family_come_from_the_name(name: str, size: str, family: str) -> None:
    (made,) = read(entry(name))
    assert made.requirements["karpenter.kwok.sh/instance-size"] == one_of(size)
    assert made.requirements["karpenter.kwok.sh/instance-family"] == one_of(family)


def test_several_operating_systems_are_alternatives() -> None:
    (made,) = read(entry(operatingSystems=["linux", "windows"]))
    assert made.requirements["kubernetes.io/os"] == one_of("linux", "windows")


def test_a_missing_price_is_unknown_and_not_zero() -> None:
    without = offering()
    del without["Price"]
    (made,) = read(entry(offerings=[without, offering(None)]))
    assert [sold.price for sold in made.offerings] == [None, None]


def test_a_type_may_have_no_offerings() -> None:
    for nothing in ([], None):
        (made,) = read(entry(offerings=nothing))
        assert made.offerings == ()
        assert "topology.kubernetes.io/zone" not in made.requirements


def test_an_offering_of_several_zones_is_several_offerings() -> None:
    sold = {"Price": 1, "Requirements": [rule("topology.kubernetes.io/zone", "z1", "z2")]}
    (made,) = read(entry(offerings=[sold]))
    assert [(each.zone, each.price, each.available) for each in made.offerings] == [("z1", 1, True), ("z2", 1, True)]


@pytest.mark.parametrize(("capacity", "available"), [(3, True), (0, False)])
def test_reserved_capacity_costs_nothing_and_is_there_while_it_lasts(capacity: int, *, available: bool) -> None:
    sold = offering(0.7, kind="reserved", ReservationCapacity=capacity)
    sold["Requirements"].append(rule("karpenter.sh/reservation-id", "r-1"))
    (made,) = read(entry(offerings=[sold]))
    (reserved,) = made.offerings
    assert (reserved.price, reserved.launchable, reserved.reserved) == (0.0, available, True)
    assert reserved.available
    assert (reserved.reservation_id, reserved.reservation_capacity) == ("r-1", capacity)


def price_of(value: Any) -> dict[str, Any]:
    return entry(offerings=[offering(value)])


def sold_by(bad: dict[str, Any]) -> dict[str, Any]:
    return entry(offerings=[{"Price": 1, "Requirements": [bad]}])


@pytest.mark.parametrize(
    ("entries", "line"),
    [
        ([7], "type [0]: expected a mapping, got a whole number"),
        ([{"name": "x"}], "type x: architecture: is missing; it is required here"),
        ([entry(3)], "type [0]: name: expected text, got a whole number"),
        ([entry(""), 1], "type : name: '' is not a label value"),
        ([entry("a\x1b[31m\nb")], r"type a\x1b[31m\nb: name: 'a\x1b[31m\nb' is not a label value"),
        ([entry(), entry()], "type m5.large: name: there is another type of this name"),
        ([entry(operatingSystems="linux")], "type m5.large: operatingSystems: expected a list, got text"),
        ([entry(operatingSystems=[])], "type m5.large: operatingSystems: expected at least one"),
        ([entry(resources={"cpu": "2"})], "type m5.large: resources.memory: a type needs some"),
        ([entry(resources={"cpu": "1.5.2"})], "type m5.large: resources.cpu: '1.5.2' is not a quantity"),
        ([entry(resources={"cpu": -1})], "type m5.large: resources.cpu: -1 is negative"),
        (
            [entry(resources={"cpu": []})],
            "type m5.large: resources.cpu: expected a whole number or a number or text, got a list",
        ),
        ([price_of(-0.1)], "type m5.large: offerings[0].price: -0.1 is negative"),
        ([price_of("cheap")], "type m5.large: offerings[0].price: expected a number, got text"),
        (
            [sold_by(rule("topology.kubernetes.io/zone", "a", operator="Near"))],
            "type m5.large: offerings[0].requirements[0].operator: unknown operator 'Near'",
        ),
        (
            [sold_by(rule("topology.kubernetes.io/zone", "a", operator="NotIn"))],
            "type m5.large: offerings[0].requirements[0]: topology.kubernetes.io/zone of an offering needs operator In",
        ),
        (
            [sold_by(rule("karpenter.sh/capacity-type", "free"))],
            "type m5.large: offerings[0].requirements[0].values: unknown capacity type free",
        ),
        ([sold_by(rule("a b", "c"))], "type m5.large: offerings[0].requirements[0].key: 'a b' is not a label key"),
    ],
)
def test_a_wrong_file_gets_one_line_with_file_type_and_field(entries: list[Any], line: str) -> None:
    with pytest.raises(InputError) as caught:
        read(*entries)
    assert str(caught.value).startswith(f"types.json: {line}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "truncated"),
        (b'[{"name": "x"', "truncated"),
        (b"name: x", "malformed"),
        (b"[1e999]", "out of range"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b'[{"offerings": ' + b"[" * 800 + b"]" * 800 + b"}]", "expected a mapping, got a list"),
        (b"{}", "expected a JSON array"),
    ],
)
def test_bytes_that_are_no_catalogue_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(InputError, match=rf"types\.json: .*{why}"):
        read_types(data, "types.json")


def test_the_devices_that_nodes_of_a_type_will_publish_are_read_as_they_are_written() -> None:
    slices = [
        {
            "driver": "gpu.example.com",
            "pool": "gpus",
            "devices": [
                {"name": "gpu-0", "attributes": {"Values": {"int": 8}}, "capacity": {"memory": {"value": "80Gi"}}}
            ],
        },
        {
            "driver": "gpu.example.com",
            "pool": "gpus",
            "sharedCounters": [{"name": "card", "counters": {"x": {"value": 2}}}],
        },
    ]
    bindings = [{"driver": "gpu.example.com", "pool": "gpus", "attribute": "bus", "devices": ["gpu-0", "gpu-1"]}]
    (made,) = read(entry(resourceSlices=slices, attributeBindings=bindings))
    (device,) = made.devices.slices[0].devices
    assert device.attributes["Values"].integer == 8
    assert device.capacity["memory"].value == amounts({"memory": "80Gi"})["memory"]
    assert made.devices.bindings[0].devices == ("gpu-0", "gpu-1")
    assert read(entry())[0].devices is NO_DEVICES


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"resourceSlices": [{"driver": "d", "pool": "p"}]}, "resourceSlices[0]: expected devices or sharedCounters"),
        (
            {
                "resourceSlices": [{"driver": "d", "pool": "p", "devices": [{"name": "x"}]}],
                "attributeBindings": [{"driver": "d", "pool": "p", "attribute": "a", "devices": ["x", "x"]}],
            },
            "attributeBindings[0].devices: expected at least two devices",
        ),
    ],
)
def test_devices_that_nobody_could_publish_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        read(entry(**given))


def test_a_packed_file_is_read_like_a_plain_one(tmp_path: Path) -> None:
    plain, packed = tmp_path / "types.json", tmp_path / "types.json.gz"
    plain.write_bytes(json.dumps([entry()]).encode())
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert open_catalog(str(packed)).types == open_catalog(str(plain)).types == read(entry())


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"no/such/file\.json: does not exist"):
        open_catalog("no/such/file.json")
