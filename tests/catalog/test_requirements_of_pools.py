"""What real pools require: labels of all three providers, and what happens to those that nobody knows."""

import json
from pathlib import Path

import pytest
from tests.factories import node, node_pool

from karpool.catalog.instance_types import Catalog
from karpool.catalog.learned import with_learned_labels
from karpool.catalog.notices import unmet_labels
from karpool.catalog.places import places_of_cluster
from karpool.catalog.pricing import by_price
from karpool.catalog.sources import open_catalog
from karpool.cli.options.catalog_options import CatalogOpener
from karpool.model.labels import REGION, ZONE, ZONE_ID
from karpool.model.nodepool import NodeClassRef, NodePool
from karpool.packing.templates import template_of
from karpool.packing.type_table import TypeTable

AWS, AUTO, AZURE, GCP = (
    "karpenter.k8s.aws/instance-",
    "eks.amazonaws.com/instance-",
    "karpenter.azure.com/sku-",
    "karpenter.k8s.gcp/instance-",
)
EC2 = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")
EKS = NodeClassRef(group="eks.amazonaws.com", kind="NodeClass", name="default")
AKS = NodeClassRef(group="karpenter.azure.com", kind="AKSNodeClass", name="default")
GCE = NodeClassRef(group="karpenter.k8s.gcp", kind="GCENodeClass", name="default")
Rule = tuple[str, ...]


def catalog_for(pool: NodePool) -> Catalog:
    return open_catalog(places=places_of_cluster([], [], [pool]))


def names(pool: NodePool, catalog: Catalog | None = None) -> set[str]:
    """The types that a pool can launch, as single types and as columns say it."""
    known, wanted = catalog or catalog_for(pool), template_of(pool).requirements
    suitable = TypeTable(known, reserved=True).suitable(wanted)
    columns = {entry.name for entry, suits in zip(known.types, suitable, strict=True) if suits}
    sold = [entry for entry in known.types if any(offering.available for offering in entry.offerings)]
    assert columns == {entry.name for entry in sold if entry.meets(wanted)}
    return columns


def cheapest(pool: NodePool) -> str:
    known, allowed = catalog_for(pool), names(pool)
    return next(entry.name for entry in by_price(known.types, pool.requirements) if entry.name in allowed)


@pytest.mark.parametrize(
    ("node_class", "rules", "some", "none"),
    [
        (EKS, [(f"{AUTO}category", "In", "c", "m", "r"), (f"{AUTO}generation", "Gt", "4")], "m7i.large", "t3.large"),
        (EKS, [(f"{AUTO}cpu", "In", "4", "8"), (f"{AUTO}hypervisor", "In", "nitro")], "c7g.xlarge", "m4.xlarge"),
        (EKS, [(f"{AUTO}gpu-name", "In", "l4"), (f"{AUTO}gpu-count", "Gte", "4")], "g6.12xlarge", "g6.xlarge"),
        (EC2, [(f"{AWS}local-nvme", "Gt", "500")], "m6id.4xlarge", "m6i.4xlarge"),
        (EC2, [(f"{AWS}hypervisor", "In", "nitro"), (f"{AWS}size", "NotIn", "nano", "micro")], "m5.large", "m4.large"),
        (EC2, [(f"{AWS}cpu-manufacturer", "In", "amd")], "m7a.large", "m7i.large"),
        (EC2, [(f"{AWS}network-bandwidth", "Gt", "12000")], "c6in.4xlarge", "c6i.large"),
        (
            EC2,
            [(f"{AWS}gpu-manufacturer", "In", "nvidia"), (f"{AWS}gpu-memory", "Gt", "40000")],
            "p4d.24xlarge",
            "g5.xlarge",
        ),
        (EC2, [(f"{AWS}gpu-count", "DoesNotExist")], "m5.large", "g5.xlarge"),
        (EC2, [(f"{AWS}accelerator-name", "In", "inferentia2")], "inf2.xlarge", "inf1.xlarge"),
        (EC2, [(f"{AWS}encryption-in-transit-supported", "In", "true")], "m6i.large", "m5.large"),
        (AKS, [(f"{AZURE}family", "In", "D"), (f"{AZURE}version", "Gte", "5")], "Standard_D4s_v5", "Standard_E4s_v5"),
        (
            AKS,
            [(f"{AZURE}cpu", "Lt", "9"), (f"{AZURE}storage-premium-capable", "In", "true")],
            "Standard_D4s_v5",
            "Standard_D4_v5",
        ),
        (
            AKS,
            [(f"{AZURE}gpu-count", "Gt", "0"), (f"{AZURE}gpu-manufacturer", "In", "nvidia")],
            "Standard_NC4as_T4_v3",
            "Standard_D4s_v5",
        ),
        (
            AKS,
            [(f"{AZURE}name", "In", "Standard_E8ds_v5"), ("kubernetes.azure.com/mode", "In", "system")],
            "Standard_E8ds_v5",
            "Standard_D4s_v5",
        ),
        (GCE, [(f"{GCP}family", "In", "n2", "n2d"), (f"{GCP}cpu", "Gt", "3")], "n2d-standard-4", "e2-standard-4"),
        (GCE, [("cloud.google.com/machine-family", "In", "c3")], "c3-standard-4", "n2-standard-4"),
        (GCE, [("cloud.google.com/gke-accelerator", "In", "nvidia-l4")], "g2-standard-4", "a2-highgpu-1g"),
    ],
)
def test_labels_of_providers_choose_among_their_machines(
    node_class: NodeClassRef, rules: list[Rule], some: str, none: str
) -> None:
    found = names(node_pool(node_class=node_class, requirements=rules))
    assert some in found
    assert none not in found


