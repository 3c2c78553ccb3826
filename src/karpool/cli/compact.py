"""`karpool compact`: drain under-used nodes so that the cluster's autoscaler removes them, or show what that means."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click
from click.core import ParameterSource

from karpool.catalog.notices import idle_discounts, unpriced_regions
from karpool.catalog.price_sources import used_origins
from karpool.catalog.pricing import node_price
from karpool.cli.completions import files
from karpool.cli.errors import say, unknown_node
from karpool.cli.inputs.cluster_source import read_cluster
from karpool.cli.inputs.live_cluster import Purpose, query_cluster
from karpool.cli.options.brake_options import HEALTH_OPTIONS, RATE_OPTIONS, drain_settings
from karpool.cli.options.catalog_options import CatalogOpener, catalog_options
from karpool.cli.options.decision_options import read_time
from karpool.cli.options.group_options import GROUPS, POOL_LABEL, pool_label_notices, sizes_in
from karpool.cli.options.input_options import (
    READS,
    ClusterInput,
    KubeContext,
    cluster_options,
    output_option,
    with_options,
)
from karpool.cli.options.option_types import Whole
from karpool.cli.progress import progress
from karpool.cli.service import LOG_OPTIONS, NOTIFY_OPTIONS, run_service, take_webhook
from karpool.cluster.node_groups import GroupOptions, with_group_prices
from karpool.compaction.advice import advice
from karpool.compaction.config import CONFIG_MAP, DEFAULT_NAMESPACE, Config, parse_config
from karpool.compaction.decide import decide
from karpool.compaction.end_state import end_state
from karpool.compaction.explain import explain
from karpool.compaction.pools import default_config, known_sizes, pool_of, pools_without_nodes
from karpool.compaction.rates import NO_LEDGER, Ledger, rates_in_force
from karpool.compaction.settings import DEFAULTS, CompactionSettings
from karpool.model.objects import Objects
from karpool.report.compaction.compaction_document import Compaction, compaction_document, end_part
from karpool.report.compaction.compaction_node_document import CompactionNode, compaction_node
from karpool.report.plans.document import to_json
from karpool.wire.problems import InputError, suggestion
from karpool.wire.sources import STDIN, ManifestSource, display_name, read_source

F = TypeVar("F", bound=Callable[..., Any])

EPILOG: Final = f"""\b
WHAT IT DOES
  Marks nodes that are under-used for a while, and of each enabled pool cordons and
  drains one at a time: the one with the lowest part of its CPU requested that has no
  pod which keeps it, if each of its pods fits on nodes that stay. The cluster's
  autoscaler finds it empty and removes it. A drain that fails is undone. All
  progress is kept on the nodes, in the annotation estafette.io/node-compactor-state, so
  it may be killed and started at any moment. Run one of them in a cluster.
\b
WITH --plan
  Shows what it would do now, and why the other nodes stay. It only gets and lists
  objects of the cluster. To see which node would be chosen once all marks were old
  enough, add --needed-marked-time-for-removal-seconds 0. With --node, everything about
  one node: its mark, what it waits for, all that keeps it, and where its pods would go.
  Without a configuration every node group takes part, under careful limits. It also
  says where it ends if it is left alone, and what that saves.
{READS}
\b
THE CONFIGURATION
  JSON or YAML: an object with nodePools, in a file, or in the ConfigMap under the key
  estafette-k8s-node-compactor-config.yaml. It is read again whenever it changes; a
  broken one is reported, and the last good one kept. For each pool, by name:
    enabled                                  default false
    scaleDownCPURequestRatioLimit            under this part of its CPU requested, a
                                             node is under-used: 0.75
    scaleDownRequiredUnderutilizedNodeCount  how many must be, for one to go: 5
    scaleDownMemoryRequestRatioLimit         memory must be under this, too
    maxConcurrentScaleDowns                  no more than so many at once
    scaleDownWindows                         begin only then:
                                             [{{"schedule": "0 20 * * *", "duration": "10h"}}]
    respectPodDisruptionBudgets, checkFit    default true
    skipNodesWithSystemPods                  default false
    minimumNodes                             the pool keeps so many
\b
WHERE TO LOOK
  /metrics, /healthz and /readyz at --metrics-address, Events on nodes and on the
  ConfigMap, and the log on standard error.
\b
ENVIRONMENT
  The variables named above, and for every other option KARPOOL_ and its name:
  KARPOOL_DRY_RUN=true.
\b
EXAMPLES
  karpool compact --plan
  karpool compact --plan --context staging --config compactor.json
  karpool compact --plan --node gke-main-1f2e
  kubectl get nodes,pods,pdb,ds,pvc,pv,sc,csinodes,ns -A -o json > cluster.json
  karpool compact --plan -f cluster.json --config compactor.json --output json
  kubectl get cm estafette-k8s-node-compactor-config -n estafette -o yaml |
    karpool compact --plan -f cluster.json --config -
  karpool compact --dry-run --log-format text    # what would it do? writes nothing
  karpool compact --metrics-address :9101
