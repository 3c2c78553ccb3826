"""What a user may choose about decisions."""

from dataclasses import dataclass
from enum import StrEnum


class Order(StrEnum):
    """Which candidates come first: the least disruption, or the most money saved for the disruption."""

    COST = "cost"
    RATIO = "ratio"


class Partition(StrEnum):
    """What multi-node consolidation may combine: anything, one pool and architecture, or pools that are alike."""

    NONE = "none"
    POOL = "pool"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class DisruptionSettings:
    """Settings of a run of decisions; the defaults are those of the command line."""

    order: Order = Order.RATIO
    partition: Partition = Partition.AUTO
    search: str = "prefix"
    """The strategy of multi-node consolidation: a name of `search.STRATEGIES`."""
    spot_to_spot: bool = False
    spot_floor: int = 15
    ignore_budgets: bool = False
    annotated_budgets: bool = False
    complete_catalog: bool = False
