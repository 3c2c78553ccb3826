"""What clusters of each cloud consist of: the groups of their nodes, what runs on all of them, and who grows them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cluster_pods import Daemon

from karpool.catalog.price_data import AWS, AZURE, GCP

Taint = Mapping[str, str]
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Fleet:
    """Nodes that one group or NodePool launched, or that are there for themselves; `share` is their part of a cluster.

    `guests`: what runs on nodes that take no usual workloads. `sizes`: whether the autoscaler knows the group.
    """

    name: str
    types: tuple[str, ...]
    share: float = 0.0
    fixed: int = 0
    spot: bool = False
    arch: str = "amd64"
    taints: tuple[Taint, ...] = ()
    labels: Labels = field(default_factory=dict)
    manager: str = "group"
    guests: str = ""
    sizes: bool = True
    tight: bool = False

    @property
    def pooled(self) -> bool:
        """Whether a NodePool launched its nodes."""
        return self.manager == "pool"


@dataclass(frozen=True)
class Cloud:
    """A cluster of a kind: where it is, its fleets, and its DaemonSets besides those that everybody has."""

    name: str
    style: str
    fleets: tuple[Fleet, ...]
    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ("",)
    daemons: tuple[Daemon, ...] = ()
    driver: str = ""
    attachments: int = 25
    node_class: tuple[str, str] = ("", "")
    status: str = ""
    """How the autoscaler writes down the sizes of groups: `yaml`, `text` or not at all."""


def _taint(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


AGENTS: Final = (Daemon("node-exporter", 25, 32, (9100,)), Daemon("log-agent", 100, 200))
_EKS_DAEMONS: Final = (Daemon("aws-node", 50, 0), Daemon("kube-proxy", 100, 0), Daemon("ebs-csi-node", 30, 120))
_GKE_DAEMONS: Final = (
    Daemon("fluentbit-gke", 100, 200),
    Daemon("gke-metrics-agent", 14, 140),
    Daemon("pdcsi-node", 10, 20),
    Daemon("netd", 2, 30),
)
_AKS_DAEMONS: Final = (
    Daemon("azure-ip-masq-agent", 100, 50),
    Daemon("cloud-node-manager", 50, 50),
    Daemon("csi-azuredisk-node", 30, 60),
    Daemon("csi-azurefile-node", 30, 60),
    Daemon("kube-proxy", 100, 0),
)
_OPENSHIFT_DAEMONS: Final = (
    Daemon("ovnkube-node", 80, 1630),
    Daemon("multus", 10, 65),
    Daemon("dns-default", 60, 110),
    Daemon("machine-config-daemon", 40, 100),
    Daemon("tuned", 10, 50),
    Daemon("node-ca", 10, 10),
)
CRITICAL: Final = _taint("CriticalAddonsOnly", "true", "NoSchedule")
GPU: Final = _taint("nvidia.com/gpu", "present")
_TEAM: Final = _taint("dedicated", "data")
_WINDOWS: Final = _taint("os", "windows")
_CONTROL_PLANE: Final = _taint("node-role.kubernetes.io/control-plane")
_SERVER_LABELS: Final = {"node-role.kubernetes.io/control-plane": "true"}

EKS_GROUPS: Final = Cloud(
    "EKS, managed node groups",
    "eks",
    (
        Fleet("apps-on-demand", ("m5.xlarge",), 0.34),
        Fleet("apps-spot", ("m5.xlarge", "m5a.xlarge", "m6i.xlarge", "r5.xlarge"), 0.3, spot=True),
        Fleet("apps-graviton", ("m7g.2xlarge",), 0.16, arch="arm64"),
        Fleet("data-dedicated", ("r6i.2xlarge",), 0.1, taints=(_TEAM,), labels={"dedicated": "data"}, tight=True),
        Fleet("gpu-inference", ("g5.2xlarge",), 0.04, taints=(GPU,), guests="gpu"),
        Fleet("legacy-asg", ("m4.2xlarge",), 0.04, sizes=False),
        Fleet("windows", ("m5.2xlarge",), fixed=1, taints=(_WINDOWS,), guests="windows"),
        Fleet("fargate", ("",), fixed=2, manager="fargate", guests="fargate"),
    ),
    AWS,
    "eu-west-1",
    ("eu-west-1a", "eu-west-1b", "eu-west-1c"),
    (*_EKS_DAEMONS, *AGENTS),
    "ebs.csi.aws.com",
    status="yaml",
)
EKS_KARPENTER: Final = Cloud(
    "EKS, Karpenter and a managed group",
    "eks",
    (
        Fleet("general", ("m6i.xlarge", "m5.2xlarge", "c6i.2xlarge", "m6a.xlarge"), 0.4, manager="pool"),
        Fleet("spot", ("m5.large", "c5.2xlarge", "m6i.2xlarge", "r5.xlarge"), 0.3, spot=True, manager="pool"),
        Fleet("graviton", ("m7g.xlarge", "c7g.2xlarge", "r7g.xlarge"), 0.2, arch="arm64", manager="pool"),
        Fleet("gpu", ("g5.xlarge", "g4dn.xlarge"), 0.03, taints=(GPU,), manager="pool", guests="gpu"),
        Fleet("karpenter", ("t3.large",), fixed=2),
    ),
    AWS,
    "us-west-2",
    ("us-west-2a", "us-west-2b", "us-west-2c"),
    (*_EKS_DAEMONS, *AGENTS),
    "ebs.csi.aws.com",
    node_class=("karpenter.k8s.aws", "EC2NodeClass"),
)
EKS_AUTO: Final = Cloud(
    "EKS Auto Mode",
    "auto",
    (
        Fleet("general-purpose", ("c6a.large", "m6a.xlarge", "c7i.2xlarge", "r6a.large"), 0.8, manager="pool"),
        Fleet("system", ("c6g.large",), 0.05, arch="arm64", taints=(CRITICAL,), manager="pool"),
    ),
    AWS,
    "us-east-2",
    ("us-east-2a", "us-east-2b", "us-east-2c"),
    AGENTS,
    "ebs.csi.eks.amazonaws.com",
    node_class=("eks.amazonaws.com", "NodeClass"),
)
GKE_STANDARD: Final = Cloud(
    "GKE Standard",
    "gke",
    (
        Fleet("default-pool", ("e2-standard-4",), 0.4),
        Fleet("n2d-spot", ("n2d-standard-8",), 0.3, spot=True),
        Fleet("t2a-arm", ("t2a-standard-4",), 0.1, arch="arm64", taints=(_taint("kubernetes.io/arch", "arm64"),)),
        Fleet("highmem", ("n2-highmem-8",), 0.1, labels={"workload": "memory"}, tight=True),
        Fleet("l4-gpu", ("g2-standard-8",), 0.03, taints=(GPU,), guests="gpu"),
    ),
    GCP,
    "us-central1",
    ("us-central1-a", "us-central1-b", "us-central1-f"),
    (*_GKE_DAEMONS, *AGENTS),
    "pd.csi.storage.gke.io",
    status="text",
)
GKE_AUTOPILOT: Final = Cloud(
    "GKE Autopilot",
    "gke",
    (
        Fleet("pool-1", ("ek-standard-16",), 0.9, manager="autopilot"),
        Fleet("nap-1", ("e2-standard-8",), 0.1, manager="autopilot"),
    ),
    GCP,
    "europe-west4",
    ("europe-west4-a", "europe-west4-b", "europe-west4-c"),
    (*_GKE_DAEMONS, *AGENTS),
    "pd.csi.storage.gke.io",
)
AKS: Final = Cloud(
    "AKS, node pools",
    "aks",
    (
        Fleet(
            "system", ("Standard_D4ds_v5",), 0.06, taints=(CRITICAL,), labels={"kubernetes.azure.com/mode": "system"}
        ),
        Fleet("user", ("Standard_D4s_v5",), 0.44),
        Fleet("spot", ("Standard_D8as_v5",), 0.26, spot=True),
        Fleet("arm", ("Standard_D4ps_v5",), 0.12, arch="arm64"),
        Fleet("gput4", ("Standard_NC4as_T4_v3",), 0.03, taints=(_taint("sku", "gpu"),), guests="gpu"),
        Fleet("win22", ("Standard_D4s_v5",), fixed=1, taints=(_WINDOWS,), guests="windows"),
        Fleet("aci", ("",), fixed=1, manager="virtual", guests="virtual"),
    ),
    AZURE,
    "eastus2",
    ("eastus2-1", "eastus2-2", "eastus2-3"),
    (*_AKS_DAEMONS, *AGENTS),
    "disk.csi.azure.com",
    8,
    status="text",
)
AKS_NAP: Final = Cloud(
    "AKS, node auto-provisioning",
    "aks",
    (
        Fleet(
            "system", ("Standard_D4ds_v5",), 0.06, taints=(CRITICAL,), labels={"kubernetes.azure.com/mode": "system"}
        ),
        Fleet(
            "default",
            ("Standard_D2s_v5", "Standard_D8s_v5", "Standard_D4as_v5", "Standard_E4s_v5"),
            0.7,
            manager="pool",
        ),
        Fleet("batch", ("Standard_D8as_v5", "Standard_F8s_v2"), 0.2, spot=True, manager="pool"),
    ),
    AZURE,
    "westus3",
    ("westus3-1", "westus3-2", "westus3-3"),
    (*_AKS_DAEMONS, *AGENTS),
    "disk.csi.azure.com",
    8,
    node_class=("karpenter.azure.com", "AKSNodeClass"),
)
OPENSHIFT: Final = Cloud(
    "OpenShift on AWS",
    "openshift",
    (
        Fleet(
            "master",
            ("m6i.xlarge",),
            fixed=3,
            taints=(_taint("node-role.kubernetes.io/master"),),
            manager="server",
            guests="static",
        ),
        Fleet("worker-us-east-2a", ("m6i.2xlarge",), 0.35),
        Fleet("worker-us-east-2b", ("m6i.2xlarge",), 0.35),
        Fleet(
            "infra-us-east-2a",
            ("r6i.xlarge",),
            0.1,
            labels={"node-role.kubernetes.io/infra": ""},
            taints=(_taint("node-role.kubernetes.io/infra"),),
        ),
    ),
    AWS,
    "us-east-2",
    ("us-east-2a", "us-east-2b"),
    (*_OPENSHIFT_DAEMONS, *AGENTS),
    "ebs.csi.aws.com",
)
K3S: Final = Cloud(
    "k3s",
    "k3s",
    (
        Fleet("server", ("4x8",), fixed=3, labels=_SERVER_LABELS, manager="server"),
        Fleet("agent", ("8x32", "4x16"), 1.0, manager="nobody"),
    ),
    daemons=(Daemon("svclb-traefik", 0, 0, (80, 443)), *AGENTS),
    driver="rancher.io/local-path",
)
KIND: Final = Cloud(
    "kind",
    "kind",
    (
        Fleet(
            "control-plane",
            ("8x16",),
            fixed=1,
            labels={"node-role.kubernetes.io/control-plane": ""},
            taints=(_CONTROL_PLANE,),
            manager="server",
            guests="static",
        ),
        Fleet("worker", ("8x16",), 1.0, manager="nobody"),
    ),
    daemons=(Daemon("kindnet", 100, 50), Daemon("kube-proxy", 0, 0)),
    driver="rancher.io/local-path",
)
BARE: Final = Cloud(
    "Cluster API on vSphere",
    "capi",
    (
        Fleet(
            "control-plane",
            ("8x32",),
            fixed=3,
            labels={"node-role.kubernetes.io/control-plane": ""},
            taints=(_CONTROL_PLANE,),
            manager="server",
            guests="static",
        ),
        Fleet("shop-md-0", ("16x64",), 0.6),
        Fleet("shop-md-1", ("32x256",), 0.3, labels={"node-role.kubernetes.io/database": ""}, taints=(_TEAM,)),
        Fleet("rack", ("64x512",), 0.1, manager="nobody"),
    ),
    region="dc1",
    zones=("rack-1", "rack-2", "rack-3"),
    daemons=(Daemon("calico-node", 250, 0), Daemon("kube-proxy", 0, 0), *AGENTS),
    driver="csi.vsphere.vmware.com",
    status="yaml",
)

CLOUDS: Final[Mapping[str, Cloud]] = {
    "eks-groups": EKS_GROUPS,
    "eks-karpenter": EKS_KARPENTER,
    "eks-auto": EKS_AUTO,
    "gke-standard": GKE_STANDARD,
    "gke-autopilot": GKE_AUTOPILOT,
    "aks": AKS,
    "aks-nap": AKS_NAP,
    "openshift": OPENSHIFT,
    "k3s": K3S,
    "kind": KIND,
    "capi": BARE,
}
