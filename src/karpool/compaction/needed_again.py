"""Scale-downs to give up because pods need the node again."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace as changed

from karpool.cluster.nodes import UNSCHEDULABLE, is_leaving
from karpool.compaction.drain_simulator import DrainSimulator
from karpool.compaction.nodes import NodeView
from karpool.compaction.reasons import CompactionReasonCode as Code
from karpool.model.node import Node
from karpool.model.objects import Objects
from karpool.model.reasons import Reason

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


def needed_again(objects: Objects, views: Sequence[NodeView]) -> dict[str, Reason]:
    """The scale-downs in progress whose node would take a pod that has no other place, each with the reason.

    The latest is given up first. Pods that no node would take are ignored.
    """
    checked = [view for view in views if view.config.check_fit]
    checked.sort(key=lambda view: (-(view.mark.updated or _EARLIEST).timestamp(), view.name))
    if not checked:
        return {}
    leaving = {view.name for view in views} | {node.name for node in objects.nodes if is_leaving(node)}
    unplaced = DrainSimulator(objects, leaving).unplaced
    reasons: dict[str, Reason] = {}
    for view in checked:
        if not unplaced:
            break
        uncordoned = _uncordon(objects, view.node)
        still = DrainSimulator(uncordoned, leaving - {view.name}).unplaced
        if len(still) < len(unplaced):
            pod = next(key for key in unplaced if key not in still)
            message = f"its pool needs it again: Pod {pod} has no other place"
            reasons[view.name] = Reason(Code.POOL_FILLED_UP, message, f"Node {view.name}")
            objects, unplaced, leaving = uncordoned, still, leaving - {view.name}
    return reasons


def _uncordon(objects: Objects, node: Node) -> Objects:
    taints = tuple(taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE.key)
    schedulable = changed(node, spec=changed(node.spec, unschedulable=False, taints=taints))
    return changed(objects, nodes=tuple(schedulable if other.name == node.name else other for other in objects.nodes))
