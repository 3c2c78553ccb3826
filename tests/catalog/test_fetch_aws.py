"""Today's prices of AWS with boto3: EC2 as moto plays it, and a price list service over HTTP that may answer badly."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from tests.catalog.fake_service import Answer, Asked, Service, serving
from tests.tables import row, table

from karpool.catalog.fetch.asking import AskedRegions, FetchError
from karpool.catalog.fetch.aws import fetch
from karpool.catalog.fetch.aws_prices import on_demand_prices
from karpool.catalog.price_file import PriceListFile, encode_price_list, read_price_list
from karpool.catalog.price_list import shipped_machines
from karpool.wire.problems import InputError

pytestmark = pytest.mark.slow

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
HERE = "eu-west-1"


def product(name: str, price: str = "0.107", *, unit: str = "Hrs", currency: str = "USD") -> str:
    """An entry of the price list: JSON in a text, as the service has it."""
    dimension = {"unit": unit, "pricePerUnit": {currency: price}, "beginRange": "0", "endRange": "Inf"}
    term = {"offerTermCode": "JRTCKXETXF", "priceDimensions": {"A.B.C": dimension}}
    attributes = {"instanceType": name, "operatingSystem": "Linux", "regionCode": HERE}
    return json.dumps(
        {
            "product": {"productFamily": "Compute Instance", "attributes": attributes},
            "terms": {"OnDemand": {"A.B": term}},
        }
    )


class PriceListService:
    """GetProducts, page by page."""

    def __init__(self) -> None:
        self.pages: list[list[Any]] = [
            [product("m5.large"), product("m5.xlarge", "0.214")],
            [product("m6g.large", "0.086")],
        ]
        self.spoilt: list[Answer] = []

    def __call__(self, asked: Asked) -> Any:
        if self.spoilt:
            return self.spoilt.pop(0)
        assert asked.headers["X-Amz-Target"] == "AWSPriceListService.GetProducts"
        query = json.loads(asked.body)
        assert {"Type": "TERM_MATCH", "Field": "regionCode", "Value": HERE} in query["Filters"]
        number = int(query.get("NextToken") or 0)
        following = {"NextToken": str(number + 1)} if number + 1 < len(self.pages) else {}
        return {"FormatVersion": "aws_v1", "PriceList": self.pages[number], **following}


def refused(code: str, message: str) -> Answer:
    return Answer({"__type": code, "message": message}, 400)


@pytest.fixture
def prices() -> PriceListService:
    return PriceListService()


def environment(patch: pytest.MonkeyPatch, service: Service) -> None:
    """Credentials and nothing else of whoever runs the tests."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
        patch.delenv(name, raising=False)
    patch.setenv("AWS_ACCESS_KEY_ID", "an-id")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "a-key")
    patch.setenv("AWS_CONFIG_FILE", "/dev/null")
    patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    patch.setenv("AWS_ENDPOINT_URL_PRICING", service.address)


