"""Clusters as clouds make them, from a number of nodes and a seed: groups, pools, DaemonSets, budgets, volumes.

Nodes carry the labels, taints, names and provider ids of their cloud; its autoscaler's status, its NodePools and
NodeClaims are there where such clusters have them, and so are Fargate, Windows, virtual and control-plane nodes. To
write one to a file:

PYTHONPATH=. python benchmarks/cloud_clusters.py --cloud eks-groups --nodes 500 --seed 1 -o cluster.json
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from cloud_fleets import CLOUDS, Cloud, Fleet
from cloud_nodes import Seat, letters, machines_of, migs_of, new_node, vmss_of
from cloud_pods import guests_of, varied
from cluster_nodes import NOW
from cluster_pods import CONSTRAINTS, NAMESPACES, Audience, Filler, daemon_pods, daemon_sets
from clusters import fullness, manifest, slot_of
from msgspec.structs import replace
from tests.factories import claim_for, csi_node, namespace, node_pool
from tests.factories.clouds import UUID, autoscaler_status, status_text, status_yaml

from karpool.model.labels import ARCH, CAPACITY_TYPE, NODEPOOL, ON_DEMAND, OS, SPOT
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodeClassRef, NodePool
from karpool.model.objects import Objects
from karpool.model.reading.kinds import KINDS
from karpool.model.scheduling import Toleration
from karpool.model.workloads import ConfigMap

WITHOUT_ZONES: Final = tuple(kind for kind in CONSTRAINTS if "zone" not in kind)


def generate(name: str, nodes: int, seed: int = 0) -> Objects:
    """A cluster of one of the `CLOUDS` with about so many nodes; the same for the same seed."""
    cloud, random = CLOUDS[name], Random(f"{name} {nodes} {seed}")
    daemons = tuple(daemon_sets(cloud.daemons))
    made = [(new_node(seat, random), seat.fleet) for seat in _seats(cloud, nodes, random)]
    homes = [(node, fleet) for node, fleet in made if not fleet.guests]
    slots = [slot_of(node, fleet, daemons, fullness(random, tight=fleet.tight)) for node, fleet in homes]
    filler = Filler(
        slots,
        random,
        audiences=_audiences(homes),
        zones=cloud.zones,
        constraints=CONSTRAINTS if cloud.zones != ("",) else WITHOUT_ZONES,
    )
    work = varied(filler.fill(), {node.name: node for node, _ in made}, cloud, random)
    served = [node for node, fleet in made if fleet.manager not in ("fargate", "virtual")]
    system = [pod for node in served for pod in daemon_pods(node, daemons) if _linux(node)]
    guests = [pod for node, fleet in made for pod in guests_of(node, fleet, random)]
    pools = tuple(_pool(cloud, fleet) for fleet in cloud.fleets if fleet.pooled)
    return Objects(
        nodes=tuple(node for node, _ in made),
        pods=(*system, *work.pods, *guests),
        node_pools=pools,
        node_claims=tuple(_claim(node, pools, random) for node, fleet in made if fleet.pooled),
        pod_disruption_budgets=tuple(filler.budgets),
        daemon_sets=daemons,
        persistent_volumes=work.volumes,
        persistent_volume_claims=work.claims,
        storage_classes=work.classes,
        csi_nodes=tuple(csi_node(node.name, **{cloud.driver: cloud.attachments}) for node in served if cloud.driver),
        namespaces=tuple(map(namespace, (*NAMESPACES, "kube-system"))),
        autoscaler_statuses=tuple(_statuses(cloud, made, random)),
    )


def _seats(cloud: Cloud, nodes: int, random: Random) -> Iterator[Seat]:
    number = 0
    for fleet, count in zip(cloud.fleets, _counts(cloud, nodes), strict=True):
        for place in range(count):
            created = NOW - timedelta(hours=random.randrange(2, 600))
            zone, kind = cloud.zones[place % len(cloud.zones)], random.choice(fleet.types)
            yield Seat(cloud, fleet, number, zone, kind, letters(random, 16), created.strftime("%Y-%m-%dT%H:%M:%SZ"))
            number += 1


def _counts(cloud: Cloud, nodes: int) -> list[int]:
    """Nodes of each fleet: at least one, and for those with a share what is left in proportion."""
    left = max(0, nodes - sum(fleet.fixed for fleet in cloud.fleets))
    whole = sum(fleet.share for fleet in cloud.fleets)
    return [fleet.fixed or max(1, round(left * fleet.share / whole)) for fleet in cloud.fleets]


def _audiences(homes: Sequence[tuple[Node, Fleet]]) -> list[Audience]:
    """Who may run where: anything on nodes that are open to all, by architecture, and who has one fleet in mind."""
    samples = {fleet.name: (node, fleet) for node, fleet in homes}
    open_ones = [fleet for node, fleet in samples.values() if not node.spec.taints]
    shared = [({}, open_ones)]
    shared += [({ARCH: arch}, [f for f in open_ones if f.arch == arch]) for arch in sorted({f.arch for f in open_ones})]
    own = [_own_audience(node, fleet) for node, fleet in samples.values() if node.spec.taints or fleet.labels]
    return [*(Audience(tuple(fleet.name for fleet in fleets), asked) for asked, fleets in shared), *own]


def _own_audience(node: Node, fleet: Fleet) -> Audience:
    tolerated = tuple(Toleration(key=taint.key, operator="Exists") for taint in node.spec.taints)
    asked = {**fleet.labels, **({ARCH: fleet.arch} if fleet.arch != "amd64" else {})}
    return Audience((fleet.name,), asked, tolerated)


def _linux(node: Node) -> bool:
    return node.metadata.labels[OS] == "linux"


# -- Karpenter -------------------------------------------------------------------------------------------------------


def _pool(cloud: Cloud, fleet: Fleet) -> NodePool:
    group, kind = cloud.node_class
    return node_pool(
        fleet.name,
        requirements=[
            (ARCH, "In", fleet.arch),
            (CAPACITY_TYPE, "In", SPOT if fleet.spot else ON_DEMAND),
            *_families(cloud, fleet),
        ],
        labels=fleet.labels,
        taints=[_taint_text(taint) for taint in fleet.taints],
        budgets=("10%",),
        consolidate_after="5m",
        node_class=NodeClassRef(group=group, kind=kind, name="default"),
    )


def _families(cloud: Cloud, fleet: Fleet) -> Iterator[tuple[str, ...]]:
    """Which machines a pool takes, as the documents of its provider suggest it: by category or family."""
    key = _FAMILY_KEYS[cloud.node_class[0]]
    described = machines_of(cloud.provider, cloud.region)
    yield key, "In", *sorted({value for kind in fleet.types for value in described[kind].requirements[key].values})


_FAMILY_KEYS: Final = {
    "karpenter.k8s.aws": "karpenter.k8s.aws/instance-category",
    "eks.amazonaws.com": "eks.amazonaws.com/instance-category",
    "karpenter.azure.com": "karpenter.azure.com/sku-family",
}


def _taint_text(taint: Mapping[str, str]) -> str:
    return f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"


def _claim(node: Node, pools: Sequence[NodePool], random: Random) -> NodeClaim:
    pool = next(pool for pool in pools if pool.name == node.metadata.labels[NODEPOOL])
    claim = claim_for(node, last_pod_event=NOW - timedelta(minutes=random.randrange(10, 110)))
    metadata = replace(claim.metadata, name=f"{pool.name}-{letters(random, 5)}")
    template = pool.spec.template.spec
    return replace(
        claim,
        metadata=metadata,
        spec=replace(claim.spec, requirements=template.requirements, node_class_ref=template.node_class_ref),
        status=replace(claim.status, provider_id=node.spec.provider_id, allocatable=node.status.allocatable),
    )


# -- Cluster Autoscaler ----------------------------------------------------------------------------------------------


def _statuses(cloud: Cloud, made: Sequence[tuple[Node, Fleet]], random: Random) -> Iterator[ConfigMap]:
    """How small and large groups may be, under the names that the autoscaler of the cloud has for them."""
    if not cloud.status:
        return
    counts = Counter(fleet.name for _, fleet in made)
    sizes: dict[str, tuple[int, int]] = {}
    for fleet in cloud.fleets:
        if fleet.manager == "group" and fleet.sizes:
            parts = _scaled_names(cloud, fleet)
            least, most = random.randrange(2), 2 * counts[fleet.name] // len(parts) + 1
            sizes |= dict.fromkeys(parts, (least, most))
    text = status_yaml(sizes) if cloud.status == "yaml" else status_text(sizes)
    yield KINDS["ConfigMap"].decoder.decode(msgspec.json.encode(autoscaler_status(text)))


def _scaled_names(cloud: Cloud, fleet: Fleet) -> tuple[str, ...]:
    if cloud.style == "gke":
        project = "https://www.googleapis.com/compute/v1/projects/shop-prod/zones"
        migs = migs_of(cloud, fleet).items()
        return tuple(f"{project}/{zone}/instanceGroups/gke-shop-{fleet.name}-{code}-grp" for zone, code in migs)
    if cloud.style == "aks":
        return (vmss_of(fleet),)
    return (f"eks-{fleet.name}-{UUID}",) if cloud.style == "eks" else (f"MachineDeployment/default/{fleet.name}",)


def main() -> None:
    """Write a cluster to a file."""
    parser = argparse.ArgumentParser(description="Write a cluster as a cloud makes it to a file.")
    parser.add_argument("--cloud", choices=sorted(CLOUDS), default="eks-groups")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=Path("cluster.json"))
    asked = parser.parse_args()
    made = generate(asked.cloud, asked.nodes, asked.seed)
    asked.output.write_bytes(manifest(made))
    print(f"{len(made.nodes)} nodes, {len(made.pods)} pods: {asked.output}")


if __name__ == "__main__":
    main()
