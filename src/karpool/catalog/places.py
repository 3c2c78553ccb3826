"""Where a cluster is: the clouds, regions and zones that its nodes and its pools name.

A node says it by its provider id, by the labels of its cloud, or by the shape of its region's name. A pool says by its
node class which cloud launches its nodes; that decides, whatever the nodes around it are.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from karpool.catalog.price_data import AWS, AZURE, GCP
from karpool.model.labels import (
    AKS_CLASS,
    EC2_CLASS,
    EKS_CLASS,
    GCE_CLASS,
    KWOK_CLASS,
    REGION,
    ZONE,
    ZONE_ID,
    canonical,
)
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodeClassRef, NodePool

KWOK: Final = "kwok"
CLASSES: Final[Mapping[str, tuple[str, ...]]] = {
    AWS: (EC2_CLASS, EKS_CLASS),
    GCP: (GCE_CLASS,),
    AZURE: (AKS_CLASS,),
    KWOK: (KWOK_CLASS,),
}
DEFAULT_REGIONS: Final[Mapping[str, str]] = {AWS: "us-east-1", GCP: "us-central1", AZURE: "eastus"}
_KINDS: Final = {"ec2nodeclass": AWS, "awsnodetemplate": AWS, "gcenodeclass": GCP, "aksnodeclass": AZURE}
_PROVIDERS: Final = (("aws://", AWS), ("gce://", GCP), ("azure://", AZURE))
_DOMAINS: Final = (
    ("eks.amazonaws.com/", AWS),
    ("karpenter.k8s.aws/", AWS),
    ("cloud.google.com/", GCP),
    ("karpenter.k8s.gcp/", GCP),
    ("kubernetes.azure.com/", AZURE),
    ("karpenter.azure.com/", AZURE),
)
_SHAPES: Final = (
    (
        AWS,
        re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]{1,2}"),
        re.compile(r"(?P<region>[a-z]{2}(-[a-z]+)+?-[0-9]{1,2})[-a-z].*"),
    ),
    (GCP, re.compile(r"[a-z]+-[a-z]+[0-9]{1,2}"), re.compile(r"(?P<region>[a-z]+-[a-z]+[0-9]{1,2})-[a-z]")),
    (AZURE, re.compile(r"[a-z]+[0-9]?"), re.compile(r"(?P<region>[a-z]+[0-9]?)-[1-9]")),
)


class ZoneName(NamedTuple):
    """A zone as its account names it, and its id in all accounts; empty where that is not known."""

    name: str
    id: str = ""


class CloudRegion(NamedTuple):
    """A region of a cloud, and the zones of it that nodes or pools name."""

    cloud: str
    region: str
    zones: tuple[ZoneName, ...] = ()


def is_region(cloud: str, name: str) -> bool:
    """Whether a region of a cloud may be called so."""
    return any(shape.fullmatch(name) for owner, shape, _ in _SHAPES if owner == cloud)


def cloud_of_class(reference: NodeClassRef) -> str:
    """The cloud whose machines a node class launches; empty if it says nothing of that."""
    label = f"{reference.group}/{reference.kind.lower()}"
    named = next((cloud for cloud, labels in CLASSES.items() if label in labels), "")
    return named or _KINDS.get(reference.kind.lower(), "")


def places_of_cluster(
    nodes: Iterable[Node], claims: Iterable[NodeClaim] = (), pools: Iterable[NodePool] = ()
) -> tuple[CloudRegion, ...]:
    """The regions that a cluster is in or launches nodes in, by cloud and name."""
    zones: dict[tuple[str, str], dict[str, str]] = {}
    for labels, provider_id in _described(nodes, claims):
        cloud, region = place_of(labels, provider_id)
        if cloud and region:
            known = zones.setdefault((cloud, region), {})
            zone = _label(labels, ZONE)
            if zone:
                known[zone] = labels.get(ZONE_ID, "") or known.get(zone, "")
    for pool in pools:
        _add_pool(pool, zones)
    return tuple(
        CloudRegion(cloud, region, tuple(ZoneName(name, known[name]) for name in sorted(known)))
        for (cloud, region), known in sorted(zones.items())
    )


def _described(nodes: Iterable[Node], claims: Iterable[NodeClaim]) -> Iterable[tuple[Mapping[str, str], str]]:
    for node in nodes:
        yield node.metadata.labels, node.spec.provider_id
    for claim in claims:
        yield claim.metadata.labels, claim.status.provider_id


def _add_pool(pool: NodePool, zones: dict[tuple[str, str], dict[str, str]]) -> None:
    """Where a pool launches nodes: where it says, else where nodes of its cloud are, else in the usual region."""
    cloud = cloud_of_class(pool.spec.template.spec.node_class_ref)
    wanted = pool.requirements
    regions, named = (sorted(wanted[key].values) if key in wanted else () for key in (REGION, ZONE))
    for zone in named:
        owner, region = _by_shape("", zone)
        if region and owner == (cloud or owner) and owner in DEFAULT_REGIONS:
            zones.setdefault((owner, region), {}).setdefault(zone, "")
    for region in regions:
        if cloud in DEFAULT_REGIONS and is_region(cloud, region):
            zones.setdefault((cloud, region), {})
    if cloud in DEFAULT_REGIONS and not any(owner == cloud for owner, _ in zones):
        zones[cloud, DEFAULT_REGIONS[cloud]] = {}


def place_of(labels: Mapping[str, str], provider_id: str = "") -> tuple[str, str]:
    """The cloud and the region of a node, each empty if nothing says it."""
    cloud = next((name for prefix, name in _PROVIDERS if provider_id.startswith(prefix)), "")
    if not cloud:
        cloud = next((name for domain, name in _DOMAINS if any(key.startswith(domain) for key in labels)), "")
    region, zone = _label(labels, REGION), _label(labels, ZONE) or _zone_of_id(cloud, provider_id)
    owner, shown = _by_shape(region, zone)
    if not cloud:
        return (owner, shown) if owner != AZURE else ("", "")
    return cloud, region or (shown if owner == cloud else "")


def _zone_of_id(cloud: str, provider_id: str) -> str:
    """`aws:///us-east-1a/i-0` and `gce://project/us-central1-a/name` name the zone; Azure's ids do not."""
    parts = provider_id.partition("://")[2].split("/")
    return parts[1] if cloud in (AWS, GCP) and len(parts) > 1 else ""


def _by_shape(region: str, zone: str) -> tuple[str, str]:
    """The cloud whose regions or zones are named in such a way, and the region."""
    for cloud, _, shape in _SHAPES:
        if found := shape.fullmatch(zone):
            return cloud, region or found["region"]
    for cloud, shape, _ in _SHAPES:
        if region and shape.fullmatch(region):
            return cloud, region
    return "", ""


def _label(labels: Mapping[str, str], key: str) -> str:
    value = labels.get(key)
    return next((text for name, text in labels.items() if canonical(name) == key), "") if value is None else value