@pytest.fixture
def account(prices: PriceListService, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """An account: EC2 in memory, and the price list service on this machine."""
    with serving(prices) as service:
        environment(monkeypatch, service)
        with mock_aws():
            yield service


class Fetched(NamedTuple):
    listed: PriceListFile
    zones: dict[str, str]
    steps: list[tuple[str, int, int | None]]


@pytest.fixture(scope="module")
def fetched() -> Fetched:
    """What is fetched of the region of the profile, once: there are 1,400 types."""
    steps: list[tuple[str, int, int | None]] = []
    with serving(PriceListService()) as service, pytest.MonkeyPatch.context() as patch:
        environment(patch, service)
        patch.setenv("AWS_DEFAULT_REGION", HERE)
        with mock_aws():
            listed = fetch(AskedRegions((), NOW), lambda *step: steps.append(step))
            found = boto3.client("ec2", region_name=HERE).describe_availability_zones()["AvailabilityZones"]
    return Fetched(listed, {zone["ZoneId"]: zone["ZoneName"] for zone in found}, steps)


def test_types_zones_and_prices_are_those_of_the_account(fetched: Fetched) -> None:
    listed, zones, steps = fetched
    region = listed.regions[HERE]
    assert region.zone_names == zones
    assert region.zones == tuple(sorted(zones))
    assert [region.types[name].on_demand for name in ("m5.large", "m5.xlarge", "m6g.large")] == [0.107, 0.214, 0.086]
    assert region.types["m5.large"].spot == dict.fromkeys(zones, 0.00001)
    assert region.types["c5.large"].on_demand is None
    assert (listed.cloud, listed.date, listed.source) == ("aws", "2026-11-18", "EC2 and AWS Price List API")
    assert {what for what, _, _ in steps} == {f"{HERE}: types", f"{HERE}: spot", f"{HERE}: prices"}


def test_machines_have_the_resources_and_labels_that_the_shipped_table_gives_them(fetched: Fetched) -> None:
    found = read_price_list(encode_price_list(fetched.listed), "f").machines()
    shipped = shipped_machines("aws")
    both = found.keys() & shipped.keys()
    assert len(both) > 1300
    for name in both:
        ours, theirs = shipped[name], found[name]
        assert (ours.arch, ours.vcpus, ours.memory_mib) == (theirs.arch, theirs.vcpus, theirs.memory_mib), name
        assert (ours.labels, ours.devices, ours.closed_to) == (theirs.labels, theirs.devices, theirs.closed_to), name


def on_demand(service: Service) -> dict[str, float | None]:
    """What the price list service alone says."""
    client = boto3.client("pricing", region_name="us-east-1", endpoint_url=service.address)
    return on_demand_prices(client, HERE, lambda *_: None)


@table(
    row("odd", entries=["{}", '{"product": 7}', "[]", '{"product": {"attributes": {"instanceType": 3}}}'], price=0.1),
    row("another price", entries=[product("m5.large", "0.2")], price=None),
    row("the same again", entries=[product("m5.large", "0.1000000000")], price=0.1),
    row("other units", entries=[product("m5.large", "9", unit="Quantity")], price=0.1),
    row("nothing", entries=[product("m5.large", "0.0000000000")], price=0.1),
    row("other money", entries=[product("m5.large", "0.7", currency="CNY")], price=0.1),
)
def test_a_price_that_is_not_beyond_doubt_is_unknown(
    account: Service, prices: PriceListService, entries: list[Any], price: float | None
) -> None:
    prices.pages = [[product("m5.large", "0.1")], entries]
    assert on_demand(account) == {"m5.large": price}


def test_what_is_busy_is_asked_again(account: Service, prices: PriceListService) -> None:
    prices.spoilt = [refused("ThrottlingException", "Rate exceeded"), Answer("", 503)]
    assert on_demand(account) == {"m5.large": 0.107, "m5.xlarge": 0.214, "m6g.large": 0.086}
    assert len(account.asked) == 4


def asked() -> PriceListFile:
    return fetch(AskedRegions((HERE,), NOW), lambda *_: None)


@table(
    row(
        answer=refused("ValidationException", "no such filter"), why="GetProducts failed: ValidationException: no such"
    ),
    row(answer=Answer({"FormatVersion": "aws_v1", "PriceList": []}), why="there are no prices on demand in eu-west-1"),
    row(
        answer=Answer({"FormatVersion": "aws_v1", "PriceList": ["{"]}), why="GetProducts answered with what is not JSON"
    ),
)
@pytest.mark.usefixtures("account")
def test_what_cannot_be_answered_is_one_line(prices: PriceListService, answer: Answer, why: str) -> None:
    prices.spoilt = [answer]
    with pytest.raises(FetchError, match="aws: ") as error:
        asked()
    assert why in str(error.value)


@pytest.mark.usefixtures("account")
def test_a_missing_permission_is_named_with_those_that_are_needed(prices: PriceListService) -> None:
    prices.spoilt = [refused("AccessDeniedException", "User: x is not authorized to perform: pricing:GetProducts")]
    with pytest.raises(
        InputError, match=r"GetProducts is refused: User: x is not .*ec2:DescribeInstanceTypes"
    ) as error:
        asked()
    assert isinstance(error.value.__cause__, ClientError)


def test_without_credentials_nothing_is_asked(prices: PriceListService, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(prices) as service:
        environment(monkeypatch, service)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        with pytest.raises(InputError, match="--cloud: aws: there are no credentials; run `aws sso login`"):
            asked()
        monkeypatch.setenv("AWS_PROFILE", "nobody")
        with pytest.raises(InputError, match=r"aws: the credentials cannot be used: .*nobody"):
            asked()
        assert service.asked == []


def test_an_address_that_does_not_answer_is_one_line(prices: PriceListService, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(prices) as service:
        environment(monkeypatch, service)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(FetchError, match="aws: Could not connect to the endpoint URL"):
        fetch(AskedRegions((HERE,), NOW, service.address), lambda *_: None)
