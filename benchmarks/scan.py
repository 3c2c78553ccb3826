"""How fast every node of a cluster is looked at as a candidate: where its pods would go if it were gone.

python benchmarks/scan.py --nodes 5000 --json
python benchmarks/scan.py -f cluster.json --catalog catalog.json --json
python benchmarks/scan.py --growth                               500 to 10,000 nodes, one line each

A generated cluster has six pools of both architectures, spread, anti-affinity, DaemonSets and about 18 pods a node;
`--tight` fills the pools so far that about half of the candidates need a new node.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from cluster_nodes import catalog as generated_catalog
from clusters import generate

from karpool.catalog.instance_types import Catalog
from karpool.catalog.sources import open_catalog
from karpool.cluster.snapshot import Snapshot
from karpool.model.objects import Objects
from karpool.model.reading.loading import load
from karpool.packing.engine import Engine

GROWTH: Final = (500, 1000, 2000, 5000, 10000)
Figures = dict[str, float | int | str]


def measure(objects: Objects, catalog: Catalog, load_seconds: float) -> Figures:
    """Build the columns, then ask of every node that could go what would become of its pods."""
    start = time.perf_counter()
    engine = Engine(Snapshot(objects), catalog)
    built = time.perf_counter()
    fate = scan(engine)
    done = time.perf_counter()
    return {
        "nodes": len(objects.nodes),
        "pods": len(objects.pods),
        "candidates": sum(fate.values()),
        "loadSeconds": round(load_seconds, 3),
        "buildSeconds": round(built - start, 3),
        "scanSeconds": round(done - built, 3),
        "peakMemoryMB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _PER_MEGABYTE),
        "microsecondsPerCandidate": round((done - built) / max(1, sum(fate.values())) * 1e6, 1),
        **fate,
    }


_PER_MEGABYTE: Final = 1e6 if sys.platform == "darwin" else 1e3


def scan(engine: Engine) -> dict[str, int]:
    """How many candidates could be removed, replaced by one new node, or neither."""
    snapshot = engine.snapshot
    pods = snapshot.pods
    counts = {"removable": 0, "replaceable": 0, "stuck": 0}
    for node in snapshot.nodes.order.tolist():
        rows = [row for row in snapshot.pods_on(node) if pods.get(row).reschedulable]
        with engine.what_if() as trial:
            trial.remove((node,))
            placement = trial.place(rows)
            if placement.unplaced or placement.claims > 1:
                counts["stuck"] += 1
            elif placement.claims == 1:
                placement.ordered_types(0, placement.claim_requirements(0))
                counts["replaceable"] += 1
            else:
                counts["removable"] += 1
    return counts


def load_files(files: list[str], catalog: str | None) -> tuple[Objects, Catalog, float]:
    """Read a cluster and its catalogue as the command line does."""
    start = time.perf_counter()
    objects = load(files, stdin=sys.stdin.buffer).objects
    known = open_catalog(catalog)
    return objects, known, time.perf_counter() - start


def warm() -> None:
    """Load the compiled kernels, which no measurement should include."""
    scan(Engine(Snapshot(generate(20)), generated_catalog()))


def grow(*, tight: bool) -> None:
    """Each size in a process of its own, so that the memory of one does not count for the next."""
    for nodes in GROWTH:
        flags = ["--nodes", str(nodes), "--json", *(["--tight"] if tight else [])]
        subprocess.run([sys.executable, str(Path(__file__)), *flags], check=True)  # noqa: S603 - this very script


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000, help="size of a generated cluster (default 1000)")
    parser.add_argument("--tight", action="store_true", help="generate pools that are nearly full")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-f", dest="files", action="append", help="a cluster as kubectl prints it, instead")
    parser.add_argument("--catalog", help="with -f: the catalogue (default: built in)")
    parser.add_argument("--growth", action="store_true", help="500 to 10,000 nodes, one line each")
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    if asked.growth:
        grow(tight=asked.tight)
        return
    warm()
    if asked.files:
        objects, catalog, seconds = load_files(asked.files, asked.catalog)
    else:
        start = time.perf_counter()
        objects, catalog = generate(asked.nodes, asked.seed, tight=asked.tight), generated_catalog()
        seconds = time.perf_counter() - start
    result: Figures = {"benchmark": "scan", **measure(objects, catalog, seconds)}
    print(json.dumps(result) if asked.json else "  ".join(f"{name} {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
