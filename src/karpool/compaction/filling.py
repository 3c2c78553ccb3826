"""When a pool fills up again: pods need the room of a node that is on its way out."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace as changed

from karpool.cluster.nodes import UNSCHEDULABLE
from karpool.compaction.nodes import NodeLook, is_deleting
from karpool.compaction.reasons import CompactionReasonCode
from karpool.compaction.room import Room
from karpool.model.node import Node
from karpool.model.objects import Objects
from karpool.model.reasons import Reason

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


def filled_up(objects: Objects, looks: Sequence[NodeLook]) -> dict[str, Reason]:
    """Which scale-downs in progress to give up, because pods without a place would find one there; and why.

    The last that began is given up first. Pods that no node would take are ignored.
    """
    checked = sorted((look for look in looks if look.config.check_fit), key=_latest_first)
    if not checked:
        return {}
    leaving = {look.name for look in looks} | {node.name for node in objects.nodes if is_deleting(node)}
    stranded = Room(objects, leaving).stranded
    found: dict[str, Reason] = {}
    for look in checked:
        if not stranded:
            break
        back = _with_back(objects, look.node)
        still = Room(back, leaving - {look.name}).stranded
        if len(still) < len(stranded):
            pod = next(key for key in stranded if key not in still)
            said = f"its pool needs it again: Pod {pod} has no other place"
            found[look.name] = Reason(CompactionReasonCode.POOL_FILLED_UP, said, f"Node {look.name}")
            objects, stranded, leaving = back, still, leaving - {look.name}
    return found


def _latest_first(look: NodeLook) -> tuple[float, str]:
    return -(look.mark.updated or _EARLIEST).timestamp(), look.name


def _with_back(objects: Objects, node: Node) -> Objects:
    """The objects with a node that takes pods again."""
    taints = tuple(taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE.key)
    open_ = changed(node, spec=changed(node.spec, unschedulable=False, taints=taints))
    return changed(objects, nodes=tuple(open_ if each.name == node.name else each for each in objects.nodes))
