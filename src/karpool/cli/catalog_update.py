"""`karpool catalog update`: today's machines and prices, asked of a cloud, in a file that `--catalog` takes."""

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from karpool.catalog.fetch.asking import AskedRegions, Report
from karpool.catalog.fetch.web import checked_address
from karpool.catalog.places import DEFAULT_REGIONS, is_region
from karpool.catalog.price_data import ANY_ZONE, CLOUDS
from karpool.catalog.price_file import PriceListFile, encode_price_list
from karpool.cli.completions import files
from karpool.cli.options.option_types import OneOf
from karpool.cli.progress import progress
from karpool.report.formatting import count
from karpool.wire.output_files import check_writable, write_whole
from karpool.wire.problems import InputError

STDOUT: Final = "-"
_PROJECT: Final = re.compile(r"[a-z0-9][-a-z0-9.:]{0,99}")
EPILOG: Final = """\b
WHAT IT NEEDS
  aws    pip install 'karpool[aws]', and credentials where the AWS CLI has
         its own, with ec2:DescribeInstanceTypes, pricing:GetProducts,
         ec2:DescribeSpotPriceHistory and ec2:DescribeAvailabilityZones. Zones
         get the names that they have in this account: use the cluster's.
  gcp    pip install 'karpool[gcp]', and the credentials of
         `gcloud auth application-default login` or of
         GOOGLE_APPLICATION_CREDENTIALS, for a project in which the Compute
         Engine and Cloud Billing APIs are on.
  azure  nothing: the price list is public. Sizes that this version of
         Karpool does not know are left out.
\b
WHAT IS WRITTEN
  The machines, the prices on demand and as spot, the cloud, its regions, the
  day and the source, all of which plans name. The file is written whole, at
  the end, or not at all. A price that is not beyond doubt is unknown (`?`):
  for example that of machines of Google Cloud with local disks.
\b
EXAMPLES
  karpool catalog update --cloud aws -o prices.json.zst
  karpool catalog update --cloud gcp --region europe-west4 -o gcp.json
  karpool plan --catalog prices.json.zst --discount 'm7*=31%'
\b
EXIT STATUS
  0  written
  1  the cloud does not answer
  2  a wrong option, no credentials, or an extra that is not installed
"""


@click.command(epilog=EPILOG)
@click.option("--cloud", type=OneOf(CLOUDS), required=True, help="Whose prices to fetch.")
@click.option(
    "--region",
    "regions",
    metavar="REGION",
    multiple=True,
    help="A region to fetch. May be repeated.  [default: for aws that of the profile; us-east-1, us-central1, eastus]",
)
@click.option(
    "--project", metavar="NAME", help="For gcp: whose machine types to list.  [default: that of the credentials]"
)
@click.option("--endpoint", metavar="URL", help="Ask this address, such as a proxy, instead of the cloud's own.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    shell_complete=files,
    default=STDOUT,
    show_default="standard output, plain",
    help="The file to write: packed if its name ends in .json.zst or .json.gz, plain if in .json.",
)
def update(cloud: str, regions: tuple[str, ...], project: str | None, endpoint: str | None, output: str) -> None:
    """Fetch today's machines and prices of a cloud, into a file that --catalog takes."""
    _check(cloud, regions, project, endpoint, output)
    fetch: Callable[[AskedRegions, Report], PriceListFile] = import_module(f"karpool.catalog.fetch.{cloud}").fetch
    question = AskedRegions(tuple(dict.fromkeys(regions)), datetime.now(UTC), endpoint, project)
    with progress() as report:
        listed = fetch(question, report)
    data = encode_price_list(listed)
    if output == STDOUT:
        sys.stdout.buffer.write(data)
        return
    write_whole(Path(output), data)
    click.echo(f"{output}: {_summary(listed)}; karpool plan --catalog {output}")


def _check(cloud: str, regions: tuple[str, ...], project: str | None, endpoint: str | None, output: str) -> None:
    """Refuse what cannot be meant before anything is asked."""
    for region in regions:
        if not is_region(cloud, region):
            message = f"{region!r} is not a region of {cloud}; write one such as {DEFAULT_REGIONS[cloud]}"
            raise InputError.at("--region", message)
    if project is not None and (cloud != "gcp" or not _PROJECT.fullmatch(project)):
        why = "goes with --cloud gcp only" if cloud != "gcp" else f"{project!r} is not the name of a project"
        raise InputError.at("--project", why)
    if endpoint is not None:
        checked_address(endpoint)
    if output != STDOUT:
        check_writable(Path(output))
    elif sys.stdout.isatty():
        raise InputError.at("--output", "name a file, such as -o prices.json.zst; a list is too long for a terminal")


def _summary(listed: PriceListFile) -> str:
    """What was found, and of how many types a price is not known."""
    parts = []
    for name, region in sorted(listed.regions.items()):
        unpriced = sum(price.on_demand is None for price in region.types.values())
        zones = len(set(region.zones) - {ANY_ZONE})
        known = [count(len(region.types), "type")] + [f"{unpriced:,} of unknown price"] * bool(unpriced)
        parts.append(f"{listed.cloud} {name}: {', '.join(known)}" + (f", {count(zones, 'zone')}" if zones else ""))
    return f"{'; '.join(parts)}; {listed.source} of {listed.date}"
