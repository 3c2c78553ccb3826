"""Price lists in files: what they say is what plans reckon with, and a mistake is refused with its place."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.tables import row, table

from karpool.catalog.instance_types import Catalog
from karpool.catalog.places import CloudRegion, ZoneName
from karpool.catalog.price_file import ListedPrice, ListedRegion, PriceListFile, encode_price_list, read_price_list
from karpool.catalog.pricing import node_price
from karpool.catalog.sources import open_catalog
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, SPOT, ZONE
from karpool.wire.problems import InputError

ROW = {
    "type": "m9.large",
    "vcpus": "2",
    "memory_mib": "8192",
    "max_enis": "3",
    "ipv4_per_eni": "10",
    "hypervisor": "nitro",
}
IRELAND = ListedRegion(
    zones=("euw1-az1", "euw1-az2"),
    zone_names={"euw1-az1": "eu-west-1b", "euw1-az2": "eu-west-1a"},
    types={"m9.large": ListedPrice(0.1, {"euw1-az1": 0.03, "euw1-az2": None})},
)
OHIO = ListedRegion(zones=("use2-az1",), types={"m9.large": ListedPrice(None, {"use2-az1": 0.02})})


def price_list(**more: Any) -> dict[str, Any]:
    """A list as it is written, with some of its fields changed."""
    listed = PriceListFile(
        cloud="aws",
        date="2026-11-18",
        source="EC2",
        regions={"eu-west-1": IRELAND, "us-east-2": OHIO},
        machines=(ROW,),
    )
    made: dict[str, Any] = json.loads(encode_price_list(listed))
    return {**made, **more}


def opened(folder: Path, *places: CloudRegion, **more: Any) -> Catalog:
    file = folder / "prices.json"
    file.write_text(json.dumps(price_list(**more)))
    return open_catalog(str(file), places=places)


def spot(catalog: Catalog, zone: str) -> float | None:
    return node_price(catalog, {INSTANCE_TYPE: "m9.large", ZONE: zone, CAPACITY_TYPE: SPOT})


def test_plans_name_cloud_region_day_and_source_of_a_file(tmp_path: Path) -> None:
    here = [
        (o.source, o.cloud, o.region, o.date, o.known)
        for o in opened(tmp_path, CloudRegion("aws", "eu-west-1")).origins
    ]
    assert here == [("EC2", "aws", "eu-west-1", "2026-11-18", True)]
    everywhere = [origin.region for origin in opened(tmp_path).origins]
    assert everywhere == ["eu-west-1", "us-east-2"]
    elsewhere = opened(tmp_path, CloudRegion("aws", "sa-east-1"), CloudRegion("gcp", "us-central1"))
    assert [(o.region, o.known) for o in elsewhere.origins] == [("sa-east-1", False)]
    assert node_price(elsewhere, {INSTANCE_TYPE: "m9.large", ZONE: "sa-east-1a"}) is None


def test_machines_of_a_file_are_those_of_their_cloud(tmp_path: Path) -> None:
    entry = opened(tmp_path, CloudRegion("aws", "eu-west-1")).by_name["m9.large"]
    assert entry.allocatable["pods"].units == 29
    assert entry.requirements["karpenter.k8s.aws/instance-family"].has("m9")
    assert node_price(opened(tmp_path), {INSTANCE_TYPE: "m9.large", ZONE: "eu-west-1a"}) == 0.1


def test_zones_have_the_names_of_the_account_that_asked(tmp_path: Path) -> None:
    catalog = opened(tmp_path, CloudRegion("aws", "eu-west-1"))
    assert (spot(catalog, "eu-west-1b"), spot(catalog, "eu-west-1a")) == (0.03, None)
    offered = {o.zone: o.available for o in catalog.by_name["m9.large"].offerings if o.capacity_type == SPOT}
    assert offered == {"eu-west-1a": True, "eu-west-1b": True}


def test_a_node_that_shows_another_zone_id_proves_another_account(tmp_path: Path) -> None:
    catalog = opened(tmp_path, CloudRegion("aws", "eu-west-1", (ZoneName("eu-west-1a", "euw1-az1"),)))
    assert spot(catalog, "eu-west-1a") == 0.03
    # Of the other zone nobody knows which one it is: it costs what is usual.
    assert spot(catalog, "eu-west-1b") == 0.03


def test_discounts_and_other_changes_apply_to_a_file_too(tmp_path: Path) -> None:
    opened(tmp_path)
    file = str(tmp_path / "prices.json")
    catalog = open_catalog(file, discounts=["eu-*/m9*=50%"], node_fee=0.01)
    assert node_price(catalog, {INSTANCE_TYPE: "m9.large", ZONE: "eu-west-1a"}) == 0.06
    assert [origin.discounts for origin in catalog.origins] == [("eu-*/m9*=50%",), ()]


def changed(region: str = "eu-west-1", **more: Any) -> dict[str, Any]:
    return {"regions": {region: {**price_list()["regions"]["eu-west-1"], **more}}}


@table(
    row(more={"kind": "Prices"}, why="kind: 'Prices' is not allowed; use one of PriceList"),
    row(more={"cloud": "moon"}, why="cloud: 'moon' is none of aws, gcp, azure"),
    row(more={"date": "yesterday"}, why="date: "),
    row(more={"regions": {}}, why="regions: covers no region"),
    row(more={"regions": []}, why="regions: expected a mapping, got a list"),
    row(more=changed("mars"), why="regions.mars: is not a region of aws"),
    row(more=changed(zones=["a/b"]), why="regions.eu-west-1.zones: 'a/b' is no name of a zone"),
    row(more=changed(types={"x": {"onDemand": 0}}), why="regions.eu-west-1.types.x.onDemand: "),
    row(more=changed(types={"x": {"onDemand": -1}}), why="regions.eu-west-1.types.x.onDemand: "),
    row(more=changed(types={"x": {"onDemand": "1"}}), why="onDemand: expected a number, got text"),
    row(more=changed(types={"x": {"onDemand": 1}}), why="regions.eu-west-1.types.x: is not among the machines"),
    row(more=changed(types={"m9.large": {"spot": {"z": 1}}}), why="'z' is not among the zones"),
    row(more={"machines": [ROW, ROW]}, why="machines[1].type: 'm9.large' is no name of a type, or there are two"),
    row(more={"machines": [{}]}, why="machines[0].type: '' is no name of a type"),
    row(more={"machines": [{**ROW, "vcpus": "many"}]}, why="machines[0]: a number is not one"),
    row(more={"machines": [{**ROW, "vcpus": "0"}]}, why="machines[0]: vcpus and memory_mib must be more than 0"),
    row(more={"machines": [{**ROW, "memory_mib": "inf"}]}, why="machines[0]: a number is not one"),
    row(
        more={"machines": [{**ROW, "hypervisor": "x\ny"}]}, why="cannot be the value of karpenter.k8s.aws/instance-hyp"
    ),
    row(more={"machines": [{"type": "m9.large"}]}, why="machines[0]: a number is not one"),
)
def test_a_mistake_is_refused_with_its_place(more: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError) as error:
        read_price_list(json.dumps(price_list(**more)).encode(), "prices.json")
    assert str(error.value).startswith("prices.json: ")
    assert why in str(error.value)


@pytest.mark.parametrize("data", [b"{", b'{"a":' + b"[" * 100_000, b"{}", b'{"regions": NaN}'])
def test_what_is_no_price_list_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^prices.json: "):
        read_price_list(data, "prices.json")
