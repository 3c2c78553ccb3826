"""Volumes of a node that drains: it may go when those of its pods are detached."""

from datetime import datetime

from karpool.disruption.pods import drainable
from karpool.model.node import Node
from karpool.model.objects import Objects
from karpool.model.pod import Pod, Volume


def attached(objects: Objects, node: Node, pods: tuple[Pod, ...], now: datetime) -> int:
    """How many volumes a node still has to let go; those of pods that stay to the end do not count."""
    names = {
        attachment.spec.source.persistent_volume_name
        for attachment in objects.volume_attachments
        if attachment.spec.node_name == node.name and attachment.spec.source.persistent_volume_name
    }
    if not names:
        return 0
    volume_of = {claim.key: claim.spec.volume_name for claim in objects.persistent_volume_claims}
    for pod in pods:
        if not drainable(pod, now):
            names -= {volume_of.get(_claim_key(pod, volume)) for volume in pod.spec.volumes}
    return len(names)


def _claim_key(pod: Pod, volume: Volume) -> str:
    """The claim behind a volume; that of an ephemeral one is named after pod and volume."""
    named = volume.persistent_volume_claim
    name = named.claim_name if named is not None else f"{pod.name}-{volume.name}"
    return f"{pod.metadata.namespace}/{name}"
