"""How fast pods that wait find new nodes: 400 types, one pool, the five-way mix, or 4,000 equal pods with preferences.

python benchmarks/scheduling.py --pods 5000 --json
python benchmarks/scheduling.py --preferences respect --json    the pods with preferences
python benchmarks/scheduling.py --growth                        100 to 20,000 pods, one line each

Timed from model objects to finished claims: columns, engine, placement, and the list of types of every new node.
"""

import argparse
import gc
import json
import time
from typing import Final

from workloads import PREFERENCE_PODS, Workload, diverse, preferring

from karpool.cluster.constraints import Preferences
from karpool.cluster.snapshot import Snapshot
from karpool.packing.engine import Engine
from karpool.packing.options import Options
from karpool.packing.result import PlacementResult
from karpool.packing.type_table import TypeTable

GROWTH: Final = (100, 500, 1000, 2000, 5000, 10000, 20000)
DEFAULT_PODS: Final = 5000


def measure(workload: Workload, preferences: Preferences, repeat: int) -> dict[str, float | int | str]:
    """Place all pods of a workload, several times from scratch; the best time counts."""
    best = float("inf")
    options = Options(preferences=preferences)
    for _ in range(repeat):
        gc.collect()
        start = time.perf_counter()
        result = place_all(workload, options)
        best = min(best, time.perf_counter() - start)
    return {
        "pods": len(workload.objects.pods),
        "unplaced": len(result.unplaced),
        "nodes": len(result.new_nodes),
        "seconds": round(best, 4),
        "podsPerSecond": round(len(workload.objects.pods) / best),
        "pricePerHour": round(total_price(workload, result), 4),
    }


def place_all(workload: Workload, options: Options) -> PlacementResult:
    """Place all pods of a workload, from model objects to new nodes."""
    snapshot = Snapshot(workload.objects, preferences=options.preferences)
    with Engine(snapshot, workload.catalog, options).what_if() as trial:
        return trial.place([snapshot.pods.rows[pod.key] for pod in workload.objects.pods]).result()


def total_price(workload: Workload, result: PlacementResult) -> float:
    """What all new nodes cost if each becomes the first of its types."""
    table = TypeTable(workload.catalog, reserved=True)
    numbers = {entry.name: number for number, entry in enumerate(workload.catalog.types)}
    return sum(float(table.cheapest(new.requirements)[numbers[new.instance_types[0]]]) for new in result.new_nodes)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, help=f"number of pods (default {DEFAULT_PODS}, with preferences 4000)")
    parser.add_argument(
        "--preferences", choices=[str(p) for p in Preferences], help="measure the pods with preferences"
    )
    parser.add_argument("--growth", action="store_true", help="100 to 20,000 pods, one line each")
    parser.add_argument("--repeat", type=int, default=3, help="measure so many times, report the best (default 3)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    place_all(diverse(20), Options())  # loads the compiled kernels
    for count in GROWTH if asked.growth else (asked.pods,):
        if asked.preferences and not asked.growth:
            workload = preferring(count or PREFERENCE_PODS)
        else:
            workload = diverse(count or DEFAULT_PODS)
        result = measure(workload, Preferences(asked.preferences or Preferences.RESPECT), asked.repeat)
        show({"benchmark": "scheduling", **result}, as_json=asked.json or asked.growth)


def show(result: dict[str, float | int | str], *, as_json: bool) -> None:
    """Print a result as JSON, or as words."""
    print(json.dumps(result) if as_json else "  ".join(f"{name} {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
