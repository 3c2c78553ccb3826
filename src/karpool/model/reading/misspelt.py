"""Kinds that are skipped although they were probably meant to be read: a slip in `kind` or `apiVersion`.

Only where nobody else has kinds of their own: in the API groups of Kubernetes and Karpenter whose kinds are all known.
"""

from typing import Final

from karpool.model.reading.kinds import AUTOSCALING, KARPENTER, KINDS
from karpool.wire.problems import suggestion

_OTHERS: Final[dict[str, frozenset[str]]] = {
    group: frozenset(kinds.split())
    for group, kinds in {
        "": "Binding ComponentStatus ConfigMap Endpoints Event LimitRange ResourceQuota Secret ServiceAccount Status"
        " Eviction Scale Table APIGroup APIResourceList Config List",
        "apps": "ControllerRevision",
        "batch": "",
        "policy": "Eviction PodSecurityPolicy",
        "storage.k8s.io": "CSIDriver CSIStorageCapacity VolumeAttributesClass",
        "resource.k8s.io": "DeviceTaintRule PodSchedulingContext ResourceClass ResourceClaimParameters"
        " ResourceClassParameters ResourcePoolStatusRequest",
        "scheduling.k8s.io": "CompositePodGroup",
        KARPENTER: "Machine Provisioner",
        AUTOSCALING: "ProvisioningRequest",
    }.items()
}
"""By API group whose kinds are all known: those that are not read."""


def probably_meant(kind: str, api_version: str) -> str:
    """The end of a sentence about a kind that is not read: what was meant, if it was a slip; empty if it was none."""
    group, slash, _ = api_version.partition("/")
    group = group if slash else ""
    if group not in _OTHERS or kind in _OTHERS[group]:
        return ""
    if kind in KINDS:
        right = KINDS[kind]
        return f"; {kind} is of apiVersion {'/'.join(filter(None, (right.groups[0], right.version)))}"
    here = {name.casefold(): name for name, entry in KINDS.items() if group in entry.groups}
    plain = kind.casefold()
    for spelling in (plain, plain.removesuffix("s")):
        if spelling in here:
            return f"; did you mean {here[spelling]}?"
    return suggestion(kind, here.values())
