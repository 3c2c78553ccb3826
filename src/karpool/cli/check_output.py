"""What CI systems read: the same two formats for every command that checks something."""

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from karpool.report.checks.check_results import Checks

SARIF: Final = "sarif"
CHECK_FORMATS: Final = (SARIF, "junit")


def print_checks(checks: "Checks", output: str) -> None:
    if output == SARIF:
        from karpool.report.checks.sarif import sarif

        click.echo(sarif(checks))
    else:
        from karpool.report.checks.junit import junit

        click.echo(junit(checks))
