"""The life of NodeClaims that nobody has deleted: registered, initialized, marked, given up when their time is over.

Launching is the provider's part: it gives a claim its provider id, size and labels, and the condition Launched.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final, NamedTuple

from karpool.catalog.instance_types import Catalog
from karpool.execution.actions import Action
from karpool.execution.expiry import end_of_life
from karpool.execution.marks import mark_consolidatable, mark_drifted
from karpool.execution.registration import follow
from karpool.execution.settings import ExecutionSettings
from karpool.execution.state import State
from karpool.execution.turn import Turn
from karpool.model.labels import NODEPOOL
from karpool.model.objects import Objects

_NO_MEMORY: Final = State()


class Lifecycle(NamedTuple):
    """What is to be done for claims now, and when to look again even if no object changes."""

    actions: tuple[Action, ...]
    wake: datetime | None


def lifecycle(
    objects: Objects,
    now: datetime,
    *,
    catalog: Catalog | None = None,
    only: Collection[str] | None = None,
    settings: ExecutionSettings | None = None,
) -> Lifecycle:
    """The next actions in the life of every claim that nobody has deleted, or of those named by `only`.

    Pass a catalogue only if it lists every type of the provider: a node of a type that it lacks counts as drifted.
    """
    turn = Turn(objects, _NO_MEMORY, now, settings or ExecutionSettings())
    pools = {pool.name: pool for pool in objects.node_pools}
    for claim in objects.node_claims:
        if claim.metadata.deletion_timestamp is not None or (only is not None and claim.name not in only):
            continue
        if end_of_life(turn, claim):
            continue
        follow(turn, claim)
        pool = pools.get(claim.metadata.labels.get(NODEPOOL, ""))
        mark_consolidatable(turn, claim, pool)
        mark_drifted(turn, claim, pool, catalog)
    return Lifecycle(turn.actions, turn.wake)
