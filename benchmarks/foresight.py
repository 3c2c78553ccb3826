"""What the controller makes of a cluster by itself if it foresees the scheduler's choice, and if it does not.

    python benchmarks/foresight.py --clusters 5 --nodes 40 --hours 3 --json

Generated clusters are handed to the controller on a virtual cluster, as `karpool run` has it: no pods come or go but
those that move. With --page, the table between `<!-- foresight -->` and `<!-- end -->` is made anew, from what --json
printed.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from clusters import catalog, generate

from karpool.catalog.instance_types import Catalog
from karpool.model.objects import Objects
from karpool.virtual.applied_plan import SchedulerName
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.initial_cluster import with_cluster
from karpool.virtual.scenario import Decisions, Policy, Scenario

HOUR: Final = 3600.0
SCHEDULERS: Final[tuple[SchedulerName, ...]] = ("LeastAllocated", "MostAllocated")


def lived(
    world: Objects, machines: Catalog, scheduler: SchedulerName, hours: float, *, foresees: bool
) -> dict[str, Any]:
    """What some hours of the controller come to."""
    scenario = with_cluster(Scenario(scheduler=scheduler), world)
    policy = Policy(decisions=Decisions(foresees_scheduler=foresees))
    cluster = VirtualCluster(scenario, machines, policy=policy, initial=world)
    before = price_of(cluster)
    cluster.run(hours * HOUR)
    summary = cluster.recorder.summary()
    return {
        "priceBefore": before,
        "priceAfter": price_of(cluster),
        "cost": summary.cost,
        "evictions": summary.evictions,
        "launches": summary.nodes_launched,
        "pendingPodSeconds": summary.pending_pod_seconds,
    }


def price_of(cluster: VirtualCluster) -> float:
    """$/h of all machines that run."""
    return sum(machine.price or 0.0 for machine in cluster.cloud.instances.values())


def measure(schedulers: Sequence[SchedulerName], seeds: range, nodes: int, hours: float) -> Iterator[dict[str, Any]]:
    """A row for each cluster and each way."""
    machines = catalog()
    for seed in seeds:
        world = generate(nodes, seed)
        for scheduler in schedulers:
            for foresees in (False, True):
                row = lived(world, machines, scheduler, hours, foresees=foresees)
                yield {"seed": seed, "scheduler": scheduler, "foreseen": foresees, "hours": hours, **row}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The sums of all clusters, a line for each way."""
    lines = [
        "| scheduler | foreseen | $/h before | after | cost, $ | evictions | nodes launched | pending pods, s |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for way in dict.fromkeys((row["scheduler"], row["foreseen"]) for row in rows):
        of_way = [row for row in rows if (row["scheduler"], row["foreseen"]) == way]
        names = ("priceBefore", "priceAfter", "cost", "evictions", "launches", "pendingPodSeconds")
        before, after, cost, evictions, launches, pending = (sum(row[name] for row in of_way) for name in names)
        lines.append(
            f"| {way[0]} | {'yes' if way[1] else 'no'} | {before:.2f} | {after:.2f} | {cost:.2f} | {evictions:,} "
            f"| {launches:,} | {pending:,.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--first", type=int, default=1, metavar="SEED", help="the seed of the first cluster")
    parser.add_argument("--scheduler", nargs="+", choices=SCHEDULERS, default=["LeastAllocated"])
    parser.add_argument("--json", action="store_true", help="print one JSON object for each cluster and way")
    parser.add_argument("--page", nargs=2, type=Path, metavar=("ROWS", "PAGE"), help="write the table of printed rows")
    given = parser.parse_args()
    if given.page is not None:
        rows = [msgspec.json.decode(line) for line in given.page[0].read_bytes().splitlines()]
        made, page = table(rows), given.page[1]
        pattern = r"(<!-- foresight -->\n).*?(?=<!-- end -->)"
        page.write_text(re.sub(pattern, lambda at: f"{at[1]}{made}\n", page.read_text(), flags=re.DOTALL))
        return
    rows = []
    for row in measure(given.scheduler, range(given.first, given.first + given.clusters), given.nodes, given.hours):
        rows.append(row)
        if given.json:
            print(msgspec.json.encode(row).decode(), flush=True)
    if not given.json:
        print(table(rows))


if __name__ == "__main__":
    main()
