"""`karpool compact`: drain under-used nodes so that the cluster's autoscaler removes them; here, what that would do."""

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from karpool.cli.cluster_source import read_objects
from karpool.cli.decision_options import read_time
from karpool.cli.input_options import READS_LIVE, ClusterInput, KubeContext, cluster_options, output_option
from karpool.cli.live_cluster import Purpose, ask_cluster
from karpool.cli.progress import progress
from karpool.compaction.config import CONFIG_MAP, Config, parse_config
from karpool.compaction.decide import decide
from karpool.compaction.document import ChosenPart, Compaction, NodePart, document, to_json
from karpool.compaction.settings import DEFAULTS, Settings
from karpool.model.manifests.sources import STDIN, Source, display_name, read_source
from karpool.model.problems import InputError
from karpool.report.tables import is_plain
from karpool.report.words import count

if TYPE_CHECKING:
    from karpool.report.terminal import Screen

F = TypeVar("F", bound=Callable[..., Any])

EPILOG: Final = f"""{READS_LIVE}
\b
THE CONFIGURATION
  JSON or YAML: an object with nodePools, or a ConfigMap that holds it under the key
  estafette-k8s-node-compactor-config.yaml. Without --config the ConfigMap of the live
  cluster is read. For each pool, by name:
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
\b
WHAT IS CHOSEN
  Of each enabled pool, the node with the lowest part of its CPU requested, if it is
  old enough, has been marked for long enough, has no pod that keeps it, and each of
  its pods has a place on nodes that stay. For every other node the reasons are shown.
  A node is marked in its annotation estafette.io/node-compactor-state; a file without
  marks shows which nodes would be marked. To see which node would then be chosen, add
  --needed-marked-time-for-removal-seconds 0.
\b
EXAMPLES
  karpool compact --plan
  karpool compact --plan --context staging --config compactor.json
  kubectl get nodes,pods,pdb,ds,pvc,pv,sc,csinodes,ns -A -o json > cluster.json
  karpool compact --plan -f cluster.json --config compactor.json
  karpool compact --plan -f cluster.json --config compactor.json --output json
  kubectl get cm estafette-k8s-node-compactor-config -n estafette -o yaml |
    karpool compact --plan -f cluster.json --config -
\b
EXIT STATUS
  0  planned, also when nothing is to be done
  1  the cluster does not answer, or does not let its pods and nodes be listed
  2  bad input; one line on standard error names file, object and field
"""


def _seconds(name: str, variable: str, default: timedelta, text: str, *others: str) -> Callable[[F], F]:
    return click.option(
        name,
        *others,
        metavar="SECONDS",
        type=click.IntRange(min=0, max=10**9),
        default=int(default.total_seconds()),
        envvar=variable,
        show_default=True,
        show_envvar=True,
        help=text,
    )


@click.command(epilog=EPILOG, context_settings={"max_content_width": 100})
@click.option("--plan", is_flag=True, help="Show what would be done; nothing is changed anywhere.")
@cluster_options
@click.option("--config", "config_file", metavar="PATH", help="The configuration: a file, or - for standard input.")
@click.option(
    "--configmap-name",
    metavar="NAME",
    default=CONFIG_MAP,
    envvar="CONFIGMAP_NAME",
    show_default=True,
    show_envvar=True,
    help="The ConfigMap of a live cluster that holds the configuration, without --config.",
)
@click.option(
    "--namespace",
    metavar="NAME",
    default="estafette",
    envvar="NAMESPACE",
    show_default=True,
    show_envvar=True,
    help="The namespace of that ConfigMap.",
)
@output_option("table", "json")
@click.option("--all", "every_node", is_flag=True, help="List every node in the table, not only counts by reason.")
@click.option(
    "--pool-label",
    metavar="LABEL",
    help="The node label that names its pool, if it is not that of GKE, EKS, AKS or Karpenter.",
)
@_seconds(
    "--needed-marked-time-for-removal-seconds",
    "NEEDED_MARKED_TIME_FOR_REMOVAL_SECONDS",
    DEFAULTS.needed_marked_time,
    "How long a node must have been marked.",
    "--needed-marked-time-for-seconds",
    "needed",
)
@_seconds(
    "--minimum-node-age-seconds",
    "MINIMUM_NODE_AGE_SECONDS",
    DEFAULTS.minimum_node_age,
    "How old a node must be to be marked.",
)
@_seconds(
    "--sleep-duration-between-iterations-seconds",
    "SLEEP_DURATION_BETWEEN_ITERATIONS_SECONDS",
    DEFAULTS.sleep,
    "How long to wait, about, between two looks at a live cluster; a plan looks once.",
    "sleep",
)
@click.option("--at", metavar="TIME", help="Decide as of this time (RFC 3339) instead of now.")
def compact(
    *,
    plan: bool,
    source: ClusterInput,
    config_file: str | None,
    configmap_name: str,
    namespace: str,
    output: str,
    every_node: bool,
    pool_label: str | None,
    needed: int,
    minimum_node_age_seconds: int,
    sleep: int,
    at: str | None,
) -> None:
    """Show which under-used nodes would be marked, and which one of each pool would be cordoned and drained.

    For clusters with Cluster Autoscaler or a cloud's own: it removes a drained node by itself. Say for every node that
    is not chosen why, and for every pod of one that is, where it would go.
    """
    if not plan:
        raise InputError.at("compact", "running live is not available yet; use --plan")
    settings = Settings(
        needed_marked_time=timedelta(seconds=needed),
        minimum_node_age=timedelta(seconds=minimum_node_age_seconds),
        sleep=timedelta(seconds=sleep),
        pool_label=pool_label,
    )
    now = read_time(at)
    with progress() as tell:
        if config_file is None and not source.files:
            config = _live_config(source.kube, configmap_name, namespace)
        else:
            config = _config(config_file, source.files)
        made = document(decide(read_objects(source, tell, Purpose.COMPACT), config, now, settings))
    if output == "json":
        click.echo(to_json(made))
    else:
        _show(made, every_node=every_node)