\b
EXIT STATUS
  0  planned, also when nothing is to be done; or stopped because it was asked to
  1  the cluster does not answer, or does not let its pods and nodes be listed
  2  bad input, also a --config that is missing or broken at the start; one line on
     standard error names file, object and field
"""

_PRICING: Final = {
    "catalog_source": "--catalog",
    "node_fee": "--node-fee",
    "prices": "--price",
    "discounts": "--discount",
    "price_factor": "--price-factor",
    "spot_fraction": "--spot-fraction",
}
# Options that say something only with --plan, and only without it.
_OF_PLANS: Final = {
    "files": "-f",
    "output": "--output",
    "every_node": "--all",
    "node": "--node",
    "at": "--at",
} | _PRICING
_OF_RUNS: Final = {
    "dry_run": "--dry-run",
    "metrics_address": "--metrics-address",
    "notify": "--notify",
    "notify_file": "--notify-file",
}


# Each sets the field of the settings that its last name is.
_DURATIONS: Final = (
    (
        "How long a node must have been marked.",
        "--needed-marked-time-for-removal-seconds",
        "--needed-marked-time-for-seconds",
        "needed_marked_time",
    ),
    ("How old a node must be to be marked.", "--minimum-node-age-seconds", "minimum_node_age"),
    (
        "How long to wait, about, between two scans of the cluster.",
        "--sleep-duration-between-iterations-seconds",
        "sleep",
    ),
    ("How long pods may take to leave before a drain is given up.", "--drain-timeout-seconds", "drain_timeout"),
    (
        "How long an empty node waits for the autoscaler before it takes pods again.",
        "--removal-timeout-seconds",
        "removal_timeout",
    ),
)


def _seconds(text: str, name: str, *others: str) -> Callable[[F], F]:
    return click.option(
        name,
        *others,
        metavar="SECONDS",
        type=Whole(min=0, max=10**9),
        default=int(getattr(DEFAULTS, others[-1]).total_seconds()),
        envvar=name.removeprefix("--").replace("-", "_").upper(),
        show_envvar=True,
        help=text,
    )


_OPTIONS: Final[tuple[Callable[..., Any], ...]] = (
    click.option("--plan", is_flag=True, help="Show what would be done, and end; nothing is changed anywhere."),
    click.option("--dry-run", is_flag=True, help="Run and report what would be done, but write nothing."),
    cluster_options,
    click.option(
        "--config",
        "config_file",
        metavar="PATH",
        shell_complete=files,
        help="The configuration: a file, or - for standard input.",
    ),
    click.option(
        "--configmap-name",
        metavar="NAME",
        default=CONFIG_MAP,
        envvar="CONFIGMAP_NAME",
        show_envvar=True,
        help="The ConfigMap of a live cluster that holds the configuration, without --config.",
    ),
    click.option(
        "--namespace",
        metavar="NAME",
        envvar="NAMESPACE",
        show_default="estafette; in a pod, its own",
        show_envvar=True,
        help="The namespace of that ConfigMap.",
    ),
    output_option("table", "json"),
    click.option("--all", "every_node", is_flag=True, help="List every node in the table, not only counts by reason."),
    click.option("--node", metavar="NAME", help="Explain this node, instead of planning for all."),
    click.option("--at", metavar="TIME", help="Plan as of this time (RFC 3339) instead of now."),
    POOL_LABEL,
    GROUPS,
    *(_seconds(*names) for names in _DURATIONS),
    click.option(
        "--metrics-address",
        metavar="HOST:PORT",
        default="127.0.0.1:9101",
        help="Where to serve /metrics; :9101 for all interfaces, 0 to serve nothing.",
    ),
    *HEALTH_OPTIONS,
    *RATE_OPTIONS,
    catalog_options,
    *NOTIFY_OPTIONS,
    *LOG_OPTIONS,
)


@click.command(epilog=EPILOG, context_settings={"auto_envvar_prefix": "KARPOOL"})
@partial(with_options, options=_OPTIONS)
@click.pass_context
def compact(
    ctx: click.Context, /, *, plan: bool, source: ClusterInput, catalog_opener: CatalogOpener, **given: Any
) -> None:
    """Cordon and drain under-used nodes, so that the cluster's autoscaler removes them; or show which, with --plan.

    For clusters with Cluster Autoscaler or a cloud's own, which remove a node by themselves only when it is nearly
    empty.
    """
    for name, written in (_OF_RUNS if plan else _OF_PLANS).items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError.at(written, "does not go with --plan" if plan else "goes with --plan only")
    if plan:
        _plan(source, catalog_opener, given)
    else:
        _run(source.kube, given)


def _settings(given: Mapping[str, Any], namespace: str = "") -> CompactionSettings:
    brakes = replace(drain_settings(given), pause_namespace=namespace)
    lengths = {field: timedelta(seconds=given[field]) for *_, field in _DURATIONS}
    sizes = sizes_in(given["groups_file"])
    return CompactionSettings(pool_label=given["pool_label"], sizes=sizes, brakes=brakes, **lengths)


# -- the plan ------------------------------------------------------------------------------------------------------


def _plan(source: ClusterInput, opener: CatalogOpener, given: Mapping[str, Any]) -> None:
    now, file, name = read_time(given["at"]), given["config_file"], given["node"]
    if name is not None and given["every_node"]:
        raise InputError.at("--all", "does not go with --node")
    with progress() as report:
        namespace = given["namespace"] or DEFAULT_NAMESPACE
        settings = _settings(given, namespace)
        if file is None and not source.files:
            written = _live_config(source.kube, given["configmap_name"], given["namespace"])
        else:
            written = None if file is None else _config(file, source.files)
        read = read_cluster(source, report, Purpose.COMPACT, pause_namespace=namespace)
        report("Looking for nodes to drain", 0, None)
        objects = with_group_prices(read.objects, GroupOptions(settings.pool_label, settings.sizes))
        sizes = known_sizes(objects, settings.sizes, settings.pool_label)
        config = default_config(objects, sizes, settings.pool_label) if written is None else written
        live = not source.files and rates_in_force(objects, settings.brakes, now)
        ledger = _live_ledger(source.kube, namespace) if live else NO_LEDGER
        result: Compaction | CompactionNode
        priced: list[str] = []
        if name is None:
            decision = decide(objects, config, now, settings, ledger=ledger)
            catalog = opener.for_cluster(objects.nodes, ())
            priced = [*unpriced_regions(catalog), *idle_discounts(opener.discounts, catalog.origins)]
            prices = {node.name: node_price(catalog, node.metadata.labels) for node in objects.nodes}
            origins = used_origins(catalog, (node.metadata.labels for node in objects.nodes))
            end = end_part(decision, end_state(objects, config, now, settings), prices, sizes, origins)
            result = compaction_document(decision, end, configured=written is not None)
        elif name in (names := [node.name for node in objects.nodes]):
            result = compaction_node(explain(objects, config, now, name, settings, ledger=ledger))
        else:
            raise unknown_node("--node", name, names, objects.pods)
    for notice in (*read.notices, *priced):
        say(notice, 0)
    _warn(objects, config, settings)
    _show(result, given)


def _warn(objects: Objects, config: Config, settings: CompactionSettings) -> None:
    """Say which pools of the configuration have no nodes, and what of it will hardly do what was meant."""
    for notice in pool_label_notices(objects, settings.pool_label):
        say(notice, 0)
    present = {pool_of(node, settings.pool_label) for node in objects.nodes} - {""}
    for name in pools_without_nodes(config, present) if objects.nodes else ():
        there_are = f"there are: {', '.join(sorted(present)) or 'none'}"
        notice = f"no node belongs to pool {name}; {there_are}{suggestion(name, present)}"
        say(notice, 0)
    for notice in advice(config):
        say(notice, 0)


def _show(result: Compaction | CompactionNode, given: Mapping[str, Any]) -> None:
    if given["output"] == "json":
        click.echo(to_json(result))
    elif isinstance(result, Compaction):
        from karpool.report.compaction.compaction_table import print_compaction
        from karpool.report.terminal import Screen

        print_compaction(result, Screen(sys.stdout), every_node=given["every_node"])
    else:
        from karpool.report.compaction.compaction_node_table import print_compaction_node
        from karpool.report.terminal import Screen

        print_compaction_node(result, Screen(sys.stdout))


def _config(name: str, files: tuple[str, ...]) -> Config:
    """The configuration; standard input can be only one of the things to read."""
    if name == STDIN and STDIN in files:
        raise InputError.at("--config", "standard input can be read only once; give -f or --config a file")
    source = ManifestSource(name)
    return parse_config(read_source(source, sys.stdin.buffer), file=display_name(source))


def _live_config(kube: KubeContext, name: str, namespace: str | None) -> Config | None:
    """The configuration in a cluster; None if there is none."""
    from karpool.compactor.config_source import read_compactor_config

    return query_cluster(kube, lambda client: read_compactor_config(client, name=name, namespace=namespace))


def _live_ledger(kube: KubeContext, namespace: str) -> Ledger:
    from karpool.compactor.ledger_map import read_drain_ledger

    ledger, _ = query_cluster(kube, lambda client: read_drain_ledger(client, namespace))
    return ledger


# -- the run -------------------------------------------------------------------------------------------------------


def _run(kube: KubeContext, given: dict[str, Any]) -> NoReturn:
    from karpool.compactor.compactor import Compactor, CompactorSettings
    from karpool.kube.kubeconfig import find_target
    from karpool.observability.serving import Address

    file = given["config_file"]
    if file == STDIN:
        raise InputError.at("--config", "standard input cannot be read again when it changes; name a file")
    if file is not None:
        _config(file, ())  # a file that is broken from the start is a slip; a ConfigMap may come later
    settings = CompactorSettings(
        webhook=take_webhook(given),
        compaction=_settings(given),
        config_file=None if file is None else Path(file),
        config_map=given["configmap_name"],
        namespace=given["namespace"],
        dry_run=given["dry_run"],
        metrics_address=Address.read(given["metrics_address"], "--metrics-address"),
    )
    compactor = Compactor(settings, find_target(kube.context, kube.kubeconfig))
    run_service(compactor.run, settings.shutdown_timeout, given["log_format"], given["log_level"])
