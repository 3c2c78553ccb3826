"""A node as decisions see it."""

from collections.abc import Sequence
from typing import NamedTuple

from karpool.catalog.instance_types import InstanceType
from karpool.cluster.nodes import StateNode
from karpool.model.labels import CAPACITY_TYPE, SPOT
from karpool.model.nodepool import NodePool


class Candidate(NamedTuple):
    """A node with everything that decisions ask about it; `cost` and `eviction_cost` are disruption, not money.

    `pods` are the rows of its pods that need another place if it goes. `by_ratio` sorts candidates: most money saved
    for the disruption first, then by name.
    """

    row: int
    name: str
    state: StateNode
    pool: NodePool | None
    pool_name: str
    entry: InstanceType | None
    price: float | None
    pods: tuple[int, ...]
    cost: float
    eviction_cost: float
    by_ratio: tuple[float, str]
    arch: str = ""

    @property
    def empty(self) -> bool:
        """Whether no pod on the node needs another place."""
        return not self.pods

    @property
    def spot(self) -> bool:
        """Whether it is spot capacity of a pool; of a group, nobody chooses what comes in its place."""
        return not self.state.group and self.state.labels.get(CAPACITY_TYPE) == SPOT

    @property
    def leaves_nothing(self) -> bool:
        """Whether nothing has to come in its place: no pod needs another one, and its pool does not keep a number."""
        return self.empty and (self.pool is None or not self.pool.static)


def price_of(candidates: Sequence[Candidate]) -> float:
    """What nodes cost together, as far as that is known."""
    return sum(candidate.price or 0.0 for candidate in candidates)