def _config(name: str | None, files: tuple[str, ...]) -> Config:
    """The configuration; standard input can be only one of the things to read."""
    if name is None:
        raise InputError.at("--config", "is missing; name the file of the configuration")
    if name == STDIN and STDIN in files:
        raise InputError.at("--config", "standard input can be read only once; give -f or --config a file")
    source = Source(name)
    return parse_config(read_source(source, sys.stdin.buffer), file=display_name(source))


def _live_config(kube: KubeContext, name: str, namespace: str) -> Config:
    """The configuration that the live cluster holds."""
    from karpool.live.compactor_config import read_compactor_config

    return ask_cluster(kube, lambda client: read_compactor_config(client, name=name, namespace=namespace))


# -- the table ----------------------------------------------------------------------------------------------------


def _show(made: Compaction, *, every_node: bool) -> None:
    """Print a decision: pools, nodes that would be drained, and why the others stay."""
    from karpool.report.terminal import Column, Screen

    screen = Screen(sys.stdout, plain=is_plain(sys.stdout))
    screen.line(screen.text("Compaction", "bold"), f" as of {made.time:%Y-%m-%d %H:%M:%S} UTC; requests, not usage")
    numbers = ("nodes", "under-used", "marked", "in progress")
    screen.table(
        (Column("pool"), Column("enabled"), *(Column(title, "right") for title in numbers)),
        (
            (name or "no pool", "yes" if pool.enabled else "no", *map(str, shown))
            for name, pool in made.pools.items()
            for shown in ((pool.nodes, pool.underutilized, pool.marked, pool.in_progress),)
        ),
    )
    _show_chosen(made.chosen, screen)
    staying = [node for node in made.nodes if node.change != "drain"]
    if every_node:
        _show_nodes(made.nodes, screen)
    elif staying:
        _show_reasons(staying, screen)


def _show_chosen(chosen: tuple[ChosenPart, ...], screen: "Screen") -> None:
    from karpool.report.terminal import Column

    if not chosen:
        screen.heading("No node would be drained now.")
        return
    screen.heading(f"{count(len(chosen), 'node')} would be cordoned and drained")
    columns = (Column("node"), Column("pool"), Column("pods moved", "right"), Column("where to", wraps=True))
    rows = []
    for node in chosen:
        lines = [f"{place.pod} {screen.arrow} {place.target or 'nowhere'}" for place in node.placements]
        lines += [f"warning: {reason.object}: {reason.message}" for reason in node.warnings]
        rows.append((node.node, node.pool, str(len(node.placements)), screen.lines(lines)))
    screen.table(columns, rows)


def _show_reasons(staying: list[NodePart], screen: "Screen") -> None:
    from karpool.report.terminal import Column

    groups: dict[str, list[NodePart]] = {}
    for node in staying:
        for code in dict.fromkeys(reason.code for reason in node.reasons):
            groups.setdefault(code, []).append(node)
    screen.heading(f"Why {count(len(staying), 'node')} stay" + ("s" if len(staying) == 1 else ""))
    screen.table(
        (Column("reason"), Column("nodes", "right"), Column("for example", wraps=True)),
        (
            (code, str(len(nodes)), f"{nodes[0].name}: {_said(nodes[0], code)}")
            for code, nodes in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
        ),
    )


def _show_nodes(nodes: tuple[NodePart, ...], screen: "Screen") -> None:
    from karpool.report.terminal import Column

    screen.heading(f"All {count(len(nodes), 'node')}")
    titles = (Column("node"), Column("pool"), Column("cpu", "right"), Column("memory", "right"), Column("marked"))
    screen.table(
        (*titles, Column("change"), Column("why it stays", wraps=True)),
        (
            (
                node.name,
                node.pool or "no pool",
                _percent(node.cpu_ratio),
                _percent(node.memory_ratio),
                "yes" if node.marked else "no",
                node.change or "",
                screen.lines(f"{reason.code}: {_said(node, reason.code)}" for reason in node.reasons),
            )
            for node in nodes
        ),
    )


def _said(node: NodePart, code: str) -> str:
    """The node's first reason of a code, led by the pod it is about."""
    reason = next(reason for reason in node.reasons if reason.code == code)
    return f"{reason.object}: {reason.message}" if reason.object.startswith("Pod ") else reason.message


def _percent(ratio: float | None) -> str:
    return "?" if ratio is None else f"{ratio:.0%}"
