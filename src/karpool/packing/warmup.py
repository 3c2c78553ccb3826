"""Compile the kernels before they are needed, by running each on a very small cluster."""

import numpy as np

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.cluster.snapshot import Snapshot
from karpool.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, ZONE
from karpool.model.node import Node, NodeStatus
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Container, Pod, PodSpec, Resources
from karpool.model.requirements import Requirements
from karpool.packing.candidate_pods import CandidatePods
from karpool.packing.directions import DirectedNode, Directions
from karpool.packing.engine import Engine
from karpool.packing.kernels.fullness import best, mask_nodes_with_room
from karpool.packing.refusals import refusals
from karpool.packing.scan import Scan
from karpool.packing.scheduler_choice import SchedulerChoice
from karpool.wire.objects import Metadata
from karpool.wire.quantity import parse_quantity

_SIZE = {"cpu": parse_quantity(1), "memory": parse_quantity("1Gi"), "pods": parse_quantity(1)}


def warm_up() -> None:
    """Run every kernel once; the compiled code stays on disk."""
    snapshot = Snapshot(_cluster())
    engine = Engine(snapshot, _catalog())
    rows = sorted(snapshot.pods.rows.values())
    with engine.what_if() as trial:
        trial.remove([0])
        trial.uncount(rows)
        trial.place(rows[1:2], directions=Directions((DirectedNode("pool", Requirements()),), {rows[1]: -2}))
        for pod in trial.place(rows).unplaced:
            refusals(engine, pod)
    candidate_pods = CandidatePods()
    candidate_pods.put(0, np.array(rows[:1], dtype=np.int32), [0], 1.0)
    open_ = np.zeros(len(snapshot.nodes.live), dtype=np.uint8)
    list(Scan(engine, candidate_pods.alone([0]), closed=open_, unready=open_).promising())
    _fill(snapshot)


def _fill(snapshot: Snapshot) -> None:
    """Run the kernels of a simple scheduler."""
    nodes, classes = snapshot.nodes, snapshot.classes
    usable, mask = np.ones(len(nodes.live), dtype=np.uint8), np.zeros(len(nodes.states), dtype=np.bool_)
    suited, wanted = snapshot.shapes.suits[classes.signature[0]], classes.requests[0, : len(snapshot.resources)]
    mask_nodes_with_room(usable, suited, nodes.shape, nodes.free, wanted, mask)
    alike = np.zeros(0, dtype=np.int64)
    best(nodes.order, mask, nodes.taken, nodes.room, usable, nodes.zone, wanted, alike, False)  # noqa: FBT003 - as in the kernel
    rows = sorted(snapshot.pods.rows.values())
    SchedulerChoice(snapshot, rows, without=[0]).places(rows)


def _cluster() -> Objects:
    """Two nodes with room for one small pod each, three such pods, and one that is too large for any place."""
    nodes = (_node("a"), _node("b"))
    return Objects(nodes=nodes, node_pools=(NodePool(metadata=Metadata(name="pool")),), pods=tuple(map(_pod, "abcd")))


def _node(name: str) -> Node:
    labels = {HOSTNAME: name, ZONE: "zone"}
    return Node(metadata=Metadata(name=name, labels=labels), status=NodeStatus(capacity=_SIZE, allocatable=_SIZE))


def _pod(name: str) -> Pod:
    container = Container(name="main", resources=Resources(requests={"cpu": parse_quantity(2 if name == "d" else 1)}))
    return Pod(
        metadata=Metadata(name=name, namespace="default", uid=name),
        spec=PodSpec(containers=(container,), node_name=name if name == "a" else ""),
    )


def _catalog() -> Catalog:
    sold = Requirements.of_labels({CAPACITY_TYPE: ON_DEMAND, ZONE: "zone"})
    return Catalog((InstanceType("type", sold, _SIZE, {}, (Offering(sold, 1.0),)),))
