"""The options of brakes; they mean the same in every command that has them."""

from inspect import signature
from typing import Any, Final

import click

from karpool.disruption.brakes.settings import BrakeSettings

_DEFAULTS: Final = BrakeSettings()

BRAKE_OPTIONS: Final = (
    click.option(
        "--max-total-unready-percentage",
        metavar="PERCENT",
        type=click.FloatRange(0, 100),
        default=_DEFAULTS.most_unready_percent,
        help="Disrupt nothing while more of all nodes, or of the nodes of a zone, are not ready.",
    ),
    click.option(
        "--ok-total-unready-count",
        metavar="N",
        type=click.IntRange(min=0),
        default=_DEFAULTS.unready_nodes_allowed,
        help="So many unready nodes are no reason to stop, whatever part of all nodes they are.",
    ),
    click.option(
        "--zone-least-nodes",
        metavar="N",
        type=click.IntRange(min=1),
        default=_DEFAULTS.least_nodes_of_zone,
        help="Look at a zone alone if it has at least so many nodes.",
    ),
)


def take_brakes(given: dict[str, Any]) -> BrakeSettings:
    """Take what the options of brakes say out of what a command was given."""
    return _settings(**{name: given.pop(name) for name in signature(_settings).parameters})


def _settings(
    *, max_total_unready_percentage: float, ok_total_unready_count: int, zone_least_nodes: int
) -> BrakeSettings:
    return BrakeSettings(
        most_unready_percent=max_total_unready_percentage,
        unready_nodes_allowed=ok_total_unready_count,
        least_nodes_of_zone=zone_least_nodes,
    )
