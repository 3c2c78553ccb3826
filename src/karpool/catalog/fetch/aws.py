"""AWS: types and spot prices from EC2, prices on demand from the price list service, all with boto3."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from karpool.catalog.fetch.asking import AskedRegions, FetchError, Report, at, missing_extra, short
from karpool.catalog.fetch.aws_machines import machine_row
from karpool.catalog.fetch.aws_prices import entries, on_demand_prices, spot_prices
from karpool.catalog.places import DEFAULT_REGIONS
from karpool.catalog.price_data import AWS
from karpool.catalog.price_file import ListedPrice, ListedRegion, PriceListFile
from karpool.wire.problems import InputError

SOURCE: Final = "EC2 and AWS Price List API"
PERMISSIONS: Final = (
    "ec2:DescribeInstanceTypes, ec2:DescribeSpotPriceHistory, ec2:DescribeAvailabilityZones and pricing:GetProducts"
)
_PRICING_REGION: Final = "us-east-1"
"""The price list service is in few regions, and each of them knows the prices of all."""
_REFUSED: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "OptInRequired",
        "RequestExpired",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
_ATTEMPTS: Final = 8


def fetch(question: AskedRegions, report: Report) -> PriceListFile:
    """The price list of some regions, as the account of the credentials sees them."""
    with _errors():
        session = _session()
        regions = question.regions or (session.region_name or DEFAULT_REGIONS[AWS],)
        rows: dict[str, dict[str, str]] = {}
        listed = {}
        for region in regions:
            listed[region], found = _region(session, region, question, report)
            rows.update(found)
    machines = tuple(rows[name] for name in sorted(rows))
    return PriceListFile(cloud=AWS, date=question.day, source=SOURCE, regions=listed, machines=machines)


def _session() -> Any:
    try:
        import boto3
    except ImportError:
        raise missing_extra(AWS) from None
    session = boto3.session.Session()
    if session.get_credentials() is None:
        message = "aws: there are no credentials; run `aws sso login` or `aws configure`, or set AWS_PROFILE"
        raise InputError.at("--cloud", message)
    return session


@contextmanager
def _errors() -> Iterator[None]:
    """Errors of boto3 in one line."""
    try:
        from botocore import exceptions as boto
    except ImportError:
        raise missing_extra(AWS) from None
    missing = (boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError, boto.SSOError)
    try:
        yield
    except boto.ClientError as error:
        code, said = at(error.response, "Error", "Code"), at(error.response, "Error", "Message")
        if code in _REFUSED:
            message = f"aws: {error.operation_name} is refused: {short(said or code)}; the account needs {PERMISSIONS}"
            raise InputError.at("--cloud", message) from error
        raise FetchError(f"aws: {error.operation_name} failed: {code}: {short(said)}") from error
    except (*missing, boto.ProfileNotFound, boto.TokenRetrievalError) as error:
        raise InputError.at("--cloud", f"aws: the credentials cannot be used: {short(error)}") from error
    except boto.BotoCoreError as error:
        raise FetchError(f"aws: {short(error)}") from error


def _client(session: Any, service: str, region: str, endpoint: str | None) -> Any:
    from botocore.config import Config

    retries = {"mode": "standard", "max_attempts": _ATTEMPTS}
    config = Config(retries=retries, connect_timeout=10, read_timeout=60)
    return session.client(service, region_name=region, endpoint_url=endpoint, config=config)


def _region(
    session: Any, region: str, question: AskedRegions, report: Report
) -> tuple[ListedRegion, dict[str, dict[str, str]]]:
    """A region's zones and prices, and its machines by name."""
    ec2 = _client(session, "ec2", region, question.endpoint)
    zones = {
        zone["ZoneName"]: zone["ZoneId"]
        for zone in ec2.describe_availability_zones().get("AvailabilityZones", ())
        if zone.get("ZoneName") and zone.get("ZoneId")
    }
    pricing = _client(session, "pricing", _PRICING_REGION, question.endpoint)
    on_demand = on_demand_prices(pricing, region, report)
    machines = {}
    for entry in entries(ec2, "describe_instance_types", "InstanceTypes", f"{region}: types", report, PageSize=100):
        if made := machine_row(entry):
            machines[made["type"]] = made
    if not machines:
        raise FetchError(f"aws: there are no types in {region}; is the region enabled for the account?")
    spot = spot_prices(ec2, region, zones, question.now, report)
    prices = {name: ListedPrice(on_demand=on_demand.get(name), spot=spot.get(name, {})) for name in sorted(machines)}
    names = {zone_id: name for name, zone_id in zones.items()}
    return ListedRegion(zones=tuple(sorted(names)), types=prices, zone_names=names), machines
