"""`karpool validate`: what was read, counted by kind, and everything that is wrong with it."""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, TextIO

import click
import msgspec

from karpool.cli.errors import BAD_INPUT, say
from karpool.cli.input_options import READS, files_option, output_option
from karpool.disruption.pods import ignored_protection
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.loading import Loaded, read
from karpool.model.validation import validate as find_problems
from karpool.wire.problems import Problem

if TYPE_CHECKING:
    from karpool.report.terminal import Screen

_MOST_SHOWN: Final = 50
EPILOG: Final = f"""{READS}
\b
WHAT IS CHECKED
  Values: quantities, durations, operators, weights, budgets, and all other rules
  that an API server has for NodePools and NodeClaims. Objects: each has a name,
  no two have the same. References: the NodePool of a NodeClaim, the Node of a
  pod. Schedules: budgets whose cron never comes. Unknown fields are warnings, and
  so are weights that put a pool of dear nodes before a pool of cheap ones.
\b
THE JSON
  {{"kinds": {{"Node": 12}}, "skipped": {{"Service": 3}}, "warnings": [], "problems":
   [{{"file": "", "object": "", "field": "", "rule": "", "message": ""}}]}}
\b
EXAMPLES
  karpool validate -f cluster.json
  karpool validate -f nodepools/ -f nodes.yaml.gz --output json
  kubectl get nodes,pods,pdb,nodepools,nodeclaims -A -o json | karpool validate -f -
\b
EXIT STATUS
  0  nothing is wrong; there may be warnings
  2  at least one problem: the first is one line on standard error, all of them
     are in the output
"""


class Validation(msgspec.Struct):
    """What `--output json` prints."""

    kinds: Mapping[str, int]
    skipped: Mapping[str, int]
    warnings: tuple[Problem, ...]
    problems: tuple[Problem, ...]


@click.command(epilog=EPILOG, context_settings={"max_content_width": 100})
@files_option(required=True)
@output_option("table", "json")
@click.pass_context
def validate(context: click.Context, files: tuple[str, ...], output: str) -> None:
    """Read manifests, count them by kind, and list every object that breaks a rule.

    Other commands refuse input that cannot be read. This one also finds what only a controller would trip over: a
    NodeClaim whose NodePool does not exist, a pod on a node that does not exist, a schedule that never comes.
    """
    loaded = read(files, stdin=sys.stdin.buffer)
    found = Validation(loaded.kinds, loaded.skipped, warnings_about(loaded), find_problems(loaded))
    if found.problems:
        say(str(found.problems[0]), BAD_INPUT)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        show(found, sys.stdout)
    context.exit(BAD_INPUT if found.problems else 0)


def warnings_about(loaded: Loaded) -> tuple[Problem, ...]:
    """Everything that is allowed and yet worth knowing."""
    return (*loaded.warnings, *_costly_weights(loaded), *_ignored_protection(loaded))


def _ignored_protection(loaded: Loaded) -> Iterator[Problem]:
    """Annotations that should keep pods from being disturbed and do not."""
    for pod in loaded.objects.pods:
        if (found := ignored_protection(pod)) is not None:
            field = f"metadata.annotations[{DO_NOT_DISRUPT}]"
            yield Problem(
                file=loaded.file_of("Pod", pod.key),
                object=found.object,
                field=field,
                rule=str(found.code),
                message=found.message,
            )


def _costly_weights(loaded: Loaded) -> Iterator[Problem]:
    """Weights that make small pods run on dear nodes, at the prices of the built-in catalogue."""
    refused = {problem.object for problem in (*loaded.problems, *loaded.omissions)}
    pools = [pool for pool in loaded.objects.node_pools if f"NodePool {pool.name}" not in refused]
    if not any(pool.weight for pool in pools):
        return
    from karpool.catalog.sources import open_catalog
    from karpool.catalog.weights import expensive_favourites

    for pool, flaw in expensive_favourites(pools, open_catalog()):
        file = loaded.file_of("NodePool", pool.key) or loaded.file_of("Provisioner", pool.key)
        yield Problem.of(flaw, file=file, about=f"NodePool {pool.name}")


def show(found: Validation, file: TextIO) -> None:
    """Print what was found as tables."""
    from karpool.report.tables import is_plain
    from karpool.report.terminal import Column, Screen

    screen = Screen(file, plain=is_plain(file))
    if found.kinds:
        rows = [(kind, f"{number:,}") for kind, number in found.kinds.items()]
        screen.table([Column("kind"), Column("objects", "right")], rows)
    else:
        screen.line("Nothing of what was read is needed.")
    if found.skipped:
        listed = ", ".join(f"{number:,} {kind}" for kind, number in found.skipped.items())
        screen.line(f"Skipped, not needed: {listed}")
    _show_problems(screen, "Warnings", found.warnings)
    _show_problems(screen, "Problems", found.problems)
    if not found.problems:
        screen.line("No problems.")


def _show_problems(screen: "Screen", title: str, problems: tuple[Problem, ...]) -> None:
    if not problems:
        return
    screen.heading(f"{title}: {len(problems):,}")
    for problem in problems[:_MOST_SHOWN]:
        screen.line(f"  {problem}")
    if len(problems) > _MOST_SHOWN:
        screen.line(f"  … and {len(problems) - _MOST_SHOWN:,} more; --output json lists all")
