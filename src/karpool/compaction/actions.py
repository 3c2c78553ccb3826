"""The changes that the compactor asks of a cluster; the actions of one node are carried out in order.

The rules of `execution.actions` hold: an action may be repeated, one whose object is gone is done, and what came of it
is read from the objects.
"""

import msgspec

from karpool.compaction.marks import Mark
from karpool.execution.actions import DeletePod, EvictPod, RecordEvent


class SetNodeState(msgspec.Struct, frozen=True):
    """Write a node's mark and, unless None, its cordon in one patch: one is never there without the other."""

    node: str
    mark: Mark
    unschedulable: bool | None = None


CompactionAction = SetNodeState | EvictPod | DeletePod | RecordEvent


def node_of(action: CompactionAction) -> str:
    """The node that an action is about; the compactor records events of nodes only."""
    return action.name if isinstance(action, RecordEvent) else action.node
