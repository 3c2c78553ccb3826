"""Commands: which nodes go, what comes instead, and where every pod moves."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from karpool.disruption.candidates.pdbs import Waves
from karpool.model.requirements import Requirements


class Method(StrEnum):
    """How a command was found."""

    REPAIR = "Repair"
    EMPTINESS = "Emptiness"
    DRIFT = "Drift"
    MULTI_NODE = "MultiNodeConsolidation"
    SINGLE_NODE = "SingleNodeConsolidation"


class Cause(StrEnum):
    """Why nodes are disrupted; budgets name these."""

    EMPTY = "Empty"
    DRIFTED = "Drifted"
    UNDERUTILIZED = "Underutilized"
    UNHEALTHY = "Unhealthy"


class TerminateFirst(StrEnum):
    """Why nodes go before what replaces them can be launched."""

    NO_RESERVED_CAPACITY = "no-reserved-capacity"
    STATIC_AT_LIMIT = "static-at-limit"


@dataclass(frozen=True, slots=True)
class Replacement:
    """A node to launch: its pool, the types it may have (cheapest first), and what the first of them costs."""

    pool: str
    requirements: Requirements
    instance_types: tuple[str, ...]
    capacity_type: str
    zones: tuple[str, ...]
    price: float | None
    drivers: tuple[str, ...] = ()
    """The drivers whose devices its pods count on."""


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that needs another place; `target` is a node's name or the number of a replacement."""

    pod: str
    source: str | None
    target: str | int
    leaving: bool = False
    headroom: bool = False
    """Whether the pod only stands for room."""


@dataclass(frozen=True, slots=True)
class Command:
    """Nodes to remove together, what replaces them, and where their pods go; or one to reboot.

    Pods that are `ended` must not be disturbed, and are all the same when the node's termination grace period is over.
    """

    method: Method
    cause: Cause
    nodes: tuple[str, ...]
    replacements: tuple[Replacement, ...] = ()
    moves: tuple[Move, ...] = ()
    """Places that there are for all pods, which a scheduler need not choose."""
    scheduled: tuple[Move, ...] = ()
    """Where a scheduler will put the pods, as far as that is foreseen."""
    price: float = 0.0
    unpriced: int = 0
    disruption_cost: float = 0.0
    waves: Mapping[str, Waves] = field(default_factory=dict)
    ended: tuple[str, ...] = ()
    drain_bound: timedelta | None = None
    """How long pods may take to leave; None: as the NodeClaims say."""
    reboot: str = ""
    """Why its node is rebooted, and stays; empty for a command that removes nodes."""
    terminate_first: TerminateFirst | None = None
    """Why nothing can be launched before its nodes are gone, if that is so."""
    refills: tuple[Replacement, ...] = ()
    """What ordinary provisioning launches once its nodes are gone, where they go first."""
    displaced: tuple[str, ...] = ()
    """The pods that these do not hold: they go where room is left then, if any is."""

    @property
    def decision(self) -> str:
        """Whether nodes are only deleted, replaced before or after they go, or rebooted."""
        if self.reboot:
            return "reboot"
        if self.terminate_first is not None:
            return "terminate-first"
        return "replace" if self.replacements else "delete"

    @property
    def new_nodes(self) -> tuple[Replacement, ...]:
        """All nodes that come, whether the command launches them or its pools do; moves count them in this order."""
        return self.replacements + self.refills

    @property
    def launched(self) -> str:
        """The cheapest type of each new node, in words; equal ones are counted."""
        counts = Counter(new.instance_types[0] for new in self.new_nodes)
        return ", ".join(name if number == 1 else f"{number} {name}" for name, number in counts.items())

    @property
    def places(self) -> tuple[Move, ...]:
        """Where pods are expected to come."""
        return self.scheduled or self.moves

    @property
    def evicted(self) -> tuple[str, ...]:
        """The pods that the command evicts from a node so that they start on another."""
        real = (move for move in self.moves if not move.headroom)
        moved = (move.pod for move in real if move.source is not None and not move.leaving)
        return (*moved, *self.displaced)

    @property
    def savings(self) -> float:
        """What the command saves an hour, at the prices that are known."""
        return self.price - sum(new.price or 0.0 for new in self.new_nodes)
