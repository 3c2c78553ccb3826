"""Clusters to measure on, made from a number of nodes and a seed: six pools, both architectures, three zones.

Deployments of 2 to 60 equal pods fill the nodes legally and unevenly: a few nodes are nearly empty, most are 40 to 95 %
full, and two pools, or all of them, are tight. To write one to files:

python benchmarks/clusters.py --nodes 500 --seed 1 -o cluster.json --catalog catalog.json
"""

import argparse
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from cluster_nodes import NOW, POOLS, ZONES, Pool, catalog, catalog_entries, new_claim, new_node, new_pool, pools_of
from cluster_pods import NAMESPACES, Filler, Named, Slot, daemon_pods, daemon_sets, runs_on

from karpool.catalog.instance_types import Catalog
from karpool.model.node import Node
from karpool.model.objects import Objects
from karpool.model.workloads import (
    DaemonSet,
    Namespace,
)
from karpool.wire.objects import Metadata, encode_value

UNITS: Final = (("cpu", "milli"), ("memory", "units"))


def generate(nodes: int, seed: int = 0, *, tight: bool = False) -> Objects:
    """A cluster with this many nodes and about 18 pods for each of them; the same for the same seed."""
    random = Random(seed)
    types = catalog()
    daemons = tuple(daemon_sets())
    slots = [_slot(index, pool, types, daemons, random, tight=tight) for index, pool in enumerate(pools_of(nodes))]
    everywhere = [pod for slot in slots for pod in daemon_pods(slot.node, daemons)]
    filler = Filler(slots, random)
    pods = (*everywhere, *filler.fill())
    return Objects(
        pods=pods,
        nodes=tuple(slot.node for slot in slots),
        node_pools=tuple(new_pool(pool) for pool in POOLS),
        node_claims=tuple(new_claim(slot.node, slot.pool, random) for slot in slots),
        pod_disruption_budgets=tuple(filler.budgets),
        daemon_sets=daemons,
        namespaces=tuple(Namespace(metadata=Metadata(name=name)) for name in (*NAMESPACES, "kube-system")),
    )


def _slot(
    index: int, pool: Pool, types: Catalog, daemons: tuple[DaemonSet, ...], random: Random, *, tight: bool
) -> Slot:
    size = random.choice(("large", "xlarge", "xlarge", "2xlarge", "2xlarge", "4xlarge", "4xlarge"))
    entry = types.by_name[f"{random.choice(pool.families)}.{size}"]
    created = NOW - timedelta(hours=random.randrange(2, 600))
    node = new_node(f"ip-10-0-{index // 250}-{index % 250}", pool, entry, ZONES[index % 3], created)
    full = fullness(random, tight=tight or pool.tight)
    return slot_of(node, pool, daemons, full)


def slot_of(node: Node, pool: Named, daemons: Sequence[DaemonSet], full: float) -> Slot:
    """A node that may be filled to such a share, with what its daemons leave of that."""
    held = [d.spec.template.spec for d in daemons if runs_on(d, node)]
    taken = [sum(getattr(spec.containers[0].resources.requests[key], unit) for spec in held) for key, unit in UNITS]
    room = [getattr(node.status.allocatable[key], unit) for key, unit in UNITS]
    cpu, memory = (int(amount * full) - used for amount, used in zip(room, taken, strict=True))
    return Slot(node, pool, cpu, memory, node.status.allocatable["pods"].units - len(held))


def fullness(random: Random, *, tight: bool) -> float:
    """How much of a node is taken: one in ten hardly anything, unless its pool is tight."""
    if tight:
        return random.uniform(0.97, 1.0)
    return random.uniform(0.02, 0.15) if random.random() < 0.1 else random.triangular(0.3, 1.0, 0.85)  # noqa: PLR2004


KINDS: Final = {
    "nodes": ("v1", "Node"),
    "node_pools": ("karpenter.sh/v1", "NodePool"),
    "node_claims": ("karpenter.sh/v1", "NodeClaim"),
    "daemon_sets": ("apps/v1", "DaemonSet"),
    "namespaces": ("v1", "Namespace"),
    "pod_disruption_budgets": ("policy/v1", "PodDisruptionBudget"),
    "pods": ("v1", "Pod"),
    "persistent_volumes": ("v1", "PersistentVolume"),
    "persistent_volume_claims": ("v1", "PersistentVolumeClaim"),
    "storage_classes": ("storage.k8s.io/v1", "StorageClass"),
    "csi_nodes": ("storage.k8s.io/v1", "CSINode"),
    "autoscaler_statuses": ("v1", "ConfigMap"),
}


def manifest(objects: Objects) -> bytes:
    """The cluster as `kubectl get -o json` prints it: one List."""
    encoder = msgspec.json.Encoder(enc_hook=encode_value)
    items = [
        b'{"apiVersion":"%s","kind":"%s",' % (version.encode(), kind.encode()) + encoder.encode(entry)[1:]
        for field, (version, kind) in KINDS.items()
        for entry in getattr(objects, field)
    ]
    return b'{"apiVersion":"v1","kind":"List","metadata":{},"items":[\n' + b",\n".join(items) + b"\n]}\n"


def main() -> None:
    """Write a cluster, and the catalogue that goes with it."""
    parser = argparse.ArgumentParser(description="Write a generated cluster and its catalogue to files.")
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tight", action="store_true", help="leave hardly any room")
    parser.add_argument("-o", "--output", type=Path, default=Path("cluster.json"))
    parser.add_argument("--catalog", type=Path)
    asked = parser.parse_args()
    made = generate(asked.nodes, asked.seed, tight=asked.tight)
    asked.output.write_bytes(manifest(made))
    if asked.catalog is not None:
        asked.catalog.write_bytes(msgspec.json.format(msgspec.json.encode(catalog_entries()), indent=1))
    print(f"{len(made.nodes)} nodes, {len(made.pods)} pods: {asked.output}")


if __name__ == "__main__":
    main()
