"""What kernels are given: the snapshot's columns by name, and how long each axis has to be."""

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.resources import ATTACH
from karpool.cluster.snapshot import Snapshot
from karpool.packing.kernels import columns as c
from karpool.packing.kernels.memory import ragged_arrays
from karpool.packing.pool_tables import PoolTables
from karpool.packing.tables import TableCache


def cluster_columns(snapshot: Snapshot, pools: PoolTables) -> dict[str, Array]:
    nodes, pods, classes, topology = snapshot.nodes, snapshot.pods, snapshot.classes, snapshot.topology
    return dict(
        live=nodes.live,
        shape=nodes.shape,
        free=nodes.free,
        domain=nodes.domain,
        head=nodes.head,
        node_of=pods.node_of,
        class_of=pods.class_of,
        labels_of=pods.labels_of,
        next_pod=pods.next,
        counted=pods.counted,
        class_signature=classes.signature,
        class_next=classes.next,
        class_refused=classes.refused,
        class_requests=classes.requests,
        class_ports=classes.ports_id,
        shared_start=classes.shared_rows.start,
        shared_length=classes.shared_rows.length,
        shared_row=classes.shared_rows.items,
        shared_column=classes.shared_columns.items,
        suits=snapshot.shapes.suits,
        seen_by=snapshot.shapes.seen_by,
        group_kind=topology.kind,
        group_key=topology.key,
        group_skew=topology.skew,
        group_min_domains=topology.min_domains,
        group_filter=topology.filter,
        group_row=topology.row,
        group_total=topology.total,
        by_domain=topology.by_domain,
        by_host=topology.by_host,
        nodes_seen=topology.nodes_seen,
        rank=topology.domains.rank,
        domains=np.array([len(values) for values in topology.domains.values], dtype=np.int32),
        sizes=_sizes(snapshot, pools),
        **ragged_arrays(
            owned=classes.owned,
            declared=classes.declared,
            blocked=classes.blocked_rows,
            taken=classes.taken_rows,
            counted_by=topology.counted_by,
            kept_off_by=topology.kept_off_by,
        ),
    )


def _sizes(snapshot: Snapshot, pools: PoolTables) -> Array:
    """How many there are of everything but nodes, which come and go."""
    names = snapshot.resources.names
    sizes = np.zeros(c.SIZES, dtype=np.int64)
    sizes[c.RESOURCES] = len(names)
    sizes[c.ORDINARY] = next((i for i, name in enumerate(names) if name.startswith(ATTACH)), len(names))
    sizes[c.TEMPLATES] = len(pools.templates)
    sizes[c.RESERVED_OFFERINGS] = len(pools.types.reserved)
    sizes[c.RESERVATION_IDS] = len(pools.reservation_ids)
    sizes[c.FILTERS] = len(snapshot.topology.filters)
    return sizes


def extents(snapshot: Snapshot, tables: TableCache) -> dict[str, int]:
    """How long every axis of the kernels' arrays has to be, and how many domains all keys have together."""
    topology, classes, pools = snapshot.topology, snapshot.classes, tables.pools
    keys, domains = topology.domains.size
    return {
        "nodes": len(snapshot.nodes.states),
        "pods": len(snapshot.pods.objects),
        "resources": len(snapshot.resources),
        "limits": len(snapshot.resources) + 1,
        "classes": classes.size,
        "signatures": len(classes.signatures),
        "port_sets": len(classes.port_sets),
        "labels": len(topology.label_sets),
        "shapes": snapshot.shapes.size,
        "groups": len(topology.groups),
        "filters": len(topology.filters),
        "host_rows": len(topology.host_rows),
        "keys": keys,
        "domains": domains,
        "known_domains": sum(map(len, topology.domains.values)),
        "templates": len(pools.templates),
        "types": len(pools.types.types),
        "reserved": len(pools.types.reserved),
        "reservations": len(pools.reservation_ids),
        "minimums": int(pools.min_length.max()),
        "values": len(pools.counted_values),
        "requirements": len(tables.requirements.requirements),
        "incoming": len(tables.requirements.incoming),
    }
