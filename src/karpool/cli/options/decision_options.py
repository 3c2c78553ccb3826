"""The options of everything that decides; they mean the same in every command that has them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import wraps
from inspect import signature
from typing import Any, Final, TypeVar

import click

from karpool.cli.options.brake_options import BRAKE_OPTIONS, PAUSE_OPTION, take_brakes
from karpool.cli.options.input_options import with_options
from karpool.cli.options.option_types import EvictionPrice, OneOf, Seed, StrategyName, Whole
from karpool.cli.options.repair_options import (
    NODE_REPAIR,
    REPAIR_OPTION,
    TERMINATE_FIRST_DRIFT,
    TERMINATE_FIRST_REPAIR,
    chosen_policies,
)
from karpool.cluster.constraints import Preferences
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.settings import MOST_EFFORT, DisruptionSettings, Order, Partition, Scoring, Weights
from karpool.model.labels import BUDGETS
from karpool.model.scheduler_config import read_scheduler_config
from karpool.packing.options import MinValues, Options
from karpool.wire.problems import InputError, suggestion

R = TypeVar("R")
SPOT_TO_SPOT: Final = "SpotToSpotConsolidation"
RESERVED_CAPACITY: Final = "ReservedCapacity"
CAPACITY_BUFFER: Final = "CapacityBuffer"
STATIC_CAPACITY: Final = "StaticCapacity"
NODE_OVERLAY: Final = "NodeOverlay"
POD_DELETION_COST: Final = "PodDeletionCostManagement"
# Karpenter's feature gates. Pools with `replicas` and buffers say themselves whether anybody wants them.
GATES: Final = {
    SPOT_TO_SPOT: False,
    RESERVED_CAPACITY: True,
    NODE_REPAIR: False,
    TERMINATE_FIRST_REPAIR: False,
    TERMINATE_FIRST_DRIFT: False,
    STATIC_CAPACITY: True,
    NODE_OVERLAY: False,
    CAPACITY_BUFFER: True,
    POD_DELETION_COST: False,
}

# For questions only.
_HYPOTHETICAL: Final = (
    click.option("--at", metavar="TIME", help="Decide as of this time (RFC 3339) instead of now."),
    click.option("--ignore-budgets", is_flag=True, help="Answer as if there were no disruption budgets."),
    click.option(
        "--annotated-budgets",
        is_flag=True,
        help=f"Take budgets from the pools' annotation {BUDGETS}, and leave pools without it alone, as "
        "`karpool run --provider karpenter` does.",
    ),
)


def _search_options(*, default: str | None) -> tuple[Any, ...]:
    """The options of the search; `default` says where values that are not chosen come from, if not from here."""
    own = DisruptionSettings()
    if default is None:
        values: dict[str, Any] = {"search": own.search, "effort": own.effort, "weights": own.weights.value}
        ending, price = "", "  [default: 0.004 with a global search, 0 with prefixes]"
    else:
        values = dict.fromkeys(("search", "effort", "weights"))
        ending = price = f"  [default: {default}]"
    return (
        click.option(
            "--search",
            metavar="NAME",
            type=StrategyName(),
            default=values["search"],
            help=f"`global` looks for the cheapest fleet, `prefix` at what Karpenter looks at.{ending}",
        ),
        click.option(
            "--effort",
            metavar="N",
            type=Whole(0, MOST_EFFORT),
            default=values["effort"],
            help=f"How long a global search goes on: 0 for an answer at once, {MOST_EFFORT} for the last cent.{ending}",
        ),
        click.option(
            "--eviction-price",
            metavar="PRICE",
            type=EvictionPrice(),
            help=f"What a consolidation must save, in $/h, for each pod that it evicts.{price}",
        ),
        click.option(
            "--weights",
            type=OneOf(choice.value for choice in Weights),
            default=values["weights"],
            help=f"Whether a global search may use a pool of lower weight where that saves money, or never.{ending}",
        ),
    )


def _devices_option(*, default: str | None) -> Any:
    return click.option(
        "--ignore-dra-requests",
        metavar="BOOL",
        type=click.BOOL,
        default=True if default is None else None,
        help="Whether pods with dynamic resource claims are left alone; `false` has the devices of nodes looked at."
        + ("" if default is None else f"  [default: {default}]"),
    )


# For all decisions.
_RULES: Final = (
    *_search_options(default=None),
    click.option(
        "--scheduler",
        type=OneOf(choice.value for choice in Scoring),
        default=Scoring.ANY.value,
        help="How kube-scheduler scores nodes, so that commands are foreseen as it carries them out; `any` takes pods "
        "to come where a plan has places for them.",
    ),
    click.option(
        "--partition",
        type=OneOf(choice.value for choice in Partition),
        default=Partition.AUTO.value,
        help="Which nodes may be combined: any, those of one pool and architecture, or also those of equal pools.",
    ),
    click.option(
        "--order",
        type=OneOf(choice.value for choice in Order),
        default=DisruptionSettings().order.value,
        help="Which candidates come first: the least disruption, or the most saved for the disruption.",
    ),
    click.option(
        "--feature-gates",
        metavar="GATE=BOOL,…",
        default="",
        show_default=False,
        help=f"Switch features by Karpenter's names, such as {SPOT_TO_SPOT}=true.",
    ),
    REPAIR_OPTION,
    click.option(
        "--spot-floor",
        metavar="N",
        type=Whole(min=1),
        default=DisruptionSettings().spot_floor,
        help="How many cheaper spot types there must be to replace one spot node by another.",
    ),
    click.option(
        "--preference-policy",
        type=OneOf(["Respect", "Ignore"]),
        default="Respect",
        help="Treat preferences of pods as required until they cannot be met, or ignore them.",
    ),
    click.option(
        "--min-values-policy",
        type=OneOf(choice.value for choice in MinValues),
        default=MinValues.STRICT.value,
        help="When fewer values are left than a pool's minValues requires: refuse, or relax it.",
    ),
    _devices_option(default=None),
    click.option(
        "--scheduler-config",
        metavar="YAML",
        default="",
        show_default=False,
        help="Topology spread constraints that the scheduler gives to pods without any, as Karpenter takes them: a map "
        "with podTopologySpread.defaultConstraints.",
    ),
    click.option(
        "--seed",
        metavar="N",
        type=Seed(),
        default=0,
        help="Orders pools of equal weight and steers a global search; the same seed gives the same answer.",
    ),
)


@dataclass(frozen=True, slots=True)
class Choices:
    settings: DisruptionSettings
    options: Options
    now: datetime
    own_repair_policies: bool = False
    """Whether the user said which policies repair follows."""


def decision_options(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the options of decisions; it gets what they say as `choices`."""
    return _with(command, (*_HYPOTHETICAL, PAUSE_OPTION, *_RULES))


