"""Who manages a node, and what is learned of a group from its nodes, a status and a file."""

from typing import Any

import msgspec
import pytest
from tests.factories import node_pool
from tests.factories.catalogs import default_catalog
from tests.factories.clouds import (
    UUID,
    Manifest,
    aks_node,
    autoscaler_status,
    control_plane_taint,
    eks_node,
    gke_node,
    openshift_node,
    status_text,
    status_yaml,
)
from tests.factories.clouds import node as plain_node

from karpool.cluster.node_groups import GroupOptions, with_group_shapes, with_groups
from karpool.cluster.pairing import join
from karpool.model.group_sizes import Sizes, read_sizes
from karpool.model.managers import ManagerKind, left_alone, manager_of
from karpool.model.node import Node
from karpool.model.node_group import NodeGroup
from karpool.model.objects import Objects
from karpool.model.workloads import ConfigMap
from karpool.wire.objects import decode_value
from karpool.wire.problems import InputError
from karpool.wire.quantity import parse_quantity


def read(manifest: Manifest) -> Node:
    return msgspec.convert(manifest, Node, dec_hook=decode_value)


def groups_of(*manifests: Manifest, status: str = "", options: GroupOptions | None = None) -> dict[str, NodeGroup]:
    statuses = [msgspec.convert(autoscaler_status(status), ConfigMap)] if status else []
    objects = Objects(nodes=tuple(map(read, manifests)), autoscaler_statuses=tuple(statuses))
    return {pool.name: pool for pool in with_groups(objects, options).node_pools if isinstance(pool, NodeGroup)}


FARGATE = {"eks.amazonaws.com/compute-type": "fargate"}
VIRTUAL = {"key": "virtual-kubelet.io/provider", "value": "azure", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("manifest", "kind", "name"),
    [
        (eks_node("ip-10-0-0-1", "web"), "NodeGroup", "web"),
        (plain_node("ip-10-0-0-2", {"alpha.eksctl.io/nodegroup-name": "ng-1"}), "NodeGroup", "ng-1"),
        (gke_node("gke-shop-default-pool-1a2b3c4d-x7k2", "default-pool"), "NodeGroup", "default-pool"),
        (aks_node("aks-userpool-12345678-vmss000001", "userpool"), "NodeGroup", "userpool"),
        (plain_node("aks-old-1", {"agentpool": "old"}), "NodeGroup", "old"),
        (plain_node("i-0a", {"kops.k8s.io/instancegroup": "nodes-us-east-1a"}), "NodeGroup", "nodes-us-east-1a"),
        (
            plain_node(
                "md-0-abc",
                {},
                annotations={
                    "cluster.x-k8s.io/owner-kind": "MachineSet",
                    "cluster.x-k8s.io/owner-name": "md-0-7d9f8",
                },
            ),
            "NodeGroup",
            "md-0-7d9f8",
        ),
        (openshift_node("ip-10-0-1-1", "shop-abcde-worker-us-east-1a"), "NodeGroup", "shop-abcde-worker-us-east-1a"),
        (openshift_node("ip-10-0-1-2", "shop-master", role="master"), "ControlPlane", ""),
        (
            plain_node("kind-control-plane", {"node-role.kubernetes.io/control-plane": ""}),
            "ControlPlane",
            "",
        ),
        (
            plain_node(
                "i-0b",
                {"kops.k8s.io/instancegroup": "control-plane-us-east-1a", "node-role.kubernetes.io/control-plane": ""},
                taints=[control_plane_taint()],
            ),
            "ControlPlane",
            "",
        ),
        (plain_node("kind-worker", {}), "Nobody", ""),
        (plain_node("k3s-agent", {"node.kubernetes.io/instance-type": "k3s"}), "Nobody", ""),
        (plain_node("fargate-ip-10-0-3-1", FARGATE), "Fargate", ""),
        (plain_node("virtual-node-aci-linux", {"type": "virtual-kubelet"}, taints=[VIRTUAL]), "VirtualKubelet", ""),
        (aks_node("akswin000000", "win", os="windows"), "Windows", ""),
        (plain_node("i-0auto", {"eks.amazonaws.com/compute-type": "auto"}), "EKSAutoMode", ""),
        (gke_node("gk3-shop-pool-1-1a2b3c4d-x7k2", "pool-1"), "GKEAutopilot", ""),
        (plain_node("lost", {"karpenter.sh/nodepool": "general"}), "NodePool", "general"),
    ],
)
def test_labels_and_annotations_say_who_manages_a_node(manifest: Manifest, kind: str, name: str) -> None:
    manager = manager_of(read(manifest), claimed=False)
    assert (manager.kind.value, manager.name) == (kind, name)
    assert bool(left_alone(manager.kind)) is (kind not in {"NodePool", "NodeGroup"})


