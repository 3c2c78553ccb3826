"""Where a cluster is: by provider ids, labels, and the node classes of pools."""

import pytest
from tests.factories import node, node_pool

from karpool.catalog.places import CloudRegion, ZoneName, is_region, place_of, places_of_cluster
from karpool.model.labels import REGION, ZONE, ZONE_ID
from karpool.model.nodepool import NodeClassRef

EC2 = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")


@pytest.mark.parametrize(
    ("labels", "provider_id", "place"),
    [
        ({REGION: "us-east-1", ZONE: "us-east-1a"}, "", ("aws", "us-east-1")),
        ({ZONE: "us-west-2-lax-1a"}, "", ("aws", "us-west-2")),
        ({"failure-domain.beta.kubernetes.io/zone": "eu-west-1b"}, "", ("aws", "eu-west-1")),
        ({}, "aws:///ap-northeast-1c/i-0123", ("aws", "ap-northeast-1")),
        ({}, "gce://project/us-central1-f/gke-node", ("gcp", "us-central1")),
        ({ZONE: "europe-west10-a"}, "", ("gcp", "europe-west10")),
        ({REGION: "eastus2", ZONE: "0"}, "azure:///subscriptions/1/virtualMachines/0", ("azure", "eastus2")),
        ({"kubernetes.azure.com/agentpool": "a", ZONE: "westus3-2"}, "", ("azure", "westus3")),
        ({"eks.amazonaws.com/nodegroup": "web"}, "", ("aws", "")),
        ({ZONE: "test-zone-a"}, "kwok://node", ("", "")),
        ({REGION: "home", ZONE: "rack-7"}, "", ("", "")),
        ({}, "", ("", "")),
    ],
)
def test_a_node_says_which_cloud_and_region_it_is_in(
    labels: dict[str, str], provider_id: str, place: tuple[str, str]
) -> None:
    assert place_of(labels, provider_id) == place


def test_zones_carry_the_ids_that_nodes_show() -> None:
    nodes = [
        node("a", labels={REGION: "us-east-1", ZONE: "us-east-1a"}),
        node("b", labels={REGION: "us-east-1", ZONE: "us-east-1a", ZONE_ID: "use1-az6"}),
        node("c", zone="us-east-1b", labels={REGION: "us-east-1"}),
        node("d", zone="us-central1-a"),
    ]
    assert places_of_cluster(nodes) == (
        CloudRegion("aws", "us-east-1", (ZoneName("us-east-1a", "use1-az6"), ZoneName("us-east-1b"))),
        CloudRegion("gcp", "us-central1", (ZoneName("us-central1-a"),)),
    )


@pytest.mark.parametrize(
    ("reference", "cloud"),
    [
        (EC2, "aws"),
        (NodeClassRef(group="eks.amazonaws.com", kind="NodeClass", name="default"), "aws"),
        (NodeClassRef(group="karpenter.azure.com", kind="AKSNodeClass", name="default"), "azure"),
        (NodeClassRef(group="karpenter.k8s.gcp", kind="GCENodeClass", name="default"), "gcp"),
        (NodeClassRef(kind="AKSNodeClass", name="default"), "azure"),
    ],
)
def test_the_node_class_of_a_pool_decides_its_cloud(reference: NodeClassRef, cloud: str) -> None:
    pool = node_pool("p", node_class=reference)
    assert [place.cloud for place in places_of_cluster([], [], [pool])] == [cloud]
    elsewhere = node("n", labels={ZONE: "us-east-1a"})
    assert cloud in {place.cloud for place in places_of_cluster([elsewhere], [], [pool])}


def test_a_pool_that_names_zones_launches_there() -> None:
    pool = node_pool("p", node_class=EC2, requirements=[(ZONE, "In", "eu-north-1a", "eu-north-1b")])
    (place,) = places_of_cluster([], [], [pool])
    assert (place.cloud, place.region) == ("aws", "eu-north-1")
    assert [zone.name for zone in place.zones] == ["eu-north-1a", "eu-north-1b"]


def test_names_of_regions_differ_from_cloud_to_cloud() -> None:
    assert is_region("aws", "eu-west-1")
    assert is_region("gcp", "europe-west1")
    assert is_region("azure", "westeurope")
    assert not is_region("gcp", "eu-west-1")
    assert not is_region("aws", "europe-west1")
