"""The options that say what to read; the same for every command that reads a cluster, live or from files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from karpool.cli.completions import files as completed_files
from karpool.cli.options.option_types import OneOf
from karpool.wire.problems import InputError

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

READS: Final = """\b
WHAT -f READS
  Files, directories with all that is in them (*.json, *.yaml, *.yml, also with
  .gz or .zst), and - for standard input. JSON or YAML, several documents, and
  lists as kubectl prints them; gzip and zstd are recognised by themselves.
"""
READS_LIVE: Final = f"""\b
WITHOUT -f
  The cluster of the current kube context is read, found as kubectl finds it; in a
  pod, its own cluster. Objects are only got and listed. A kind that may not be
  listed is named, and what it might forbid counts as forbidden; pods and nodes
  are needed.
{READS}"""


@dataclass(frozen=True, slots=True)
class KubeContext:
    context: str | None = None
    kubeconfig: Path | None = None

    @property
    def chosen(self) -> bool:
        return self.context is not None or self.kubeconfig is not None

    @property
    def options(self) -> tuple[str, ...]:
        """As they are written on a command line."""
        context = () if self.context is None else ("--context", self.context)
        return context if self.kubeconfig is None else (*context, "--kubeconfig", str(self.kubeconfig))


@dataclass(frozen=True, slots=True)
class ClusterInput:
    """What to read: files, or without any a live cluster."""

    files: tuple[str, ...]
    kube: KubeContext


def with_options(
    command: Callable[..., R], options: Sequence[Callable[[Callable[..., R]], Callable[..., R]]]
) -> Callable[..., R]:
    """A command with options, which help lists in this order."""
    for option in reversed(options):
        command = option(command)
    return command


_KUBE_OPTIONS: Final = (
    click.option("--context", metavar="NAME", help="The kube context to read, if not the current one."),
    click.option("--kubeconfig", metavar="PATH", type=click.Path(path_type=Path), help="The kubeconfig file to use."),
)


def kube_options(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the options `--context` and `--kubeconfig`; it gets them as `kube`."""

    @wraps(command)
    def with_kube(*args: Any, context: str | None, kubeconfig: Path | None, **rest: Any) -> R:
        return command(*args, kube=KubeContext(context, kubeconfig), **rest)

    return with_options(with_kube, _KUBE_OPTIONS)


def cluster_options(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command `-f`, `--context` and `--kubeconfig`; it gets what they say as `source`."""

    @wraps(command)
    def with_source(*args: Any, files: tuple[str, ...], kube: KubeContext, **rest: Any) -> R:
        if files and kube.chosen:
            given = "--context" if kube.context is not None else "--kubeconfig"
            raise InputError.at(given, "goes with a live cluster, and -f names files; leave one of them out")
        return command(*args, source=ClusterInput(files, kube), **rest)

    return files_option(required=False)(kube_options(with_source))


def files_option(*, required: bool) -> Callable[[F], F]:
    """The option `-f`, which may be repeated; the command gets `files`."""
    otherwise = "" if required else " Without it, a live cluster is read."
    return click.option(
        "-f",
        "--filename",
        "files",
        metavar="PATH",
        shell_complete=completed_files,
        multiple=True,
        required=required,
        help=f"Read a file, a directory, or - for standard input. May be repeated.{otherwise}",
    )


def output_option(*formats: str, text: str = "A table for people, or JSON for programs.") -> Callable[[F], F]:
    """The option `--output`; the first format is the default."""
    return click.option("-o", "--output", type=OneOf(formats), default=formats[0], help=text)
