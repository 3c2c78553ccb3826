"""What `--search prefix` and `--search global` come to when a controller runs for days.

    python benchmarks/days.py --clusters 3 --nodes 60 --hours 24
    python benchmarks/days.py --scenario churn --policy grace-30m --hours 24

Generated clusters whose workload does not change, or a bundled scenario, on the virtual cluster, at effort 0.
"""

import argparse
import sys
from collections.abc import Iterator
from importlib import resources
from typing import Final

import msgspec
from clusters import catalog, generate

from karpool.catalog.overrides import parse_prices
from karpool.catalog.sources import open_catalog
from karpool.report.formatting import age
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.curves import seconds
from karpool.virtual.initial_cluster import with_cluster
from karpool.virtual.recorder import RunSummary
from karpool.virtual.scenario import Policy, Scenario, read_scenario

SEARCHES: Final = ("prefix", "global")
HOUR: Final = 3600.0
Run = tuple[str, str, RunSummary]


def searching(policy: Policy, search: str) -> Policy:
    """A policy with another search."""
    decisions = msgspec.structs.replace(policy.decisions, search=search, effort=0)
    return msgspec.structs.replace(policy, decisions=decisions)


def generated(clusters: int, nodes: int, hours: float) -> Iterator[Run]:
    """Clusters whose workload does not change."""
    machines = catalog()
    for seed in range(1, clusters + 1):
        objects = generate(nodes, seed)
        for search in SEARCHES:
            scenario = with_cluster(Scenario(), objects)
            cluster = VirtualCluster(scenario, machines, policy=searching(Policy(), search), initial=objects)
            cluster.run(hours * HOUR)
            yield f"{nodes} nodes, seed {seed}", search, cluster.recorder.summary()


def bundled(name: str, policy: str, hours: float) -> Iterator[Run]:
    """A scenario that comes with Karpool, under one of its policies."""
    file = resources.files("karpool.virtual") / "scenarios" / f"{name}.yaml"
    scenario = read_scenario(file.read_bytes())
    prices = parse_prices(tuple(f"{kind}={price}" for kind, price in scenario.prices.items()))
    machines = open_catalog(scenario.catalog, node_fee=scenario.node_fee, overrides=prices)
    for search in SEARCHES:
        cluster = VirtualCluster(scenario, machines, policy=searching(scenario.policies[policy], search))
        cluster.run(seconds(scenario.warm_up) + hours * HOUR)
        yield f"{name}, {policy}", search, cluster.recorder.summary()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--scenario", help="a bundled scenario, in place of generated clusters")
    parser.add_argument("--policy", help="one of its policies")
    given = parser.parse_args()
    if given.scenario:
        runs = bundled(given.scenario, given.policy, given.hours)
    else:
        runs = generated(given.clusters, given.nodes, given.hours)
    for name, search, found in runs:
        waited = age(found.pending_pod_seconds)
        cells = (name, f"`{search}`", f"{found.cost:,.2f} $", found.evictions, found.nodes_launched, waited)
        sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
