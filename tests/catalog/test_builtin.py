"""The price lists of the clouds: what is sold where, at which price, and under which labels."""

import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest
from tests.tables import row, table

import karpool.catalog
from karpool.catalog.builtin import cloud_types
from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.catalog.notices import unlisted_zones
from karpool.catalog.places import CloudRegion, ZoneName
from karpool.catalog.price_data import CLOUDS, origins, region_prices
from karpool.catalog.pricing import node_price
from karpool.catalog.sources import open_catalog
from karpool.model.labels import AKS_CLASS, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, REGION, SPOT, ZONE, ZONE_ID
from karpool.model.requirements import one_of
from karpool.wire.problems import InputError

DATA = Path(karpool.catalog.__file__).parent / "data"


def types(cloud: str, region: str, *zones: tuple[str, str]) -> dict[str, InstanceType]:
    place = CloudRegion(cloud, region, tuple(ZoneName(*zone) for zone in zones))
    return {entry.name: entry for entry in cloud_types(cloud, (place,))}


def priced(entry: InstanceType, kind: str) -> dict[str, float | None]:
    return {offering.zone: offering.price for offering in entry.offerings if offering.capacity_type == kind}


def test_all_price_lists_together_take_less_than_a_megabyte() -> None:
    assert sum(file.stat().st_size for file in DATA.rglob("*") if file.is_file()) < 1_000_000


@table(row(cloud="aws", regions=22), row(cloud="gcp", regions=44), row(cloud="azure", regions=9))
def test_every_region_of_a_price_list_can_be_read(cloud: str, regions: int) -> None:
    listed = origins()[cloud]
    assert len(listed.regions) == regions
    for region in listed.regions:
        found = region_prices(cloud, region)
        assert found is not None
        prices = [price for sold in found.types.values() for price in (sold.on_demand, *sold.spot.values())]
        assert all(price is None or price > 0 for price in prices)


def test_nothing_is_read_before_it_is_asked_for() -> None:
    code = (
        "import karpool.cli.main, karpool.catalog.sources; from karpool.catalog import price_data as p;"
        "print([f.cache_info().currsize for f in (p.origins, p.machine_rows, p.region_prices)])"
    )
    # The program is this Python, and the code is above.
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert shown.stdout == "[0, 0, 0]\n"


@table(
    row(cloud="aws", region="us-east-1", name="m5.large", on_demand=0.096),
    row(cloud="aws", region="eu-west-1", name="m5.large", on_demand=0.107),
    row(cloud="gcp", region="us-central1", name="n2-standard-4", on_demand=0.194236),
    row(cloud="azure", region="eastus", name="Standard_D4s_v5", on_demand=0.192),
)
def test_on_demand_prices_are_those_of_the_region(cloud: str, region: str, name: str, on_demand: float) -> None:
    (shown,) = set(priced(types(cloud, region)[name], ON_DEMAND).values())
    assert shown == pytest.approx(on_demand, rel=1e-3)


def test_spot_on_aws_costs_what_its_zone_id_says_and_else_the_median_of_the_region() -> None:
    listed = region_prices("aws", "us-east-1")
    assert listed is not None
    spot = listed.types["m5.large"].spot
    known = priced(types("aws", "us-east-1", ("us-east-1a", "use1-az4"), ("us-east-1b", ""))["m5.large"], SPOT)
    assert known["us-east-1a"] == spot["use1-az4"]
    of_region = median(price for zone, price in spot.items() if zone.count("-") == 1)
    assert known["us-east-1b"] == known["us-east-1f"] == of_region


def test_an_offering_knows_the_id_of_its_zone_where_nodes_show_it_and_else_has_none() -> None:
    entry = types("aws", "us-east-1", ("us-east-1a", "use1-az4"))["m5.large"]
    assert entry.requirements[ZONE_ID] == one_of("use1-az4")
    ids = {offering.zone: offering.requirements[ZONE_ID] for offering in entry.offerings}
    assert [zone for zone, wanted in ids.items() if wanted.has("use1-az4")] == ["us-east-1a"]
    assert not any(wanted.overlaps(one_of("use1-az1")) for wanted in ids.values())


def test_a_type_that_spot_is_not_sold_as_in_a_zone_is_priced_there_and_not_launched() -> None:
    entry = types("aws", "us-east-1", ("us-east-1e", "use1-az3"))["m7i.large"]
    (there,) = (o for o in entry.offerings if o.zone == "us-east-1e" and o.capacity_type == SPOT)
    assert not there.available
    assert there.price is not None


def test_zones_of_google_cloud_have_prices_of_their_own_and_types_only_where_they_are_sold() -> None:
    listed = region_prices("gcp", "us-central1")
    assert listed is not None
    for name in ("n2-standard-4", "a3-highgpu-8g"):
        entry = types("gcp", "us-central1")[name]
        assert priced(entry, SPOT) == listed.types[name].spot
        assert priced(entry, ON_DEMAND).keys() == listed.types[name].spot.keys()


def test_zones_of_azure_cost_the_same_and_some_regions_have_none() -> None:
    zonal = types("azure", "eastus")["Standard_D4s_v5"]
    assert priced(zonal, ON_DEMAND).keys() == {"eastus-1", "eastus-2", "eastus-3"}
    assert priced(types("azure", "westus")["Standard_D4s_v5"], ON_DEMAND).keys() == {""}
    catalog = Catalog((zonal,))
    labels = {INSTANCE_TYPE: zonal.name, REGION: "eastus"}
    assert node_price(catalog, {**labels, ZONE: "0"}) == node_price(catalog, {**labels, ZONE: "eastus-2"})
    assert node_price(catalog, {INSTANCE_TYPE: zonal.name, ZONE: "0"}) is None