def rule_options(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command that acts the options of decisions, without those that only suppose something."""
    return _with(command, _RULES)


def search_options(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the options of the search only; it gets those that were chosen as `decisions`."""

    @wraps(command)
    def with_decisions(*args: Any, **given: Any) -> R:
        names = ("search", "effort", "eviction_price", "weights", "ignore_dra_requests")
        chosen = {name: value for name in names if (value := given.pop(name)) is not None}
        return command(*args, decisions=chosen, **given)

    own = "as the policies say"
    return with_options(with_decisions, (*_search_options(default=own), _devices_option(default=own)))


def _with(command: Callable[..., R], options: tuple[Any, ...]) -> Callable[..., R]:
    @wraps(command)
    def with_choices(*args: Any, **given: Any) -> R:
        values = {name: given.pop(name) for name in signature(_choices).parameters if name in given}
        return command(*args, choices=_choices(take_brakes(given), **values), **given)

    return with_options(with_choices, (*options, *BRAKE_OPTIONS))


def _choices(
    brakes: BrakeSettings,
    *,
    search: str,
    effort: int,
    eviction_price: float | None,
    weights: str,
    scheduler: str,
    partition: str,
    order: str,
    feature_gates: str,
    repair_file: str | None,
    spot_floor: int,
    preference_policy: str,
    min_values_policy: str,
    ignore_dra_requests: bool,
    scheduler_config: str,
    seed: int,
    at: str | None = None,
    ignore_budgets: bool = False,
    annotated_budgets: bool = False,
) -> Choices:
    gates = read_gates(feature_gates)
    brakes = replace(brakes, opt_in=annotated_budgets, launched_by_others=annotated_budgets)
    return Choices(
        settings=DisruptionSettings(
            order=Order(order),
            partition=Partition(partition),
            search=search,
            effort=effort,
            eviction_price=eviction_price,
            weights=Weights(weights),
            scheduler=Scoring(scheduler),
            seed=seed,
            spot_to_spot=gates[SPOT_TO_SPOT],
            spot_floor=spot_floor,
            static_capacity=gates[STATIC_CAPACITY],
            capacity_buffers=gates[CAPACITY_BUFFER],
            node_overlays=gates[NODE_OVERLAY],
            pod_deletion_costs=gates[POD_DELETION_COST],
            ignore_budgets=ignore_budgets,
            annotated_budgets=annotated_budgets,
            repair=chosen_policies(gates, repair_file),
            terminate_first_repair=gates[TERMINATE_FIRST_REPAIR],
            terminate_first_drift=gates[TERMINATE_FIRST_DRIFT],
            brakes=brakes,
        ),
        options=Options(
            preferences=Preferences(preference_policy.lower()),
            min_values=MinValues(min_values_policy),
            seed=seed,
            reserved_capacity=gates[RESERVED_CAPACITY],
            supply_annotation=BUDGETS if brakes.opted_in_only else None,
            ignore_dra_requests=ignore_dra_requests,
            default_spread=read_scheduler_config(
                scheduler_config, "--scheduler-config"
            ).pod_topology_spread.default_constraints,
        ),
        now=read_time(at),
        own_repair_policies=repair_file is not None,
    )


def read_time(text: str | None, option: str = "--at") -> datetime:
    """A moment as a user writes it, or now."""
    if text is None:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError.at(option, f"{text!r} is not a time; write RFC 3339, such as 2026-11-15T22:00:00Z") from None
    if moment.tzinfo is None:
        raise InputError.at(option, f"{text!r} has no time zone; add Z for UTC, or an offset such as +01:00")
    return moment.astimezone(UTC)


def read_gates(text: str) -> dict[str, bool]:
    """Feature gates as `Name=true,Other=false`; those not named keep their defaults."""
    gates = dict(GATES)
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        if name not in gates:
            known = f"there are {', '.join(gates)}{suggestion(name, gates)}"
            raise InputError.at("--feature-gates", f"there is no gate {name!r}; {known}")
        if not equals or value.lower() not in ("true", "false"):
            raise InputError.at("--feature-gates", f"{part!r} should be {name}=true or {name}=false")
        gates[name] = value.lower() == "true"
    return gates
