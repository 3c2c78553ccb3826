"""How good whole plans are, by order of candidates, by partition and by search strategy.

    python benchmarks/quality.py --clusters 20 --nodes 100 --json

For each setting: the sum over all clusters of the price before and after, of evictions, and of steps.
"""

import argparse
import time
from itertools import product

import msgspec
from clusters import NOW, catalog, generate

from karpool.disruption.plan import plan
from karpool.disruption.search import STRATEGIES
from karpool.disruption.settings import DisruptionSettings, Order, Partition


def measure(count: int, nodes: int) -> list[dict[str, object]]:
    """Plan the same clusters under every setting."""
    machines = catalog()
    worlds = [generate(nodes, seed) for seed in range(1, count + 1)]
    found = []
    for order, partition, search in product(Order, Partition, STRATEGIES):
        settings = DisruptionSettings(order=order, partition=partition, search=search, complete_catalog=True)
        start = time.perf_counter()
        plans = [plan(world, machines, now=NOW, settings=settings) for world in worlds]
        before = sum(made.before.price for made in plans)
        after = sum(made.after.price for made in plans)
        evictions = sum(move.source is not None for made in plans for step in made.steps for move in step.command.moves)
        found.append(
            {
                "order": order.value,
                "partition": partition.value,
                "search": search,
                "priceBefore": round(before, 4),
                "priceAfter": round(after, 4),
                "savedPercent": round(100 * (before - after) / before, 2),
                "evictions": evictions,
                "evictionsPerDollarSaved": round(evictions / (before - after), 2),
                "steps": sum(len(made.steps) for made in plans),
                "nodesAfter": sum(made.after.nodes for made in plans),
                "seconds": round(time.perf_counter() - start, 2),
            }
        )
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    found = measure(given.clusters, given.nodes)
    if given.json:
        print(msgspec.json.encode({"clusters": given.clusters, "nodes": given.nodes, "settings": found}).decode())
        return
    for row in found:
        print("  ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
