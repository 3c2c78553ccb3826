"""`karpool run`: the controller on a Kubernetes cluster."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from karpool.cli.options.catalog_options import CatalogOpener, catalog_options
from karpool.cli.options.decision_options import Choices, rule_options
from karpool.cli.options.input_options import KubeContext, kube_options, with_options
from karpool.cli.options.option_types import Whole
from karpool.cli.service import LOG_OPTIONS, NOTIFY_OPTIONS, run_service, take_webhook
from karpool.cluster.node_groups import GroupOptions
from karpool.operator.providers import default_catalog
from karpool.wire.duration import parse_duration
from karpool.wire.problems import InputError

if TYPE_CHECKING:
    from karpool.operator.settings import RunSettings

F = TypeVar("F", bound=Callable[..., Any])

EPILOG: Final = """\b
WHAT IT DOES
  Watches the cluster, launches nodes for pending pods, and removes nodes that are
  empty, have drifted or whose pods fit on cheaper ones: within budgets, and never
  against a PodDisruptionBudget. All progress is kept on the objects, so it may be
  killed and started at any moment. Without --act it is a dry run: it decides and
  reports, and writes nothing.
\b
PROVIDERS
  kwok       nodes are Node objects and nothing else; for tests and trials with KWOK
  karpenter  Karpool decides, and an installed Karpenter launches and terminates instances.
             Switch Karpenter's own disruption off in each NodePool with
               budgets: [{nodes: "0"}]
             and write the budgets that Karpool goes by as JSON in the annotation
             karpool.sh/budgets of the NodePool. Pools without it are left alone.
\b
WHERE TO LOOK
  /metrics at --metrics-address, /healthz and /readyz at --health-address, Events on
  nodes, one line of JSON for each decision in --journal, the log on standard error,
  and a web page at --ui.
\b
ENVIRONMENT
  Every option can be given as KARPOOL_ and its name: KARPOOL_ACT=true.
\b
EXAMPLES
  karpool run --provider karpenter               # what would it do? writes nothing
  karpool run --provider karpenter --act --journal /var/log/karpool/decisions.jsonl
  karpool crds | kubectl apply -f -              # where there is no Karpenter: a trial
  karpool run --provider kwok --act              #   with nodes that KWOK simulates
\b
EXIT STATUS
  0  stopped by SIGTERM or SIGINT, the lease released
  1  the system failed
  2  a wrong option, or no cluster
"""


class Seconds(click.ParamType[float]):
    """A length of time such as 10s, 1m30s or 500ms, as seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            length = parse_duration(str(value)).delta
        except ValueError:
            length = None
        if length is None or length.total_seconds() <= 0:
            self.fail(f"{value!r} is not a length of time; write something like 10s", param, ctx)
        return length.total_seconds()


def _duration(name: str, default: str, text: str) -> Callable[[F], F]:
    return click.option(name, metavar="DURATION", type=Seconds(), default=default, help=text)


_OPTIONS: Final = (
    click.option(
        "--provider",
        metavar="NAME",
        default="karpenter",
        help="Who starts and terminates instances: `karpenter`, `kwok`, or a name that an installed package offers.",
    ),
    click.option("--act", is_flag=True, help="Carry decisions out. Without it nothing is written to the cluster."),
    click.option("--dry-run", is_flag=True, help="Decide and report, but write nothing; so it is without --act, too."),
    click.option("--lease-name", metavar="NAME", default="karpool", help="The Lease that says which replica leads."),
    click.option("--lease-namespace", metavar="NAMESPACE", default="karpool", help="Where that Lease is."),
    click.option("--leader-elect/--no-leader-elect", default=True, help="Lead only with the Lease."),
    click.option(
        "--metrics-address",
        metavar="HOST:PORT",
        default="127.0.0.1:8080",
        help="Where to serve /metrics; :8080 for all interfaces, 0 to serve nothing.",
    ),
    click.option(
        "--health-address", metavar="HOST:PORT", default="127.0.0.1:8081", help="Where to serve /healthz and /readyz."
    ),
    click.option(
        "--ui",
        metavar="HOST:PORT",
        default="0",
        help="Where to serve the console, such as 127.0.0.1:8088; beyond localhost only with a token, as /metrics.",
    ),
    click.option(
        "--journal",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write each decision, with the reasons for everything rejected, as a line of JSON.",
    ),
    click.option(
        "--journal-size",
        metavar="MIB",
        type=Whole(min=1),
        default=64,
        help="Begin a new journal file at this size.",
    ),
    click.option(
        "--journal-files",
        metavar="N",
        type=Whole(min=0),
        default=5,
        help="How many old journal files to keep.",
    ),
    click.option(
        "--legacy-node-repair",
        is_flag=True,
        help="With the gate NodeRepair: delete unhealthy nodes at once, without budgets and replacements beforehand.",
    ),
    *NOTIFY_OPTIONS,
    *LOG_OPTIONS,
    _duration("--batch-idle-duration", "1s", "Launch nodes when no further pod has become pending for this long."),
    _duration("--batch-max-duration", "10s", "Launch nodes after this long in any case."),
    _duration("--poll-interval", "10s", "How often to look for nodes that can be removed."),
    _duration("--validation-delay", "15s", "How long a decision must stay valid before it is executed."),
)


