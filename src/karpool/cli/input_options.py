"""The options that say what to read; the same for every command that reads a cluster from files."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

READS: Final = """\b
WHAT -f READS
  Files, directories with all that is in them (*.json, *.yaml, *.yml, also with
  .gz or .zst), and - for standard input. JSON or YAML, several documents, and
  lists as kubectl prints them; gzip and zstd are recognised by themselves.
"""


def files_option(*, required: bool) -> Callable[[F], F]:
    """The option `-f`, which may be repeated; the command gets `files`."""
    return click.option(
        "-f",
        "--filename",
        "files",
        metavar="PATH",
        multiple=True,
        required=required,
        help="Read a file, a directory, or - for standard input. May be repeated.",
    )


def output_option(*formats: str) -> Callable[[F], F]:
    """The option `--output`; the first format is the default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="A table for people, or JSON for programs.",
    )
