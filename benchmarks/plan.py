"""How long a plan takes, from file to output, and where the time goes.

python benchmarks/plan.py --nodes 5000 [--steps 1] --json
"""

import argparse
import resource
import sys
import tempfile
import time
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path

import msgspec
from clusters import NOW, catalog_entries, generate, manifest

from karpool.catalog.sources import open_catalog
from karpool.disruption.plan import Planner, context_of
from karpool.disruption.settings import DisruptionSettings
from karpool.model.loading import load
from karpool.packing.options import Options
from karpool.packing.warmup import warm_up
from karpool.report.assemble import plan_document
from karpool.report.document import to_json
from karpool.report.plan_table import print_plan
from karpool.report.terminal import Screen


def measure(folder: Path, nodes: int, seed: int, steps: int | None) -> dict[str, object]:
    """Plan a generated cluster from its files, phase by phase."""
    cluster, prices = folder / "cluster.json", folder / "catalog.json"
    cluster.write_bytes(manifest(generate(nodes, seed)))
    prices.write_bytes(msgspec.json.encode(catalog_entries()))
    warm_up()
    marks = [time.perf_counter()]

    def mark() -> None:
        marks.append(time.perf_counter())

    objects = load([str(cluster)], stdin=sys.stdin.buffer).objects
    catalog = open_catalog(str(prices))
    mark()
    context = context_of(objects, catalog, now=NOW, settings=DisruptionSettings(), options=Options())
    mark()
    plan = Planner(context).plan(steps)
    mark()
    document = plan_document(plan)
    size = len(to_json(document))
    with redirect_stdout(StringIO()) as table:
        print_plan(document, Screen(table), every_node=False)
    mark()
    load_seconds, build, decide, report = (after - before for before, after in pairwise(marks))
    return {
        "nodes": nodes,
        "pods": len(objects.pods),
        "steps": len(plan.steps),
        "loadSeconds": round(load_seconds, 3),
        "buildSeconds": round(build, 3),
        "decideSeconds": round(decide, 3),
        "reportSeconds": round(report, 3),
        "totalSeconds": round(marks[-1] - marks[0], 3),
        "savedPercent": round(document.savings.percent or 0.0, 2),
        "documentMB": round(size / 1e6, 1),
        "peakMemoryMB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, help="stop after so many commands; otherwise plan to the end")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), given.nodes, given.seed, given.steps)
    if given.json:
        print(msgspec.json.encode(found).decode())
    else:
        print("\n".join(f"{name:>14}  {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
