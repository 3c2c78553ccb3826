"""Whose a pod is: the workload that makes it, as people know it."""

import re
from typing import Final, NamedTuple

from karpool.model.pod import Pod

TEMPLATE_HASH: Final = "pod-template-hash"
_MINUTE: Final = re.compile(r"-\d{8,10}")
"""What the controller of a CronJob puts behind its name: the minute for which a Job was due."""


class OwningWorkload(NamedTuple):
    """What makes pods: a Deployment rather than its ReplicaSet, a CronJob rather than its Job; else the pod itself."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def workload_of(pod: Pod) -> OwningWorkload:
    """The workload of a pod; one that nobody made is a workload of its own."""
    namespace, owners = pod.metadata.namespace, pod.metadata.owner_references
    owner = next((owner for owner in owners if owner.controller), None) or next(iter(owners), None)
    if owner is None:
        return OwningWorkload("Pod", namespace, pod.name)
    if owner.kind == "ReplicaSet":
        return OwningWorkload(
            "Deployment", namespace, _deployment(owner.name, pod.metadata.labels.get(TEMPLATE_HASH, ""))
        )
    if owner.kind == "Job" and (due := _MINUTE.search(owner.name)) is not None and due.end() == len(owner.name):
        return OwningWorkload("CronJob", namespace, owner.name[: due.start()])
    return OwningWorkload(owner.kind, namespace, owner.name)


def _deployment(replica_set: str, template_hash: str) -> str:
    """The name of a ReplicaSet without the hash of its template."""
    if template_hash and replica_set.endswith(f"-{template_hash}"):
        return replica_set.removesuffix(f"-{template_hash}")
    return replica_set.rpartition("-")[0] or replica_set
