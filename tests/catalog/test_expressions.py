"""Requirement expressions: what they select, and what is not one."""

from collections.abc import Callable

import pytest

from karpool.catalog.expressions import parse_expressions, select
from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.catalog.kwok import kwok_types
from karpool.catalog.pricing import cheapest_launch
from karpool.catalog.sample import sample_types
from karpool.model.labels import ARCH, SPOT
from karpool.wire.problems import InputError

AWS = Catalog(sample_types())
GIB = 1024**3


def selected(*texts: str, catalog: Catalog = AWS) -> list[InstanceType]:
    return select(catalog, parse_expressions(texts))


def family(entry: InstanceType) -> str:
    return entry.name.partition(".")[0]


@pytest.mark.parametrize(
    ("texts", "holds"),
    [
        (["arch=arm64"], lambda e: e.requirements[ARCH].has("arm64")),
        (["kubernetes.io/arch in (arm64)"], lambda e: e.requirements[ARCH].has("arm64")),
        (["beta.kubernetes.io/arch == arm64"], lambda e: e.requirements[ARCH].has("arm64")),
        (["cpu>=8"], lambda e: e.capacity["cpu"].units >= 8),
        (["karpenter.k8s.aws/instance-cpu>7"], lambda e: e.capacity["cpu"].units >= 8),
        (["cpu < 4"], lambda e: e.capacity["cpu"].units < 4),
        (["cpu in (2, 4)"], lambda e: e.capacity["cpu"].units in (2, 4)),
        (["memory>=64Gi"], lambda e: e.capacity["memory"].units >= 64 * GIB),
        (["memory=8192"], lambda e: e.capacity["memory"].units == 8 * GIB),
        (["family in (m6i,m7i)"], lambda e: family(e) in ("m6i", "m7i")),
        (["family NotIn (m6i,m7i)"], lambda e: family(e) not in ("m6i", "m7i")),
        (["arch!=arm64", "cpu>=96"], lambda e: not e.requirements[ARCH].has("arm64") and e.capacity["cpu"].units >= 96),
        (["family not in (m6i)"], lambda e: family(e) != "m6i"),
        (["category=c,generation=7"], lambda e: family(e).startswith("c7")),
        (["gpu"], lambda e: "nvidia.com/gpu" in e.capacity),
        (["!gpu"], lambda e: "nvidia.com/gpu" not in e.capacity),
        (["!karpenter.k8s.aws/instance-gpu-count"], lambda e: "nvidia.com/gpu" not in e.capacity),
        (["type=m5.large"], lambda e: e.name == "m5.large"),
        (["region=eu-west-1"], lambda _: False),
        (["example.com/rack=7"], lambda _: False),
        (["example.com/rack!=7"], lambda _: True),
        ([], lambda _: True),
    ],
)
def test_an_expression_selects_the_types_for_which_it_holds(
    texts: list[str], holds: Callable[[InstanceType], bool]
) -> None:
    expected = {entry.name for entry in AWS.types if holds(entry)}
    assert {entry.name for entry in selected(*texts)} == expected


def test_only_offerings_that_meet_the_expressions_are_listed() -> None:
    (entry,) = selected("type=m5.large", "zone!=us-east-1a", "capacity-type=spot")
    assert [(o.zone[-1], o.capacity_type) for o in entry.offerings] == [("b", SPOT), ("c", SPOT), ("d", SPOT)]


def test_price_counts_the_fee() -> None:
    catalog = Catalog(AWS.types, node_fee=0.03)
    assert selected("price<0.03", catalog=catalog) == []
    (entry,) = selected("price<0.0339", catalog=catalog)
    assert (entry.name, {o.capacity_type for o in entry.offerings}) == ("t3a.micro", {SPOT})


def test_short_names_mean_what_the_catalogue_calls_them() -> None:
    names = [entry.name for entry in selected("family=c", "cpu=256", "os=linux", catalog=Catalog(kwok_types()))]
    assert names == ["c-256x-amd64-linux", "c-256x-arm64-linux"]


def test_the_cheapest_comes_first() -> None:
    prices = [offering.price for entry in selected("arch=amd64") if (offering := cheapest_launch(entry))]
    assert len(prices) > 100
    assert prices == sorted(prices)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "write KEY=VALUE"),
        ("arch=", "write KEY=VALUE"),
        ("arch=arm64=amd64", "write KEY=VALUE"),
        ("family in m5", "write KEY=VALUE"),
        ("family in ()", "a value is empty"),
        ("family in (m5,)", "a value is empty"),
        ("colour=red", "unknown key 'colour'; use a whole label key or one of type, arch"),
        ("cpu>=lots", "'lots' is not a quantity"),
        ("price<cheap", "'cheap' is not a price"),
        ("generation>new", "Gt needs exactly one whole number"),
        ("arch=arm64,", "write KEY=VALUE"),
    ],
)
def test_what_is_no_expression_is_refused_in_one_line(text: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_expressions([text])
    assert str(caught.value).startswith(f"expression: {text!r}: {why}")


def test_a_type_alone_is_told_how_it_is_written() -> None:
    with pytest.raises(InputError, match=r"'m5.larg' is no condition; did you mean type=m5.large\?"):
        parse_expressions(["m5.larg"], ["m5.large", "c5.large"])
