"""What a user may choose about decisions."""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.repair.policies import RepairPolicies

GLOBAL: Final = "global"
"""The search for the cheapest fleet that the rules allow."""
PREFIX: Final = "prefix"
"""The search that looks at sets of today's nodes in the order of their cost, and replaces them by at most one."""
MOST_EFFORT: Final = 3
MOST_EVICTION_PRICE: Final = 1e6
MOST_SEED: Final = 10**18
_MOST_NEW_NODES: Final = 100
_GLOBAL_EVICTION_PRICE: Final = 0.004


class Order(StrEnum):
    """Which candidates come first: the least disruption, or the most money saved for the disruption."""

    COST = "cost"
    RATIO = "ratio"


class Partition(StrEnum):
    """What multi-node consolidation may combine: anything, one pool and architecture, or pools that are alike."""

    NONE = "none"
    POOL = "pool"
    AUTO = "auto"


class Weights(StrEnum):
    """What a pool's weight means to a global search: a lower pool only where that saves money, or never."""

    PREFER = "prefer"
    STRICT = "strict"


class Scoring(StrEnum):
    """How the scheduler of the cluster scores nodes; `any`: nobody knows, and pods are taken to come where they fit."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class DisruptionSettings:
    """Settings of a run of decisions; the defaults are those of the command line."""

    order: Order = Order.RATIO
    partition: Partition = Partition.AUTO
    search: str = GLOBAL
    """The strategy of multi-node consolidation: a name of `search.STRATEGIES`."""
    effort: int = 2
    """How long a global search goes on, from 0 (interactive) to `MOST_EFFORT`."""
    eviction_price: float | None = None
    """What a consolidation must save, in $/h, for each eviction of a plain pod; None: as the search has it."""
    weights: Weights = Weights.PREFER
    scheduler: Scoring = Scoring.ANY
    """What scheduler to foresee."""
    seed: int = 0
    """Of the random choices of a global search."""
    spot_to_spot: bool = False
    spot_floor: int = 15
    ignore_budgets: bool = False
    annotated_budgets: bool = False
    complete_catalog: bool = False
    repair: RepairPolicies | None = None
    """Which nodes are unhealthy, and what is done about them; None: nothing."""
    legacy_repair: bool = False
    """Whether unhealthy nodes are deleted at once, as before repair was voluntary."""
    terminate_first_repair: bool = False
    """Whether an unhealthy node may go before its replacement can be launched, where nothing else is possible."""
    terminate_first_drift: bool = False
    """The same for a drifted node."""
    static_capacity: bool = True
    """Whether pools with `replicas` get and keep as many nodes."""
    node_overlays: bool = False
    """Whether NodeOverlays change prices and resources of instance types."""
    capacity_buffers: bool = True
    """Whether the room that CapacityBuffers ask for is kept."""
    pod_deletion_costs: bool = False
    """Whether pods get deletion costs by which a scale-down takes those of nodes that are to go."""
    brakes: BrakeSettings = field(default_factory=BrakeSettings)

    @property
    def effective_eviction_price(self) -> float:
        """The price of an eviction that counts: the one that was chosen, or that of the search."""
        if self.eviction_price is not None:
            return self.eviction_price
        return _GLOBAL_EVICTION_PRICE if self.search == GLOBAL else 0.0

    @property
    def by_deletion_cost(self) -> bool:
        """Whether the deletion cost of a pod says what its eviction costs: not where it says which node is to go."""
        return not self.pod_deletion_costs

    @property
    def most_new_nodes(self) -> int:
        """How many new nodes may take the place of a node that goes alone."""
        return _MOST_NEW_NODES if self.search == GLOBAL else 1


def is_eviction_price(value: float) -> bool:
    """Whether a number can be the price of an eviction."""
    return math.isfinite(value) and 0 <= value <= MOST_EVICTION_PRICE
