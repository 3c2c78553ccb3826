"""Azure: prices from the public Retail Prices API, which asks for no credentials.

It does not say what machines have. That comes from the table that ships with Karpool, and a size that is not in it is
left out.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

from yarl import URL

from karpool.catalog.fetch.asking import AskedRegions, FetchError, Report, only, positive
from karpool.catalog.fetch.web import MOST_PAGES, Web, same_service, web
from karpool.catalog.places import DEFAULT_REGIONS
from karpool.catalog.price_data import ANY_ZONE, AZURE, machine_rows
from karpool.catalog.price_file import ListedPrice, ListedRegion, PriceListFile

ADDRESS: Final = "https://prices.azure.com"
SOURCE: Final = "Azure Retail Prices"
_PATH: Final = "api/retail/prices"
_VERSION: Final = "2023-01-01-preview"
_OTHER_PRODUCTS: Final = ("Windows", "Cloud Services", "CloudServices", "Dedicated Host", "Reserved")
_OTHER_METERS: Final = ("Low Priority", "Expired")
_SPOT: Final = "Spot"
Item = Mapping[str, Any]


def fetch(
    question: AskedRegions, report: Report, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> PriceListFile:
    """The price list of some regions."""
    return asyncio.run(_fetch(question, report, sleep))


async def _fetch(question: AskedRegions, report: Report, sleep: Callable[[float], Awaitable[None]]) -> PriceListFile:
    listed = {}
    async with web(AZURE, question.endpoint or ADDRESS, sleep=sleep) as service:
        for region in question.regions or (DEFAULT_REGIONS[AZURE],):
            listed[region] = await _region(service, region, question, report)
    sold = {name for region in listed.values() for name in region.types}
    machines = tuple(
        {key: value for key, value in row.items() if value} for row in machine_rows(AZURE) if row["type"] in sold
    )
    return PriceListFile(cloud=AZURE, date=question.day, source=SOURCE, regions=listed, machines=machines)


async def _region(service: Web, region: str, question: AskedRegions, report: Report) -> ListedRegion:
    # By size, and whether it is spot: prices by the day from which they hold.
    found: dict[tuple[str, bool], dict[str, set[float]]] = defaultdict(lambda: defaultdict(set))
    known = {row["type"] for row in machine_rows(AZURE)}
    done = 0
    async for items in _pages(service, region):
        done += len(items)
        report(f"{region}: prices", done, None)
        for item in items:
            name, price, since = _text(item, "armSkuName"), positive(item.get("retailPrice")), _day(item)
            if name in known and price is not None and since <= question.day and _is_linux(item, region):
                found[name, _SPOT in _meter(item)][since].add(price)
    if not found:
        raise FetchError(f"azure: there are no prices of virtual machines in {region}; is that the name of a region?")
    prices = {key: only(by_day[max(by_day)]) for key, by_day in found.items()}
    types = {
        name: ListedPrice(
            on_demand=prices.get((name, False)),
            spot={ANY_ZONE: prices[name, True]} if (name, True) in prices else {},
        )
        for name in sorted({name for name, _ in prices})
    }
    return ListedRegion(zones=(ANY_ZONE,), types=types)


async def _pages(service: Web, region: str) -> AsyncIterator[list[Item]]:
    """The entries of each page; the address of the next one comes with it, and must be of the same service."""
    wanted = f"serviceName eq 'Virtual Machines' and armRegionName eq '{region}' and priceType eq 'Consumption'"
    page = await service.get(_PATH, **{"api-version": _VERSION, "$filter": wanted})
    seen: set[str] = set()
    while len(seen) < MOST_PAGES:
        items = page.get("Items")
        yield [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        following = _text(page, "NextPageLink")
        if not following:
            return
        if following in seen:
            break
        seen.add(following)
        page = await service.get(_next(following, service))
    raise FetchError(f"azure: the pages of {service.base.host} do not come to an end")


def _next(address: str, service: Web) -> URL:
    try:
        url = URL(address)
    except ValueError:
        url = URL()
    if not same_service(url, service.base):
        raise FetchError(f"azure: {service.base.host} names a next page elsewhere: {address[:100]!r}")
    return url


def _text(item: Item, field: str) -> str:
    value = item.get(field)
    return value if isinstance(value, str) else ""


def _day(item: Item) -> str:
    """The day from which a price holds."""
    return _text(item, "effectiveStartDate")[:10]


def _meter(item: Item) -> str:
    return f"{_text(item, 'meterName')} {_text(item, 'skuName')}"


def _is_linux(item: Item, region: str) -> bool:
    """Whether an entry is the price of an hour of a machine with Linux, to everybody and from the first hour on."""
    product = _text(item, "productName")
    return (
        item.get("type", "Consumption") == "Consumption"
        and item.get("armRegionName") == region
        and item.get("currencyCode", "USD") == "USD"
        and item.get("unitOfMeasure") == "1 Hour"
        and not item.get("tierMinimumUnits")
        and not any(word in product for word in _OTHER_PRODUCTS)
        and not any(word in _meter(item) for word in _OTHER_METERS)
    )