def test_several_regions_and_clouds_are_one_catalogue() -> None:
    places = (CloudRegion("aws", "eu-west-1"), CloudRegion("aws", "us-east-1"), CloudRegion("gcp", "us-central1"))
    catalog = open_catalog(places=places)
    assert [(origin.cloud, origin.region, origin.date) for origin in catalog.origins] == [
        ("aws", "eu-west-1", "2026-08-22"),
        ("aws", "us-east-1", "2026-08-22"),
        ("gcp", "us-central1", "2026-08-22"),
    ]
    label = {INSTANCE_TYPE: "m5.large", CAPACITY_TYPE: ON_DEMAND}
    assert node_price(catalog, {**label, ZONE: "us-east-1a"}) == 0.096
    assert node_price(catalog, {**label, ZONE: "eu-west-1a"}) == 0.107
    entry = catalog.by_name["m5.large"]
    assert entry.requirements[REGION] == one_of("eu-west-1", "us-east-1")
    assert {o.requirements[REGION] for o in entry.offerings if o.zone == "eu-west-1a"} == {one_of("eu-west-1")}
    assert "n2-standard-4" in catalog.by_name


def test_a_region_without_a_price_list_has_machines_and_no_prices() -> None:
    catalog = open_catalog("aws:sa-east-1")
    assert [origin.known for origin in catalog.origins] == [False]
    entry = catalog.by_name["m5.large"]
    assert {offering.price for offering in entry.offerings} == {None}
    assert node_price(catalog, {INSTANCE_TYPE: "m5.large", ZONE: "sa-east-1a"}) is None


def test_a_zone_in_another_city_has_no_price_on_demand() -> None:
    catalog = open_catalog(places=(CloudRegion("aws", "us-west-2", (ZoneName("us-west-2-lax-1a", "usw2-lax1-az1"),)),))
    assert node_price(catalog, {INSTANCE_TYPE: "c5.large", ZONE: "us-west-2-lax-1a"}) is None


@pytest.mark.parametrize("source", ["aws:moon", "gcp:us-east-1", "azure:us-east-1"])
def test_what_is_no_region_is_refused(source: str) -> None:
    with pytest.raises(InputError, match="is not a region; write"):
        open_catalog(source)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_every_type_leaves_something_for_pods(cloud: str) -> None:
    for entry in open_catalog(cloud).types:
        assert entry.allocatable["cpu"].nano > 0, entry.name
        assert entry.allocatable["pods"].nano > 0, entry.name


def test_sizes_that_aks_no_longer_takes_keep_their_price_and_are_not_launched() -> None:
    catalog = open_catalog("azure:eastus2")
    for name in ("Standard_D2_v2_Promo", "Standard_DS1_v2"):
        assert {offering.available for offering in catalog.by_name[name].offerings} == {False}
        assert node_price(catalog, {INSTANCE_TYPE: name, ZONE: "eastus2-1"})


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("Standard_D4s_v5", True),
        ("Standard_NC4as_T4_v3", True),
        ("Standard_DC4s_v3", False),
        ("Standard_E4-2s_v5", False),
        ("Standard_B2ts_v2", False),
    ],
)
def test_node_auto_provisioning_uses_no_size_that_is_small_or_confidential_or_has_fewer_cpus(
    name: str, *, used: bool
) -> None:
    closed = open_catalog("azure:eastus2").by_name[name].requirements.get(AKS_CLASS) is not None
    assert closed is not used


@pytest.mark.parametrize(
    ("cloud", "region", "shown", "launched"),
    [
        ("aws", "us-west-2", ("a", "b"), "ab"),
        ("aws", "us-west-2", ("a",), "abcd"),
        ("gcp", "us-central1", ("-a", "-c"), "ac"),
        ("gcp", "us-central1", (), "abcf"),
    ],
)
def test_new_nodes_come_in_the_zones_that_a_cluster_is_in_once_it_shows_several(
    cloud: str, region: str, shown: tuple[str, ...], launched: str
) -> None:
    zones = tuple(ZoneName(region + end) for end in shown)
    name = {"aws": "m5.large", "gcp": "n2-standard-4"}[cloud]
    offerings = open_catalog(places=(CloudRegion(cloud, region, zones),)).by_name[name].offerings
    sold = [offering for offering in offerings if offering.capacity_type == ON_DEMAND]
    assert {offering.zone[-1] for offering in sold if offering.available} == set(launched)
    assert all(offering.price for offering in sold)


def test_a_zone_id_that_is_of_no_zone_of_the_region_is_not_known_and_spot_can_be_had_there() -> None:
    listed = region_prices("aws", "eu-central-1")
    assert listed is not None
    entry = types("aws", "eu-central-1", ("eu-central-1a", "use1-az1"))["c5.xlarge"]
    there = [o for o in entry.offerings if o.zone == "eu-central-1a" and o.capacity_type == SPOT]
    assert [offering.available for offering in there] == [True]
    prices = [price for zone, price in listed.types["c5.xlarge"].spot.items() if zone.count("-") == 1]
    assert there[0].price == median(prices)


def test_a_zone_id_that_no_price_list_has_is_told_once() -> None:
    shown = (ZoneName("eu-central-1a", "use1-az1"), ZoneName("eu-central-1b", "euc1-az2"))
    catalog = open_catalog(places=(CloudRegion("aws", "eu-central-1", shown),))
    (told,) = unlisted_zones(catalog)
    assert told.startswith("no price list of aws eu-central-1 has the zone use1-az1, which nodes show: spot prices")
    others = (CloudRegion("aws", "eu-central-1", shown[1:]), CloudRegion("gcp", "us-central1"))
    assert list(unlisted_zones(open_catalog(places=others))) == []