def test_a_claim_goes_before_labels_and_a_given_label_before_those_of_clouds() -> None:
    node = read(eks_node("a", "web", labels={"team": "shop"}))
    assert manager_of(node, claimed=True).kind is ManagerKind.NODE_POOL
    assert manager_of(node, claimed=False, pool_label="team").name == "shop"


def test_a_group_has_what_its_nodes_have_in_common_and_every_lasting_taint() -> None:
    gpu = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    passing = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}
    group = groups_of(
        eks_node("a", "web", labels={"tier": "1", "only": "a"}, taints=[gpu]),
        eks_node("b", "web", labels={"tier": "1"}, zone="us-east-1b", spot=True, taints=[passing]),
    )["web"]
    assert (group.size, group.instance_types, group.zones) == (2, ("m5.large",), ("us-east-1a", "us-east-1b"))
    assert group.capacity_types == ("on-demand", "spot")
    labels = group.spec.template.metadata.labels
    assert labels["tier"] == "1"
    assert not {"only", "kubernetes.io/hostname", "topology.kubernetes.io/zone"} & labels.keys()
    assert [taint.key for taint in group.spec.template.spec.taints] == ["nvidia.com/gpu"]
    assert "capacity types" in group.fixed


GKE = "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-{}/instanceGroups/gke-shop-web-{}-grp"


@pytest.mark.parametrize(
    ("nodes", "status", "sizes"),
    [
        ([eks_node("a", "web"), eks_node("b", "web-gpu")], {f"eks-web-gpu-{UUID}": (0, 4)}, {"web-gpu": (0, 4)}),
        ([eks_node("a", "web"), eks_node("b", "web-gpu")], {f"eks-web-{UUID}": (2, 9)}, {"web": (2, 9)}),
        (
            [gke_node("gke-shop-web-1111-aaaa", "web"), gke_node("gke-shop-web-2222-bbbb", "web")],
            {GKE.format("a", "1111"): (1, 3), GKE.format("b", "2222"): (1, 4), GKE.format("c", "9999"): (1, 50)},
            {"web": (2, 7)},
        ),
        ([aks_node("aks-web-1234-vmss000001", "web")], {"aks-web-1234-vmss": (1, 5)}, {"web": (1, 5)}),
        (
            [plain_node("i-1", {"kops.k8s.io/instancegroup": "nodes"})],
            {"nodes.shop.example.com": (3, 6)},
            {"nodes": (3, 6)},
        ),
        (
            [plain_node("i-1", {"alpha.eksctl.io/nodegroup-name": "ng"})],
            {"eksctl-shop-nodegroup-ng-NodeGroup-1A2B3C": (0, 2)},
            {"ng": (0, 2)},
        ),
        (
            [openshift_node("i-1", "workers-a")],
            {"MachineSet/openshift-machine-api/workers-a": (1, 4)},
            {"workers-a": (1, 4)},
        ),
        ([eks_node("a", "web")], {"somebody-elses-asg": (1, 2)}, {}),
    ],
)
@pytest.mark.parametrize("written", [status_text, status_yaml])
def test_the_status_of_cluster_autoscaler_says_how_small_and_large_groups_may_be(
    nodes: list[Manifest], status: dict[str, Any], sizes: dict[str, Any], written: Any
) -> None:
    groups = groups_of(*nodes, status=written(status))
    known = {name: (group.minimum, group.maximum) for name, group in groups.items() if group.sizes_from}
    assert known == sizes
    assert all(group.sizes_from or (group.minimum, group.least) == (None, 1) for group in groups.values())


