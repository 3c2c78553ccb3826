"""`karpool demo`: a simulated evening after the peak, in a minute, on a virtual cluster."""

import sys
from pathlib import Path
from typing import Final

import click

from karpool.catalog.sources import SAMPLE
from karpool.cli.options.catalog_options import CatalogOpener
from karpool.cli.progress import progress
from karpool.cli.simulate import open_scenario
from karpool.wire.problems import InputError

SCENARIO: Final = "off-hours"
REPORT: Final = "karpool-demo.html"

EPILOG: Final = """\b
EXAMPLES
  karpool demo
  karpool demo --report /tmp/demo.html
\b
AFTERWARDS
  karpool simulate --help       other scenarios, your own
  karpool plan -f cluster.json  a plan for your cluster
"""


@click.command(epilog=EPILOG)
@click.option(
    "--report",
    metavar="FILE",
    default=REPORT,
    type=click.Path(dir_okay=False, writable=True),
    help="Where to write the page with plots.",
)
def demo(*, report: str) -> None:
    """Show what Karpool does: a cluster at its peak, the evening comes, and Karpool packs it.

    Nothing is needed and nothing is changed: the cluster is virtual and has a clock of its own.
    """
    if not Path(report).absolute().parent.is_dir():
        raise InputError.at(report, "cannot be written; its folder does not exist")
    opened = open_scenario(SCENARIO, CatalogOpener(SAMPLE))
    with progress() as report_progress:
        policies, seeds = list(opened.scenario.policies), [opened.scenario.seed]
        comparison = opened.compare(policies, seeds, report_progress)
    from karpool.report.simulations.demo_table import print_demo
    from karpool.report.simulations.simulation_document import simulation_document
    from karpool.report.simulations.simulation_page import simulation_page
    from karpool.report.terminal import Screen

    page = simulation_page(simulation_document(comparison), comparison)
    Path(report).write_text(page, encoding="utf-8")
    print_demo(comparison, Screen(sys.stdout), report)