def test_keys_of_auto_mode_choose_what_those_of_karpenter_choose() -> None:
    chosen = {
        cheapest(
            node_pool(
                node_class=EC2,
                requirements=[
                    (f"{prefix}category", "In", "c", "m", "r"),
                    (f"{prefix}generation", "Gt", "6"),
                    ("kubernetes.io/arch", "In", "amd64"),
                    ("karpenter.sh/capacity-type", "In", "on-demand"),
                ],
            )
        )
        for prefix in (AWS, AUTO)
    }
    assert len(chosen) == 1
    assert not chosen & {"t3a.micro", "t3a.nano"}


@pytest.mark.parametrize("pair", [(EC2, "aws"), (EKS, "aws"), (AKS, "azure"), (GCE, "gcp")], ids=str)
def test_a_pool_gets_machines_of_its_own_cloud_alone(pair: tuple[NodeClassRef, str]) -> None:
    node_class, cloud = pair
    others = [node_pool(name, node_class=other) for name, other in (("a", EC2), ("b", AKS), ("c", GCE))]
    everything = open_catalog(places=places_of_cluster([], [], others))
    assert names(node_pool(node_class=node_class), everything) <= {entry.name for entry in open_catalog(cloud).types}
    assert names(node_pool(node_class=node_class), everything)


def test_auto_mode_launches_nothing_tiny() -> None:
    tiny = {"t3.nano", "t3a.micro", "t3.small", "c7a.medium", "m5.metal"}
    assert tiny <= names(node_pool(node_class=EC2))
    assert not tiny & names(node_pool(node_class=EKS))


@pytest.mark.parametrize(
    "rule",
    [
        ("karpenter.k8s.aws/instance-flavour", "In", "vanilla"),
        ("karpenter.k8s.aws/instance-flavour", "Exists"),
        ("eks.amazonaws.com/colour", "In", "red"),
        ("cloud.google.com/gke-nodepool", "In", "web"),
        (ZONE_ID, "In", "use1-az1"),
    ],
    ids=str,
)
def test_a_label_that_nobody_knows_is_met_by_no_type_and_named(rule: Rule) -> None:
    pool = node_pool(node_class=EC2, requirements=[rule])
    assert names(pool) == set()
    (notice,) = unmet_labels([pool], catalog_for(pool))
    assert f"no known type meets {rule[0]}" in notice


def test_what_a_pool_labels_itself_or_what_is_its_own_need_not_be_known() -> None:
    labels = {"kubernetes.azure.com/ebpf-dataplane": "cilium"}
    for pool in (
        node_pool(node_class=AKS, labels=labels),
        node_pool(node_class=EC2, requirements=[("example.com/team", "In", "a")]),
        node_pool(node_class=EC2, requirements=[("eks.amazonaws.com/compute-type", "NotIn", "fargate")]),
    ):
        assert names(pool)
        assert not list(unmet_labels([pool], catalog_for(pool)))


def test_nodes_of_the_pool_prove_a_label_for_their_type_and_zone_ids_for_their_zone() -> None:
    unknown = "karpenter.k8s.aws/instance-flavour"
    pool = node_pool(node_class=EC2, requirements=[(unknown, "In", "vanilla")])
    proof = node(type="m5.large", labels={REGION: "us-east-1", unknown: "vanilla"})
    stranger = node("n2", type="c5.large", pool="other", labels={REGION: "us-east-1", unknown: "vanilla"})
    catalog = CatalogOpener().for_cluster([proof, stranger], [], [pool])
    assert names(pool, catalog) == {"m5.large"}
    zonal = node_pool(node_class=EC2, requirements=[(ZONE_ID, "In", "use1-az4")])
    seen = node(zone="us-east-1b", labels={REGION: "us-east-1", ZONE_ID: "use1-az4"})
    catalog = CatalogOpener().for_cluster([seen], [], [zonal])
    assert "m5.large" in names(zonal, catalog)
    launched = TypeTable(catalog, reserved=True)
    wanted = template_of(zonal).requirements
    assert launched.offered_values(wanted, launched.suitable(wanted), ZONE) == {"us-east-1b"}


def file_with(folder: Path, *types: str) -> str:
    file = folder / "types.json"
    offering = {
        "Price": 0.1,
        "Requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}],
    }
    entry = {"architecture": "amd64", "resources": {"cpu": 2, "memory": "8Gi"}, "offerings": [offering]}
    file.write_text(json.dumps([{"name": name, **entry} for name in types]))
    return str(file)


def test_types_of_a_file_have_the_labels_of_the_machine_that_a_cloud_calls_so(tmp_path: Path) -> None:
    source = file_with(tmp_path, "m5.large", "rack-7")
    pool = node_pool(node_class=EC2, requirements=[(f"{AWS}category", "In", "m"), (f"{AWS}size", "NotIn", "nano")])
    plain = open_catalog(source)
    assert names(pool, plain) == set()
    assert names(pool, with_learned_labels(plain, [], [pool])) == {"m5.large"}
    assert names(node_pool(node_class=EC2, requirements=[(f"{AWS}size", "NotIn", "nano")]), plain) == set()


def test_a_file_lists_all_types_only_for_the_provider_that_reads_it(tmp_path: Path) -> None:
    opener = CatalogOpener(file_with(tmp_path, "m5.large"))
    assert opener.complete(kwok=True)
    assert not opener.complete(kwok=False)
    assert not CatalogOpener().complete(kwok=True)
