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

GROUP: Final = "cluster.x-k8s.io/deployment-name"
GPU_SHARES: Final = "openb/gpu-milli"
PER_CPU, PER_GIBIBYTE = 0.033, 0.0044
PER_GPU: Final = {"": 0.0, "P100": 0.6, "T4": 0.35, "V100M16": 1.3, "V100M32": 1.6, "A10": 0.75, "G2": 0.9, "G3": 2.2}
"""$/h: about what public clouds ask; G2 and G3 are names that the trace gives to GPUs that it does not name."""
PODS: Final = 110
Row = Mapping[str, str]


class Shape(NamedTuple):
    """Machines of one kind."""

    cpu: int
    memory: int
    gpus: int
    model: str

    @property
    def name(self) -> str:
        gpus = f"-{self.gpus}x{self.model.lower()}" if self.gpus else ""
        return f"c{self.cpu // 1000}-m{self.memory // 1024}{gpus}"

    @property
    def price(self) -> float:
        """$/h."""
        whole = self.cpu / 1000 * PER_CPU + self.memory / 1024 * PER_GIBIBYTE + self.gpus * PER_GPU[self.model]
        return round(whole, 4)


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
    shapes = [shape_of(row) for row in trace.nodes]
    nodes = tuple(_node(row["sn"], shape) for row, shape in zip(trace.nodes, shapes, strict=True))
    pods = sorted(trace.pods, key=lambda row: (int(row["creation_time"]), row["name"]))
    return Objects(nodes=nodes, pods=tuple(_placed(pods, shapes, nodes)))


def shape_of(row: Row) -> Shape:
    """What kind of machine a node is."""
    return Shape(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"])


def _node(name: str, shape: Shape) -> Node:
    return node(
        name,
        pool=None,
        type=shape.name,
        zone="openb-a",
        cpu=f"{shape.cpu}m",
        memory=f"{shape.memory}Mi",
        pods=PODS,
        resources={GPU_SHARES: shape.gpus * 1000} if shape.gpus else {},
        labels={GROUP: shape.name},
    )


def _placed(rows: Sequence[Row], shapes: Sequence[Shape], nodes: Sequence[Node]) -> Iterator[Pod]:
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
    counts = Counter(shape_of(row) for row in trace.nodes)
    files.cluster.write_bytes(manifest(objects))
    files.catalog.write_bytes(msgspec.json.encode([_entry(shape) for shape in sorted(counts)]))
    sizes = {shape.name: {"minimum": 0, "maximum": count} for shape, count in counts.items()}
    files.sizes.write_bytes(msgspec.json.encode({"groups": sizes}))
    return files


def _entry(shape: Shape) -> dict[str, Any]:
    places = ((CAPACITY_TYPE, ON_DEMAND), (ZONE, "openb-a"))
    shares = {GPU_SHARES: str(shape.gpus * 1000)} if shape.gpus else {}
    return {
        "name": shape.name,
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
