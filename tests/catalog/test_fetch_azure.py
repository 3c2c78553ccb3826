"""Today's prices of Azure, from a service that answers as its Retail Prices API does, and worse."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.catalog.fake_service import Answer, Asked, serving, turns
from tests.tables import row, table

from karpool.catalog.fetch.asking import AskedRegions, FetchError
from karpool.catalog.fetch.azure import fetch
from karpool.catalog.price_file import ListedPrice, PriceListFile, encode_price_list, read_price_list
from karpool.wire.problems import InputError

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
SIZE = "Standard_D4s_v5"


def item(price: float = 0.192, *, meter: str = "D4s v5", size: str = SIZE, **more: Any) -> dict[str, Any]:
    """An entry as the API writes it."""
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": price,
        "unitPrice": price,
        "armRegionName": "eastus",
        "location": "US East",
        "effectiveStartDate": "2023-01-01T00:00:00Z",
        "meterId": "0",
        "meterName": meter,
        "productName": "Virtual Machines Dsv5 Series",
        "skuName": meter,
        "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": size,
        **more,
    }


def page(*items: Any, following: str | None = None) -> dict[str, Any]:
    return {"BillingCurrency": "USD", "Items": list(items), "NextPageLink": following, "Count": len(items)}


async def at_once(_seconds: float) -> None:
    """Nobody waits in a test."""


def fetched(respond: Any, *regions: str) -> PriceListFile:
    with serving(respond) as service:
        question = AskedRegions(regions or ("eastus",), NOW, service.address)
        return fetch(question, lambda *_: None, at_once)


def only_price(respond: Any) -> ListedPrice:
    return fetched(respond).regions["eastus"].types[SIZE]


def test_prices_on_demand_and_as_spot_are_those_of_linux() -> None:
    answer = page(
        item(0.192),
        item(0.0384, meter="D4s v5 Spot"),
        item(0.0384, meter="D4s v5 Low Priority"),
        item(0.376, productName="Virtual Machines Dsv5 Series Windows"),
        item(0.1, productName="Dsv5 Series Cloud Services"),
        item(1000.0, type="Reservation", unitOfMeasure="1 Hour"),
        item(0.25, armRegionName="westus"),
        item(5.0, unitOfMeasure="1/Day"),
        item(0.17, currencyCode="EUR"),
        item(9.0, size="Standard_Future_v99"),
    )
    listed = fetched(turns(answer))
    assert listed.regions["eastus"].types == {SIZE: ListedPrice(0.192, {"*": 0.0384})}
    assert (listed.cloud, listed.date, listed.source) == ("azure", "2026-11-18", "Azure Retail Prices")
    assert [machine["type"] for machine in listed.machines] == [SIZE]
    assert read_price_list(encode_price_list(listed), "f").machines()[SIZE].vcpus == 4


def test_every_page_is_read_and_the_question_names_region_and_kind() -> None:
    seen: list[Asked] = []

    def respond(asked: Asked) -> dict[str, Any]:
        seen.append(asked)
        skip = int(asked.query.get("$skip", 0))
        following = f"http://127.0.0.1:{port}/api/retail/prices?$skip={skip + 1}" if skip < 2 else None
        return page(item(0.1 + skip, size=f"Standard_D{2 ** (skip + 1)}s_v5"), following=following)

    with serving(respond) as service:
        port = int(service.address.rpartition(":")[2])
        listed = fetch(AskedRegions(("eastus",), NOW, service.address), lambda *_: None, at_once)
    assert sorted(listed.regions["eastus"].types) == ["Standard_D2s_v5", "Standard_D4s_v5", "Standard_D8s_v5"]
    assert seen[0].path == "/api/retail/prices"
    assert "armRegionName eq 'eastus'" in seen[0].query["$filter"]
    assert "priceType eq 'Consumption'" in seen[0].query["$filter"]


@table(
    row("the newest counts", items=[item(0.2), item(0.1, effectiveStartDate="2026-01-01T00:00:00Z")], price=0.1),
    row("not tomorrow's", items=[item(0.2), item(0.1, effectiveStartDate="2027-01-01T00:00:00Z")], price=0.2),
    row("the same twice", items=[item(0.2), item(0.2, isPrimaryMeterRegion=False)], price=0.2),
    row("a contradiction is unknown", items=[item(0.2), item(0.3)], price=None),
    row("zero is unknown", items=[item(0.0), item(0.04, meter="D4s v5 Spot")], price=None),
    row("text is no price", items=[item("?"), item(0.04, meter="Spot")], price=None),  # type: ignore[arg-type]
)
def test_a_price_that_is_not_beyond_doubt_is_unknown(items: list[Any], price: float | None) -> None:
    assert only_price(turns(page(*items))).on_demand == price


def test_odd_entries_are_passed_over() -> None:
    odd = [None, 7, [], {}, {"armSkuName": None}, {**item(), "armSkuName": ["x"]}, {**item(), "productName": None}]
    assert only_price(turns(page(*odd, item(0.192)))).on_demand == 0.192


@table(
    row(answer=Answer({"error": {"message": "Too many requests"}}, 429, {"Retry-After": "7"})),
    row(answer=Answer("", 500)),
    row(answer=Answer("<html>busy</html>", 503)),
    row(answer=Answer('{"Items": [', 200)),
)
def test_a_busy_service_is_asked_again(answer: Answer) -> None:
    assert only_price(turns(answer, answer, page(item(0.192)))).on_demand == 0.192


def test_how_long_to_wait_is_what_the_service_says_and_a_minute_at_most() -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    busy = [Answer({}, 429, {"Retry-After": after}) for after in ("7", "9999")]
    with serving(turns(*busy, page(item()))) as service:
        fetch(AskedRegions(("eastus",), NOW, service.address), lambda *_: None, wait)
    assert waits == [7.0, 60.0]


@table(
    row(answer=Answer("", 503), why="was asked 6 times, at last: 503"),
    row(answer=Answer({"Error": {"Message": "bad filter"}}, 400), why="answers 400 bad filter"),
    row(answer=Answer("", 302, {"Location": "http://example.com/"}), why="answers 302"),
    row(answer=[], why="answers with a list where an object is expected"),
    row(answer=page(), why="there are no prices of virtual machines in eastus"),
    row(answer={"Items": {"a": 1}}, why="there are no prices of virtual machines in eastus"),
    row(answer=page(item(), following="http://169.254.169.254/latest"), why="names a next page elsewhere"),
    row(answer=page(item(), following="file:///etc/passwd"), why="names a next page elsewhere"),
)
def test_what_cannot_be_answered_is_one_line(answer: Any, why: str) -> None:
    with pytest.raises(FetchError, match="azure: ") as error:
        fetched(turns(answer))
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_a_refusal_is_not_repeated() -> None:
    with serving(turns(Answer({"error": {"message": "no"}}, 403))) as service:
        with pytest.raises(InputError, match=r"azure: 127\.0\.0\.1 refuses to answer: 403 no"):
            fetch(AskedRegions(("eastus",), NOW, service.address), lambda *_: None, at_once)
        assert len(service.asked) == 1


def test_pages_without_end_are_given_up() -> None:
    def respond(_asked: Asked) -> dict[str, Any]:
        return page(item(), following=f"{address}/api/retail/prices?again")

    with serving(respond) as service:
        address = service.address
        with pytest.raises(FetchError, match="do not come to an end"):
            fetch(AskedRegions(("eastus",), NOW, service.address), lambda *_: None, at_once)


@pytest.mark.parametrize("address", ["", "prices", "http://prices.azure.com", "ftp://127.0.0.1", "https://"])
def test_nothing_is_asked_in_the_clear(address: str) -> None:
    with pytest.raises(InputError, match=r"--endpoint: .* is no address of a service"):
        fetch(AskedRegions(("eastus",), NOW, address or " "), lambda *_: None, at_once)