def test_a_machine_deployment_has_the_nodes_of_its_machine_sets() -> None:
    owner = {"cluster.x-k8s.io/owner-kind": "MachineSet", "cluster.x-k8s.io/owner-name": "md-0-7d9f8"}
    groups = groups_of(
        plain_node("i-1", {}, annotations=owner), status=status_yaml({"MachineDeployment/x/md-0": (1, 2)})
    )
    assert groups["md-0-7d9f8"].maximum == 2


@pytest.mark.parametrize(
    "text", ["", "Cluster-autoscaler status at", "[1, 2", "nodeGroups: 7", "nodeGroups:\n- name: a"]
)
def test_a_status_that_says_nothing_leaves_sizes_unknown(text: str) -> None:
    group = groups_of(eks_node("a", "web"), status=text)["web"]
    assert (group.minimum, group.maximum, group.sizes_from) == (None, None, "")
    assert "maximum is not known" in group.fixed


def test_a_file_goes_before_the_status() -> None:
    sizes = read_sizes(b"groups: {web: {minimum: 3, maximum: 12}}", "sizes.yaml")
    status = status_yaml({f"eks-web-{UUID}": (1, 2)})
    group = groups_of(eks_node("a", "web"), status=status, options=GroupOptions(sizes=sizes))["web"]
    assert (group.minimum, group.maximum, group.sizes_from, group.fixed) == (3, 12, "--groups", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"groups: {web: {minimum: 3, maxmum: 12}}", "maxmum"),
        (b"groups: {web: {minimum: -3}}", "-3 is not allowed"),
        (b"groups: {web: {minimum: 9, maximum: 3}}", "more than the maximum"),
        (b"groups: {web: {minimum: many}}", "groups.web.minimum"),
        (b"[1]", "expected one document"),
        (b"a: [", "sizes.yaml"),
    ],
)
def test_a_file_of_sizes_that_makes_no_sense_is_refused_in_one_line(text: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_sizes(text, "sizes.yaml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_groups_get_no_nodes_where_node_pools_supply_them_or_a_node_cannot_be_read() -> None:
    status = msgspec.convert(autoscaler_status(status_yaml({f"eks-web-{UUID}": (1, 9)})), ConfigMap)
    node = read(eks_node("a", "web"))
    mixed = Objects(nodes=(node,), node_pools=(node_pool("general"),), autoscaler_statuses=(status,))
    assert [pool.name for pool in with_groups(mixed).node_pools] == ["general", "web"]
    group = with_groups(mixed).node_pools[1]
    assert isinstance(group, NodeGroup)
    assert "NodePools supply them" in group.fixed


def test_a_group_that_is_called_like_a_node_pool_gets_another_name() -> None:
    objects = Objects(nodes=(read(eks_node("a", "web")),), node_pools=(node_pool("web"),))
    assert [pool.name for pool in with_groups(objects).node_pools] == ["web", "web (group)"]


def test_a_new_node_has_the_room_of_the_smallest_of_its_group_and_no_device_that_none_has() -> None:
    catalog = default_catalog()
    name = catalog.types[0].name
    nodes = tuple(read(eks_node(f"n{at}", "web", type=name, cpu=cpu)) for at, cpu in enumerate(("1500m", "1400m")))
    shaped = with_group_shapes(catalog, with_groups(Objects(nodes=nodes)))
    assert shaped.by_name[name].allocatable["cpu"] == parse_quantity("1400m")
    assert shaped.by_name[catalog.types[1].name] == catalog.types[1]


def test_sizes_that_nobody_says_are_told_apart_from_zero() -> None:
    assert Sizes().minimum is None
    zero = groups_of(eks_node("a", "web"), status=status_yaml({f"eks-web-{UUID}": (0, 1)}))["web"]
    assert (zero.minimum, zero.least) == (0, 0)


def test_nodes_of_a_group_that_share_a_provider_id_are_told_apart_by_their_names() -> None:
    nodes = tuple(
        msgspec.structs.replace(read(aks_node(name, "p")), spec=read(aks_node("a", "p")).spec) for name in "abc"
    )
    states = join(nodes, with_groups(Objects(nodes=nodes)).node_claims)
    assert sorted((state.name, state.node is not None, bool(state.group)) for state in states) == [
        ("a", True, True),
        ("b", True, True),
        ("c", True, True),
    ]
