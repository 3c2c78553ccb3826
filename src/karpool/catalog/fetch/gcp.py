"""Google Cloud: machine types from Compute Engine, prices from the public list of the Cloud Billing API, over HTTP.

google-auth finds and refreshes the credentials.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from karpool.catalog.fetch.asking import AskedRegions, FetchError, Report, at, missing_extra, row, short
from karpool.catalog.fetch.gcp_prices import PartPrices, machine_price
from karpool.catalog.fetch.web import Web, web
from karpool.catalog.places import DEFAULT_REGIONS
from karpool.catalog.price_data import GCP
from karpool.catalog.price_file import ListedPrice, ListedRegion, PriceListFile
from karpool.wire.problems import InputError

BILLING: Final = "https://cloudbilling.googleapis.com"
COMPUTE: Final = "https://compute.googleapis.com"
SOURCE: Final = "Cloud Billing and Compute Engine"
SKUS: Final = "v1/services/6F81-5844-456A/skus"
"""The list of Compute Engine."""
_SCOPES: Final = (
    "https://www.googleapis.com/auth/cloud-billing.readonly",
    "https://www.googleapis.com/auth/compute.readonly",
)
_GONE: Final = ("OBSOLETE", "DELETED")
Sleep = Callable[[float], Awaitable[None]]
Machines = Mapping[str, Mapping[str, Any]]


def fetch(question: AskedRegions, report: Report, sleep: Sleep = asyncio.sleep) -> PriceListFile:
    """The price list of some regions; the project says which machines there are."""
    token, project = _credentials(question.project)
    return asyncio.run(_fetch(question, project, token, report, sleep))


def _credentials(project: str | None) -> tuple[str, str]:
    """A token and the project, from where Google's tools have theirs."""
    try:
        import google.auth
        from google.auth import exceptions
        from google.auth.transport.requests import Request
    except ImportError:
        raise missing_extra(GCP) from None
    try:
        credentials, own = google.auth.default(scopes=_SCOPES)
        credentials.refresh(Request())  # type: ignore[no-untyped-call]
    except exceptions.DefaultCredentialsError:
        message = (
            "gcp: there are no credentials; run `gcloud auth application-default login`, or set"
            " GOOGLE_APPLICATION_CREDENTIALS"
        )
        raise InputError.at("--cloud", message) from None
    except exceptions.TransportError as error:
        raise FetchError(f"gcp: no token: {short(error)}") from error
    except exceptions.GoogleAuthError as error:
        raise InputError.at("--cloud", f"gcp: the credentials cannot be used: {short(error)}") from error
    if not (project or own):
        raise InputError.at("--project", "name the project whose machine types to list; the credentials name none")
    return str(credentials.token), str(project or own)


async def _fetch(question: AskedRegions, project: str, token: str, report: Report, sleep: Sleep) -> PriceListFile:
    regions = question.regions or (DEFAULT_REGIONS[GCP],)
    async with web(GCP, question.endpoint or COMPUTE, token=token, sleep=sleep) as compute:
        zones = {region: await _zones(compute, project, region, report) for region in regions}
    async with web(GCP, question.endpoint or BILLING, token=token, sleep=sleep) as billing:
        rates = PartPrices(regions)
        done = 0
        async for page in billing.pages(SKUS, pageSize="5000", currencyCode="USD"):
            entries = page.get("skus")
            entries = entries if isinstance(entries, list) else []
            done += len(entries)
            report("prices", done, None)
            for entry in entries:
                rates.add(entry)
    listed = {region: _listed(region, zones[region], rates) for region in regions}
    rows = {
        name: _row(found) for by_zone in zones.values() for types in by_zone.values() for name, found in types.items()
    }
    machines = tuple(rows[name] for name in sorted(rows))
    return PriceListFile(cloud=GCP, date=question.day, source=SOURCE, regions=listed, machines=machines)


async def _zones(compute: Web, project: str, region: str, report: Report) -> dict[str, Machines]:
    """The machine types of each zone of a region, by name."""
    described = await compute.get(f"compute/v1/projects/{project}/regions/{region}")
    names = sorted(str(zone).rpartition("/")[2] for zone in described.get("zones") or ())
    found: dict[str, Machines] = {}
    for done, zone in enumerate(names):
        report(f"{region}: machine types", done, len(names))
        types: dict[str, Mapping[str, Any]] = {}
        async for page in compute.pages(f"compute/v1/projects/{project}/zones/{zone}/machineTypes", maxResults="500"):
            types.update(_usable(page.get("items") or ()))
        found[zone] = types
    if not any(found.values()):
        raise FetchError(f"gcp: there are no machine types in {region}")
    return found


def _usable(items: Iterable[Any]) -> dict[str, Mapping[str, Any]]:
    return {
        item["name"]: item
        for item in items
        if at(item, "name")
        and isinstance(at(item, "guestCpus"), int)
        and isinstance(at(item, "memoryMb"), int)
        and at(item, "deprecated", "state") not in _GONE
    }


def _listed(region: str, zones: Mapping[str, Machines], rates: PartPrices) -> ListedRegion:
    machines = {name: found for types in zones.values() for name, found in types.items()}
    prices = {}
    for name, machine in sorted(machines.items()):
        spot = machine_price(machine, region, rates, spot=True)
        there = {zone: spot for zone, types in zones.items() if name in types}
        prices[name] = ListedPrice(on_demand=machine_price(machine, region, rates, spot=False), spot=there)
    if all(price.on_demand is None for price in prices.values()):
        raise FetchError(f"gcp: the price list has no prices of machines in {region}")
    return ListedRegion(zones=tuple(sorted(zones)), types=prices)


def _row(machine: Mapping[str, Any]) -> dict[str, str]:
    count = at(machine, "accelerators", 0, "guestAcceleratorCount")
    return row(
        type=machine["name"],
        vcpus=machine["guestCpus"],
        memory_mib=machine["memoryMb"],
        gpus=count,
        gpu_name=at(machine, "accelerators", 0, "guestAcceleratorType") if count else None,
        architectures={"ARM64": "arm64", "X86_64": "amd64"}.get(str(machine.get("architecture"))),
    )
