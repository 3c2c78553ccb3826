"""Prices of AWS: on demand from its price list service, as spot from EC2."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from karpool.catalog.fetch.asking import FetchError, Report, at, only, positive, short

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_ONE_OF_MANY: Final = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}


def entries(
    client: Any, operation: str, field: str, what: str, report: Report, **settings: Any
) -> Iterator[Mapping[str, Any]]:
    """All entries of all pages of an answer."""
    paging = {"PageSize": size} if (size := settings.pop("PageSize", None)) else {}
    done = 0
    for page in client.get_paginator(operation).paginate(PaginationConfig=paging, **settings):
        entries = page.get(field) or ()
        done += len(entries)
        report(what, done, None)
        yield from entries


def on_demand_prices(pricing: Any, region: str, report: Report) -> dict[str, float | None]:
    """What types cost on demand with Linux, by type."""
    wanted = {**_ONE_OF_MANY, "regionCode": region}
    filters = [{"Type": "TERM_MATCH", "Field": key, "Value": value} for key, value in wanted.items()]
    query = {"ServiceCode": "AmazonEC2", "Filters": filters, "PageSize": 100}
    found: dict[str, list[float]] = defaultdict(list)
    for text in entries(pricing, "get_products", "PriceList", f"{region}: prices", report, **query):
        product = _product(text)
        name = at(product, "product", "attributes", "instanceType")
        if isinstance(name, str):
            found[name] += _hourly(at(product, "terms", "OnDemand"))
    if not any(found.values()):
        raise FetchError(f"aws: there are no prices on demand in {region}")
    return {name: only(prices) for name, prices in found.items()}


def _product(text: object) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError as error:
        raise FetchError(f"aws: GetProducts answered with what is not JSON: {short(error)}") from error


def _hourly(terms: Any) -> Iterator[float]:
    """The prices an hour in US dollars of all terms of a product."""
    for term in terms.values() if isinstance(terms, dict) else ():
        dimensions = at(term, "priceDimensions")
        for dimension in dimensions.values() if isinstance(dimensions, dict) else ():
            price = positive(at(dimension, "pricePerUnit", "USD"))
            if price is not None and at(dimension, "unit") == "Hrs":
                yield price


def spot_prices(
    ec2: Any, region: str, zones: Mapping[str, str], now: datetime, report: Report
) -> dict[str, dict[str, float | None]]:
    """What types cost now as spot, by type and the id of the zone; `zones`: the ids by name."""
    found: dict[str, dict[str, float | None]] = defaultdict(dict)
    newest: dict[tuple[str, str], datetime] = {}
    # From now on means: what is in force now, one entry for each type and zone.
    linux = {"ProductDescriptions": ["Linux/UNIX"], "StartTime": now}
    for entry in entries(ec2, "describe_spot_price_history", "SpotPriceHistory", f"{region}: spot", report, **linux):
        name, zone = entry.get("InstanceType", ""), zones.get(entry.get("AvailabilityZone", ""), "")
        price, since = positive(entry.get("SpotPrice")), entry.get("Timestamp") or _LONG_AGO
        if name and zone and price is not None and since >= newest.get((name, zone), _LONG_AGO):
            found[name][zone], newest[name, zone] = price, since
    return found
