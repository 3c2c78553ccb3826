"""The nodes that something unreadable bears on: the compactor leaves them alone."""

from collections.abc import Mapping

from msgspec.structs import replace

from karpool.cluster.seals import UnreadableIndex
from karpool.model.objects import Objects
from karpool.model.reasons import Reason


def sealed_nodes(objects: Objects) -> Mapping[str, Reason]:
    """By name of a node: what bears on it and cannot be read."""
    if not UnreadableIndex(objects):
        return {}
    # Most clusters have nothing unreadable, and need no snapshot for this.
    from karpool.cluster.snapshot import Snapshot

    snapshot = Snapshot(replace(objects, node_claims=(), node_pools=()))
    sealed = {snapshot.nodes.get(row).name: reason for row, reason in snapshot.seals.items()}
    return dict(sorted(sealed.items()))
