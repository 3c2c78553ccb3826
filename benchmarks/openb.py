"""The trace `openb` of a production cluster with GPUs, as a cluster: its nodes, and all of its pods at once.

The trace says what nodes have and what pods ask for, not which pod ran where. So the pods are placed here as
kube-scheduler does by default: in the order in which they came, each on the node that it leaves emptiest; what finds no
room waits. A share of a GPU counts in thousandths; that a share must lie on one GPU is not looked at. Machines of one
kind make a node group, and cost what the list below says, which is a guess that is the same for all of them.
"""

import argparse
import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from clusters import manifest
from tests.factories import node, pod

from karpool.model.labels import CAPACITY_TYPE, ON_DEMAND, ZONE
from karpool.model.node import Node
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.recording.imports.openb import GPU_SHARES, TraceNode

GROUP: Final = "cluster.x-k8s.io/deployment-name"
PODS: Final = 110
Row = Mapping[str, str]


@dataclass(frozen=True)
class Trace:
    """The two tables."""

    nodes: list[Row]
    pods: list[Row]


class Files(NamedTuple):
    """A cluster, the prices of its machines, and the sizes of its groups."""

    cluster: Path
    catalog: Path
    sizes: Path


def trace_in(folder: Path) -> Trace | None:
    """The trace in a folder; None if it is not there."""
    tables = [folder / "openb" / name for name in ("nodes.csv", "pods.csv")]
    if not all(table.is_file() for table in tables):
        return None
    return Trace(*(list(csv.DictReader(table.read_text().splitlines())) for table in tables))


def cluster_of(trace: Trace) -> Objects:
    """The cluster with all pods of the trace that ask for something which is there."""
    shapes = [trace_node(row) for row in trace.nodes]
    nodes = tuple(_node(shape) for shape in shapes)
    pods = sorted(trace.pods, key=lambda row: (int(row["creation_time"]), row["name"]))
    return Objects(nodes=nodes, pods=tuple(_placed(pods, shapes, nodes)))


def trace_node(row: Row) -> TraceNode:
    """What a node has."""
    return TraceNode(row["sn"], int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"])


def _node(shape: TraceNode) -> Node:
    return node(
        shape.name,
        pool=None,
        type=shape.kind,
        zone="openb-a",
        cpu=f"{shape.cpu}m",
        memory=f"{shape.memory}Mi",
        pods=PODS,
        resources={GPU_SHARES: shape.gpus * 1000} if shape.gpus else {},
        labels={GROUP: shape.kind},
    )


def _placed(rows: Sequence[Row], shapes: Sequence[TraceNode], nodes: Sequence[Node]) -> Iterator[Pod]:
    """Each pod on the node that has the greatest part of its CPU and memory left with it."""
    room = np.array([(shape.cpu, shape.memory, shape.gpus * 1000, PODS) for shape in shapes], dtype=float)
    whole = room.copy()
    for row in rows:
        asked = np.array([int(row["cpu_milli"]), int(row["memory_mib"]), _gpu_shares(row), 1], dtype=float)
        allowed = (room >= asked).all(axis=1)
        if not allowed.any():
            yield _pod(row, None)
            continue
        left = ((room - asked) / whole.clip(1))[:, :2].mean(axis=1)
        chosen = int(np.where(allowed, left, -1.0).argmax())
        room[chosen] -= asked
        yield _pod(row, nodes[chosen].name)


def _gpu_shares(row: Row) -> int:
    """Thousandths of GPUs; whole ones where it asks for several."""
    count = int(row["num_gpu"])
    return count * 1000 if count != 1 else int(row["gpu_milli"])


def _pod(row: Row, where: str | None) -> Pod:
    shares = _gpu_shares(row)
    return pod(
        row["name"],
        node=where,
        pending=where is None,
        cpu=f"{row['cpu_milli']}m",
        memory=f"{row['memory_mib']}Mi",
        requests={GPU_SHARES: shares} if shares else {},
        labels={"app": row["name"], "qos": row["qos"]},
    )


# -- files -----------------------------------------------------------------------------------------------------------


def write(trace: Trace, folder: Path) -> Files:
    """The cluster and what a plan needs besides, as files."""
    files = Files(folder / "openb.json", folder / "openb-catalog.json", folder / "openb-groups.json")
    objects = cluster_of(trace)
    shapes = [trace_node(row) for row in trace.nodes]
    kinds = {shape.kind: shape for shape in sorted(shapes, key=lambda shape: shape[1:])}
    counts = Counter(shape.kind for shape in shapes)
    files.cluster.write_bytes(manifest(objects))
    files.catalog.write_bytes(msgspec.json.encode([_entry(shape) for shape in kinds.values()]))
    sizes = {kind: {"minimum": 0, "maximum": counts[kind]} for kind in kinds}
    files.sizes.write_bytes(msgspec.json.encode({"groups": sizes}))
    return files


def _entry(shape: TraceNode) -> dict[str, Any]:
    places = ((CAPACITY_TYPE, ON_DEMAND), (ZONE, "openb-a"))
    shares = {GPU_SHARES: str(shape.gpus * 1000)} if shape.gpus else {}
    return {
        "name": shape.kind,
        "architecture": "amd64",
        "resources": {"cpu": f"{shape.cpu}m", "memory": f"{shape.memory}Mi", "pods": str(PODS), **shares},
        "offerings": [
            {
                "Price": shape.price,
                "Requirements": [{"key": key, "operator": "In", "values": [value]} for key, value in places],
            }
        ],
    }


def main() -> None:
    """Write the trace as a cluster."""
    parser = argparse.ArgumentParser(description="Write the trace openb as a cluster, with prices and sizes of groups.")
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds openb/")
    parser.add_argument("-o", "--output", type=Path, default=Path(), help="the folder to write to")
    asked = parser.parse_args()
    found = trace_in(asked.data)
    if found is None:
        raise SystemExit(f"no traces in {asked.data}")
    print(*write(found, asked.output), sep="\n")


if __name__ == "__main__":
    main()
