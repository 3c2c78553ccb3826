"""How good whole plans of prefixes are, by order of candidates and by partition.

    python benchmarks/order.py --clusters 20 --nodes 100 --json

For each setting: the sum over all clusters of the price before and after, of evictions, and of steps.
"""

import argparse
from itertools import product

import msgspec
from clusters import catalog, generate
from outcomes import Outcome, outcome_of

from karpool.disruption.settings import DisruptionSettings, Order, Partition


def measure(count: int, nodes: int) -> list[dict[str, object]]:
    """Plan the same clusters under every setting."""
    machines = catalog()
    worlds = [generate(nodes, seed) for seed in range(1, count + 1)]
    found: list[dict[str, object]] = []
    for order, partition in product(Order, Partition):
        settings = DisruptionSettings(order=order, partition=partition, search="prefix", complete_catalog=True)
        total = Outcome.sum(outcome_of(world, machines, settings) for world in worlds)
        found.append(
            {
                "order": order.value,
                "partition": partition.value,
                "priceBefore": round(total.before, 4),
                "priceAfter": round(total.after, 4),
                "savedPercent": round(100 * total.saved / total.before, 2),
                "evictions": total.evictions,
                "evictionsPerDollarSaved": round(total.evictions / total.saved, 2),
                "steps": total.commands,
                "nodesAfter": total.nodes,
                "seconds": round(total.seconds, 2),
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
