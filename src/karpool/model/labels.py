"""Names of labels, annotations, taints and finalizers that the ecosystem and Karpool share."""

from typing import Final

HOSTNAME: Final = "kubernetes.io/hostname"
ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
WINDOWS_BUILD: Final = "node.kubernetes.io/windows-build"

NODEPOOL: Final = "karpenter.sh/nodepool"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
REGISTERED: Final = "karpenter.sh/registered"
INITIALIZED: Final = "karpenter.sh/initialized"
RESERVATION_ID: Final = "karpenter.sh/reservation-id"

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
DO_NOT_REPAIR: Final = "karpenter.sh/do-not-repair"
PRE_BOOT_ID: Final = "karpenter.sh/reboot-pre-boot-id"
REBOOT_BOUND: Final = "karpenter.sh/reboot-termination-grace-period"
NODEPOOL_HASH: Final = "karpenter.sh/nodepool-hash"
NODEPOOL_HASH_VERSION: Final = "karpenter.sh/nodepool-hash-version"
HASH_VERSION: Final = "v3"
"""The version of hashes that are compared with one another."""
TERMINATION_TIMESTAMP: Final = "karpenter.sh/nodeclaim-termination-timestamp"
MIN_VALUES_RELAXED: Final = "karpenter.sh/nodeclaim-min-values-relaxed"
REQUESTED_DRIVERS: Final = "karpenter.sh/requested-dra-drivers"
DISRUPTION_COST: Final = "karpenter.sh/disruption-cost"
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
OWN_DELETION_COST: Final = "karpool.sh/pod-deletion-cost"
"""On a Pod: the deletion cost that Karpool wrote; any other one is somebody else's."""

DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
STEERING_TAINT: Final = "karpool.sh/leaves-soon"
REBOOTING_TAINT: Final = "karpenter.sh/rebooting"
UNREGISTERED_TAINT: Final = "karpenter.sh/unregistered"
TERMINATION_FINALIZER: Final = "karpenter.sh/termination"

GRACE_PERIOD: Final = "karpool.sh/consolidation-grace-period"
BALANCED_K: Final = "karpool.sh/balanced-k"
MINIMUM_SAVINGS: Final = "karpool.sh/minimum-savings"
BUDGETS: Final = "karpool.sh/budgets"
FAILED_LAUNCH: Final = "karpool.sh/failed-launch"
LAUNCHED_FOR: Final = "karpool.sh/launched-for"
FAILED_COMMAND: Final = "karpool.sh/failed-command"
DISRUPTIONS: Final = "karpool.sh/disruptions"
HARM: Final = "karpool.sh/harm"
MAX_EVICTIONS: Final = "karpool.sh/max-evictions-per-hour"
EVICTED_FROM: Final = "karpool.sh/evicted-from"
"""On an eviction: the node of its pod."""
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
PAUSED: Final = "karpool.sh/paused"
PAUSE_MAP: Final = "karpool-pause"
"""The name of the ConfigMap that pauses everything."""
STATUS_MAP: Final = "cluster-autoscaler-status"
"""The name of the ConfigMap in which Cluster Autoscaler says how its groups are."""
REBOOTS: Final = "karpool.sh/reboots"
"""On a NodeClaim: when its node was rebooted lately."""
REBOOT_ISSUED: Final = "karpool.sh/reboot-issued"
"""On a NodeClaim: when the provider took a reboot on that is under way."""
REBOOT_REFUSED: Final = "karpool.sh/reboot-refused"
"""On a NodeClaim: what the provider said against a reboot."""

SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"
RESERVED: Final = "reserved"
CAPACITY_TYPES: Final = (RESERVED, SPOT, ON_DEMAND)

ZONE_ID: Final = "topology.k8s.aws/zone-id"

EC2_CLASS: Final = "karpenter.k8s.aws/ec2nodeclass"
EKS_CLASS: Final = "eks.amazonaws.com/nodeclass"
AKS_CLASS: Final = "karpenter.azure.com/aksnodeclass"
GCE_CLASS: Final = "karpenter.k8s.gcp/gcenodeclass"
KWOK_CLASS: Final = "karpenter.kwok.sh/kwoknodeclass"
CLASS_LABELS: Final = frozenset({EC2_CLASS, EKS_CLASS, AKS_CLASS, GCE_CLASS, KWOK_CLASS})
"""What nodes of a pool are labelled with: the kind of its node class, with its name as the value."""

KWOK_LABELS: Final = (
    "karpenter.kwok.sh/instance-size",
    "karpenter.kwok.sh/instance-family",
    "karpenter.kwok.sh/instance-cpu",
    "karpenter.kwok.sh/instance-memory",
)
AWS_LABELS: Final = (
    "karpenter.k8s.aws/instance-category",
    "karpenter.k8s.aws/instance-cpu",
    "karpenter.k8s.aws/instance-family",
    "karpenter.k8s.aws/instance-generation",
    "karpenter.k8s.aws/instance-gpu-count",
    "karpenter.k8s.aws/instance-memory",
    "karpenter.k8s.aws/instance-size",
)
WELL_KNOWN: Final = frozenset(
    {NODEPOOL, CAPACITY_TYPE, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, WINDOWS_BUILD, RESERVATION_ID}
    | set(KWOK_LABELS)
    | set(AWS_LABELS)
)

PROVIDER_DOMAINS: Final = frozenset(
    {
        "karpenter.k8s.aws",
        "eks.amazonaws.com",
        "topology.k8s.aws",
        "karpenter.azure.com",
        "kubernetes.azure.com",
        "karpenter.k8s.gcp",
        "cloud.google.com",
        "topology.k8s.gcp",
        "topology.gke.io",
        "karpenter.kwok.sh",
    }
)
"""Domains of labels that clouds and their providers set by themselves."""
_OF_MACHINES: Final = ("instance-", "sku-")

ALIASES: Final = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}


def canonical(key: str) -> str:
    return ALIASES.get(key, key)


def of_provider(key: str) -> bool:
    """Whether a provider sets a label by itself, so that machines have it or do not, whatever a pool asks for."""
    return key.partition("/")[0] in PROVIDER_DOMAINS and key not in CLASS_LABELS


def machine_prefix(key: str) -> str:
    """What the labels begin with that describe machines as this one does; empty if it describes no machine."""
    domain, _, name = key.partition("/")
    named = next((start for start in _OF_MACHINES if name.startswith(start)), "")
    return f"{domain}/{named}" if named and domain in PROVIDER_DOMAINS else ""
