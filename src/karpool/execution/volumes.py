"""Volume attachments that a draining node waits for."""

from datetime import datetime

from karpool.cluster.volumes import claims_of
from karpool.disruption.candidates.pods import drainable
from karpool.model.node import Node
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.reading.unreadable import UNKNOWN


def attached_volumes(objects: Objects, node: Node, pods: tuple[Pod, ...], now: datetime) -> int:
    """How many volumes of a node are still to be detached; volumes of pods that are not drained do not count."""
    names: set[str | None] = {
        attachment.spec.source.persistent_volume_name
        for attachment in objects.volume_attachments
        if attachment.spec.node_name == node.name and attachment.spec.source.persistent_volume_name
    }
    # Nobody knows which volume these attach; those whose node cannot be read may be on this one.
    unknown = sum(
        bool(attachment.unreadable) and attachment.spec.node_name in (node.name, UNKNOWN)
        for attachment in objects.volume_attachments
        if attachment.spec.source.persistent_volume_name not in names
    )
    if not names:
        return unknown
    volume_of = {claim.key: claim.spec.volume_name for claim in objects.persistent_volume_claims}
    for pod in pods:
        if not drainable(pod, now):
            names -= {volume_of.get(key) for key in claims_of(pod)}
    return len(names) + unknown