@click.command(epilog=EPILOG, context_settings={"auto_envvar_prefix": "KARPOOL"})
@partial(with_options, options=_OPTIONS)
@kube_options
@catalog_options
@rule_options
def run(*, kube: KubeContext, catalog_opener: CatalogOpener, choices: Choices, **given: Any) -> NoReturn:
    """Run the controller: provision, consolidate, drain and terminate, until it is stopped."""
    from karpool.cli.console_decider import ConsoleDecider
    from karpool.kube.kubeconfig import find_target
    from karpool.observability.serving import Address
    from karpool.operator.operator import Operator
    from karpool.web.console import Console
    from karpool.web.controller_source import ControllerSource
    from karpool.web.pages import console_pages

    own_catalog = default_catalog(given["provider"])
    if own_catalog is not None and catalog_opener.source is None:
        catalog_opener = replace(catalog_opener, source=own_catalog)
    settings = _settings(given, choices, complete=catalog_opener.complete(kwok=given["provider"] == "kwok"))
    target = find_target(kube.context, kube.kubeconfig)
    source = ControllerSource(target.context or "cluster")
    pages = console_pages(Console([source]), Address.read(given["ui"], "--ui"))
    operator = Operator(settings, target, catalog_opener.for_cluster, pages=pages)
    decided = replace(choices, settings=operator.decisions, options=operator.placing)
    source.follow(operator, ConsoleDecider(catalog_opener, decided, GroupOptions(), moves=True))
    run_service(operator.run, settings.shutdown_timeout, settings.log_format, settings.log_level)


def _settings(given: dict[str, Any], choices: Choices, *, complete: bool) -> "RunSettings":
    from karpool.controller.ports import Intervals
    from karpool.observability.logs import LogFormat, LogLevel
    from karpool.observability.serving import Address
    from karpool.operator.journal import JournalSettings
    from karpool.operator.settings import LeaseSettings, RunSettings

    webhook = take_webhook(given)
    if given["legacy_node_repair"] and choices.settings.repair is None:
        raise InputError.at("--legacy-node-repair", "means nothing without --feature-gates NodeRepair=true")
    if given["act"] and given["dry_run"]:
        raise InputError.at("--dry-run", "does not go with --act; leave one of them out")
    if given["batch_idle_duration"] > given["batch_max_duration"]:
        raise InputError.at("--batch-idle-duration", "is longer than --batch-max-duration; make it shorter")
    return RunSettings(
        provider=given["provider"],
        dry_run=given["dry_run"] or not given["act"],
        decisions=replace(choices.settings, complete_catalog=complete, legacy_repair=given["legacy_node_repair"]),
        own_repair_policies=choices.own_repair_policies,
        options=choices.options,
        intervals=Intervals(
            poll=given["poll_interval"],
            patience=given["poll_interval"],
            validation=given["validation_delay"],
            batch_idle=given["batch_idle_duration"],
            batch_most=given["batch_max_duration"],
        ),
        lease=LeaseSettings(
            name=given["lease_name"] if given["leader_elect"] else None, namespace=given["lease_namespace"]
        ),
        journal=JournalSettings(
            path=given["journal"], largest=given["journal_size"] * 2**20, old_files=given["journal_files"]
        ),
        metrics_address=Address.read(given["metrics_address"], "--metrics-address"),
        health_address=Address.read(given["health_address"], "--health-address"),
        webhook=webhook,
        log_format=LogFormat(given["log_format"]),
        log_level=LogLevel(given["log_level"]),
    )
