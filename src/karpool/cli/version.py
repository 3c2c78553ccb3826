"""`karpool version`."""

import click

from karpool import __version__


@click.command()
def version() -> None:
    """Print the version of Karpool."""
    click.echo(f"karpool {__version__}")
