"""`karpool diff`: two plans side by side, or what a change of NodePools would make of a cluster."""

import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final

import click
import msgspec

from karpool.cli.completions import files
from karpool.cli.fail_if import fail_if_option, judged, metrics_help
from karpool.cli.inputs.cluster_source import LoadedCluster, as_validated, cluster_from
from karpool.cli.inputs.pool_change import with_pools
from karpool.cli.options.catalog_options import CatalogOpener, catalog_options
from karpool.cli.options.decision_options import Choices, decision_options
from karpool.cli.options.group_options import group_options
from karpool.cli.options.input_options import READS_LIVE, ClusterInput, cluster_options, output_option
from karpool.cli.progress import ReportProgress, progress
from karpool.cluster.node_groups import GroupOptions
from karpool.model.nodepool import NodePool
from karpool.model.reading.loading import load
from karpool.report.plans.condition import Condition
from karpool.report.plans.document import PlanDocument, to_json
from karpool.report.plans.plan_diff import DIFF_METRICS, diff_values, plan_diff
from karpool.wire.objects import decode_value
from karpool.wire.problems import InputError
from karpool.wire.sources import STDIN, ManifestSource, display_name, read_source

EPILOG: Final = f"""{READS_LIVE}
\b
WHAT IS COMPARED
  FIRST and SECOND are either two plans, as `karpool plan -o json` writes them, or
  manifests of NodePools. Of manifests, the cluster (-f, or live) is planned twice:
  with the pools of FIRST and with those of SECOND instead; its other pools stay. A
  changed template or requirement makes nodes drift, as it would in the cluster.
  Of a pool that only FIRST has, and that has nodes, only their number is known:
  what its deletion costs and evicts is ?, and meets every --fail-if.
\b
WHAT --fail-if SPEAKS OF
{metrics_help(DIFF_METRICS)}
\b
EXAMPLES
  karpool diff before.json after.json
  karpool diff old-pools.yaml new-pools.yaml -f cluster.json
  git show main:pools.yaml | karpool diff - pools.yaml -o markdown --fail-if 'price>100$/month'
\b
EXIT STATUS
  0  compared
  1  the cluster does not answer, or does not let its pods and nodes be listed
  2  bad input; one line on standard error names file, object and field
  3  compared, and what --fail-if says holds; one line on standard error says why
"""


@click.command(epilog=EPILOG)
@click.argument("first", metavar="FIRST", shell_complete=files)
@click.argument("second", metavar="SECOND", shell_complete=files)
@cluster_options
@output_option("table", "json", "markdown", text="Tables for people, a document, or Markdown for a pull request.")
@fail_if_option(DIFF_METRICS, "price>100$/month")
@click.option("--all", "everything", is_flag=True, help="List every node that the plans do not treat alike.")
@catalog_options
@group_options
@decision_options
@click.pass_context
def diff(
    context: click.Context,
    /,
    *,
    first: str,
    second: str,
    source: ClusterInput,
    output: str,
    fail_if: tuple[str, Condition] | None,
    everything: bool,
    catalog_opener: CatalogOpener,
    groups: GroupOptions,
    choices: Choices,
) -> None:
    """Compare two plans, or what two sets of NodePools would make of a cluster: money, evictions, nodes by pool."""
    if [first, second, *source.files].count(STDIN) > 1:
        raise InputError.at("-", "standard input can be read only once; name a file")
    one, two = _read(first), _read(second)
    if isinstance(one, PlanDocument) and isinstance(two, PlanDocument):
        if source.files or source.kube.chosen:
            raise InputError.at("-f", "goes with manifests of NodePools; two plans are compared as they are")
        document = plan_diff(one, two, (first, second))
    elif isinstance(one, PlanDocument) or isinstance(two, PlanDocument):
        raise InputError.at("", "one of the two is a plan; give two plans, or two manifests of NodePools")
    else:
        with progress() as report:
            cluster = cluster_from(source, catalog_opener, choices, report, groups)
            plans = (
                _planned(cluster, one, one, choices, report),
                _planned(cluster, two, one, choices, report),
            )
        document = plan_diff(*plans, (first, second), "NodePools", _lost(one, two))
    if output == "json":
        click.echo(to_json(document))
    elif output == "markdown":
        from karpool.report.plans.diff_words import diff_markdown

        click.echo(diff_markdown(document))
    else:
        from karpool.report.plans.diff_words import print_diff
        from karpool.report.terminal import Screen

        print_diff(document, Screen(sys.stdout), everything=everything)
    context.exit(judged(fail_if, diff_values(document)))


class _Head(msgspec.Struct):
    kind: str = ""


def _read(path: str) -> PlanDocument | tuple[NodePool, ...]:
    """A plan, or the NodePools of a manifest or a directory of them."""
    if path != STDIN and Path(path).is_dir():
        return _pools(path, sys.stdin.buffer)
    source = ManifestSource(path)
    data = read_source(source, sys.stdin.buffer)
    if not _is_plan(data):
        return _pools(path, BytesIO(data))
    try:
        return msgspec.json.decode(data, type=PlanDocument, dec_hook=decode_value)
    except msgspec.DecodeError as error:
        raise InputError.at(display_name(source), f"is not a plan that can be read: {error}") from error


def _is_plan(data: bytes) -> bool:
    try:
        return msgspec.json.decode(data, type=_Head).kind == "Plan"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _pools(path: str, stdin: BinaryIO) -> tuple[NodePool, ...]:
    pools = load([path], stdin=stdin).objects.node_pools
    if not pools:
        raise InputError.at(path, "holds neither a plan (karpool plan -o json) nor NodePools")
    return tuple(map(as_validated, pools))


def _planned(
    cluster: LoadedCluster,
    pools: tuple[NodePool, ...],
    before: tuple[NodePool, ...],
    choices: Choices,
    report: ReportProgress,
) -> PlanDocument:
    """The plan for a cluster with other pools."""
    from karpool.disruption.plan import Planner
    from karpool.report.plans.assemble import plan_document

    changed = replace(cluster, objects=with_pools(cluster.objects, pools, before=before))
    planner = Planner(changed.context(choices), report, afresh=lambda: changed.context(choices))
    return plan_document(planner.plan(), cluster.warnings, cluster.catalog)


def _lost(one: tuple[NodePool, ...], two: tuple[NodePool, ...]) -> set[str]:
    """Pools that only the first has: their nodes go with them."""
    return {pool.name for pool in one} - {pool.name for pool in two}
