"""The options of brakes; they mean the same in every command that has them."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from inspect import signature
from typing import Any, Final, TypeVar

import click

from karpool.cli.options.option_types import Length, Percentage, Whole
from karpool.disruption.brakes.readiness import Pacing
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.model.labels import BUDGETS, PAUSE_MAP
from karpool.wire.duration import Duration

F = TypeVar("F", bound=Callable[..., Any])
_DEFAULTS: Final = BrakeSettings()


def _duration(name: str, default: timedelta, text: str) -> Callable[[F], F]:
    return click.option(name, metavar="DURATION", type=Length(), default=_written(default), help=text)


def _number(name: str, default: int | None, text: str, *, least: int = 0) -> Callable[[F], F]:
    return click.option(name, metavar="N", type=Whole(min=least), default=default, help=text)


def _percentage(name: str, default: float, text: str) -> Callable[[F], F]:
    return click.option(name, metavar="PERCENT", type=Percentage(), default=default, help=text)


def _written(length: timedelta) -> str:
    return str(Duration(length // timedelta(microseconds=1) * 1000))


HEALTH_OPTIONS: Final = (
    _percentage(
        "--max-total-unready-percentage",
        _DEFAULTS.most_unready_percent,
        "Disrupt nothing while more of all nodes, or of the nodes of a zone, are not ready.",
    ),
    _number(
        "--ok-total-unready-count",
        _DEFAULTS.unready_nodes_allowed,
        "So many unready nodes are no reason to stop, whatever part of all nodes they are.",
    ),
    _number(
        "--zone-least-nodes",
        _DEFAULTS.least_nodes_of_zone,
        "Look at a zone alone if it has at least so many nodes.",
        least=1,
    ),
)
"""When a cluster is unhealthy."""
RATE_OPTIONS: Final = (
    _number(
        "--max-nodes-per-hour",
        _DEFAULTS.most_nodes_per_hour,
        "Disrupt no more nodes than this within an hour.  [default: any number]",
    ),
    _number(
        "--max-evictions-per-hour",
        _DEFAULTS.most_evictions_per_hour,
        "Evict no more pods than this within an hour.  [default: any number]",
    ),
)
"""How much may happen within an hour."""
PAUSE_OPTION: Final = click.option(
    "--pause-namespace",
    metavar="NAMESPACE",
    default=_DEFAULTS.pause_namespace,
    help=f"Where the ConfigMap {PAUSE_MAP} is looked for, which pauses everything.",
)
"""For questions; whatever runs looks in its own namespace."""
BRAKE_OPTIONS: Final = (
    click.option(
        "--all-pools",
        is_flag=True,
        help=f"Beside Karpenter: act on all pools, not only on those with the annotation {BUDGETS}.",
    ),
    *HEALTH_OPTIONS,
    _duration(
        "--cool-down-after-failure",
        _DEFAULTS.after_failure,
        "How long to leave the nodes and the pool of a failed command alone; twice as long after each further failure.",
    ),
    _duration(
        "--longest-cool-down", _DEFAULTS.longest_after_failure, "The longest that failures in a row come to, at most."
    ),
    *RATE_OPTIONS,
    _number(
        "--harm-pods",
        _DEFAULTS.harmed_pods,
        "Stop a pool when so many pods that were moved from its nodes do not run; 0: never.",
    ),
    _number(
        "--harm-pods-everywhere",
        _DEFAULTS.harmed_pods_everywhere,
        "Stop everything when there are so many of them in all, or when two pools are stopped.",
        least=1,
    ),
    _duration(
        "--harm-after", _DEFAULTS.harm_after, "How long a moved pod may take to run, and an eviction to be allowed."
    ),
    _duration("--harm-cool-down", _DEFAULTS.harm_cool_down, "How long all pods have to run before a pool goes on."),
    _duration("--longest-harm", _DEFAULTS.longest_harm, "When a stopped pool goes on though its pods do not run."),
    _duration(
        "--cool-down-after-scale-up",
        _DEFAULTS.after_scale_up,
        "How long to leave a pool alone after it grew for pods that waited.",
    ),
    _duration(
        "--cool-down-after-replacement",
        _DEFAULTS.after_replacement,
        "Beside Karpenter: how long to keep a node that a command launched, unless it gets empty.",
    ),
    _duration(
        "--cool-down-after-failed-launch",
        _DEFAULTS.after_failed_launch,
        "How long to leave a pool alone after a launch of it failed.",
    ),
    _duration(
        "--claims-answered-within",
        _DEFAULTS.answered_within,
        "Beside Karpenter: begin nothing that needs it while it leaves a NodeClaim alone for longer; 0s: do not look.",
    ),
    _percentage(
        "--max-workload-away-percentage",
        _DEFAULTS.pacing.workload_percent,
        "Drain no further while more pods of a workload, at least one, are not ready again elsewhere; 0: do not wait.",
    ),
    _percentage(
        "--max-pods-away-percentage",
        _DEFAULTS.pacing.pods_percent,
        f"Drain no further while more of all pods, at least {_DEFAULTS.pacing.least_pods}, are not; 0: do not wait.",
    ),
    _duration(
        "--replacement-ready-within",
        _DEFAULTS.pacing.ready_within,
        "How long a drain waits for the replacement of a pod to be ready; 0s: do not wait.",
    ),
)


def drain_settings(given: Mapping[str, Any]) -> BrakeSettings:
    """What the options say of unhealthy clusters and of rates; all else has its defaults."""
    return BrakeSettings(
        most_unready_percent=given["max_total_unready_percentage"],
        unready_nodes_allowed=given["ok_total_unready_count"],
        least_nodes_of_zone=given["zone_least_nodes"],
        most_nodes_per_hour=given["max_nodes_per_hour"],
        most_evictions_per_hour=given["max_evictions_per_hour"],
    )


def take_brakes(given: dict[str, Any]) -> BrakeSettings:
    """Take what the options of brakes say out of what a command was given."""
    return _settings(**{name: given.pop(name) for name in signature(_settings).parameters if name in given})


def _settings(
    *,
    all_pools: bool,
    max_total_unready_percentage: float,
    ok_total_unready_count: int,
    zone_least_nodes: int,
    cool_down_after_failure: timedelta,
    longest_cool_down: timedelta,
    max_nodes_per_hour: int | None,
    max_evictions_per_hour: int | None,
    harm_pods: int,
    harm_pods_everywhere: int,
    harm_after: timedelta,
    harm_cool_down: timedelta,
    longest_harm: timedelta,
    cool_down_after_scale_up: timedelta,
    cool_down_after_replacement: timedelta,
    cool_down_after_failed_launch: timedelta,
    claims_answered_within: timedelta,
    max_workload_away_percentage: float,
    max_pods_away_percentage: float,
    replacement_ready_within: timedelta,
    pause_namespace: str = _DEFAULTS.pause_namespace,
) -> BrakeSettings:
    return BrakeSettings(
        pause_namespace=pause_namespace,
        all_pools=all_pools,
        most_unready_percent=max_total_unready_percentage,
        unready_nodes_allowed=ok_total_unready_count,
        least_nodes_of_zone=zone_least_nodes,
        after_failure=cool_down_after_failure,
        longest_after_failure=longest_cool_down,
        most_nodes_per_hour=max_nodes_per_hour,
        most_evictions_per_hour=max_evictions_per_hour,
        harmed_pods=harm_pods,
        harmed_pods_everywhere=harm_pods_everywhere,
        harm_after=harm_after,
        harm_cool_down=harm_cool_down,
        longest_harm=longest_harm,
        after_scale_up=cool_down_after_scale_up,
        after_replacement=cool_down_after_replacement,
        after_failed_launch=cool_down_after_failed_launch,
        answered_within=claims_answered_within,
        pacing=Pacing(
            workload_percent=max_workload_away_percentage,
            pods_percent=max_pods_away_percentage,
            ready_within=replacement_ready_within,
        ),
    )
