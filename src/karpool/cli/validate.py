"""`karpool validate`: what was read, counted by kind, and everything that is wrong with it."""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, TextIO

import click
import msgspec

from karpool.cli.errors import BAD_INPUT, say
from karpool.cli.input_options import READS, files_option, output_option
from karpool.disruption.pods import ignored_protection
from karpool.model.annotations import annotation_path
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.loading import Loaded, read
from karpool.model.rules.pools import pause_flaws
from karpool.model.validation import validate as find_problems
from karpool.wire.problems import Flaw, Problem

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
  so are weights that put a pool of expensive nodes before a cheap one.
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


@click.command(epilog=EPILOG)
@files_option(required=True)
@output_option("table", "json")
@click.pass_context
def validate(context: click.Context, files: tuple[str, ...], output: str) -> None:
    """Read manifests, count them by kind, and list every object that breaks a rule.

    Other commands refuse input that cannot be read. This one also finds what only a controller would refuse: a
    NodeClaim whose NodePool does not exist, a pod on a node that does not exist, a schedule that never comes.
    """
    loaded = read(files, stdin=sys.stdin.buffer)
    validation = Validation(loaded.kinds, loaded.skipped, warnings_about(loaded), find_problems(loaded))
    if validation.problems:
        say(str(validation.problems[0]), BAD_INPUT)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(validation), indent=2))
    else:
        show(validation, sys.stdout)
    context.exit(BAD_INPUT if validation.problems else 0)


def warnings_about(loaded: Loaded) -> tuple[Problem, ...]:
    return (*loaded.warnings, *_pauses(loaded), *_costly_weights(loaded), *_ignored_protection(loaded))


def _pauses(loaded: Loaded) -> Iterator[Problem]:
    for pool in loaded.objects.node_pools:
        for flaw in pause_flaws(pool):
            yield Problem.of(flaw, file=loaded.file_of("NodePool", pool.key), about=f"NodePool {pool.name}")


def _ignored_protection(loaded: Loaded) -> Iterator[Problem]:
    for pod in loaded.objects.pods:
        if (reason := ignored_protection(pod)) is not None:
            flaw = Flaw(annotation_path(DO_NOT_DISRUPT), str(reason.code), reason.message)
            yield Problem.of(flaw, file=loaded.file_of("Pod", pod.key), about=reason.object)


def _costly_weights(loaded: Loaded) -> Iterator[Problem]:
    """Weights that make small pods run on expensive nodes, at the prices of the built-in catalogue."""
    refused = {problem.object for problem in (*loaded.problems, *loaded.omissions)}
    pools = [pool for pool in loaded.objects.node_pools if f"NodePool {pool.name}" not in refused]
    if not any(pool.weight for pool in pools):
        return
    from karpool.catalog.places import places_of_cluster
    from karpool.catalog.sources import open_catalog
    from karpool.catalog.weights import expensive_favourites

    places = places_of_cluster(loaded.objects.nodes, loaded.objects.node_claims, pools)
    for pool, flaw in expensive_favourites(pools, open_catalog(places=places)):
        file = loaded.file_of("NodePool", pool.key) or loaded.file_of("Provisioner", pool.key)
        yield Problem.of(flaw, file=file, about=f"NodePool {pool.name}")


def show(validation: Validation, file: TextIO) -> None:
    from karpool.report.terminal import Screen, right

    screen = Screen(file)
    if validation.kinds:
        rows = [(kind, f"{number:,}") for kind, number in validation.kinds.items()]
        screen.table(["kind", right("objects")], rows)
    else:
        screen.line("Nothing of what was read is needed.")
    if validation.skipped:
        listed = ", ".join(f"{number:,} {kind}" for kind, number in validation.skipped.items())
        screen.line(f"Skipped, not needed: {listed}")
    _show_problems(screen, "Warnings", validation.warnings)
    _show_problems(screen, "Problems", validation.problems)
    if not validation.problems:
        screen.line("No problems.")


def _show_problems(screen: "Screen", title: str, problems: tuple[Problem, ...]) -> None:
    if not problems:
        return
    screen.heading(f"{title}: {len(problems):,}")
    for problem in problems[:_MOST_SHOWN]:
        screen.line(f"  {problem}")
    if len(problems) > _MOST_SHOWN:
        screen.line(f"  … and {len(problems) - _MOST_SHOWN:,} more; --output json lists all")
