"""How much dearer a plan ends if a scheduler places the pods as it likes, instead of where the plan has them.

    python benchmarks/applied.py --clusters 5 --nodes 60 --json

Plans are carried out on a virtual cluster (`karpool.virtual.applied_plan`): those that foresee nothing of the
scheduler, and those that foresee it (`--scheduler` of `karpool plan`), with the nodes that go later asking pods to stay
away.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from clusters import catalog, generate
from outcomes import evictions, planned

from karpool.catalog.instance_types import Catalog
from karpool.disruption.plan import Plan
from karpool.disruption.settings import GLOBAL, DisruptionSettings, Scoring
from karpool.model.objects import Objects
from karpool.virtual.applied_plan import AppliedPlan, SchedulerName

SCHEDULERS: Final[tuple[SchedulerName, ...]] = ("LeastAllocated", "MostAllocated")


@dataclass(frozen=True)
class Applied:
    """A plan and what it came to."""

    planned: Plan
    price: float
    evictions: int
    launched: int


def applied(world: Objects, machines: Catalog, made: Plan, scheduler: SchedulerName, *, steers: bool) -> Applied:
    """Carry a plan out."""
    run = AppliedPlan(world, machines, scheduler, steers=steers)
    run.apply(made)
    return Applied(made, run.price, run.evictions, run.launches)


def measure(searches: Sequence[str], count: int, nodes: int, first: int) -> Iterator[dict[str, Any]]:
    """Sums over clusters, for each strategy and each way to schedule, unforeseen and foreseen."""
    machines = catalog()
    worlds = [generate(nodes, seed) for seed in range(first, first + count)]
    for search in searches:
        settings = DisruptionSettings(search=search, complete_catalog=True)
        unforeseen = [planned(world, machines, settings) for world in worlds]
        for scheduler in SCHEDULERS:
            foresees = replace(settings, scheduler=Scoring(scheduler))
            for foreseen in (False, True):
                plans = [planned(world, machines, foresees) for world in worlds] if foreseen else unforeseen
                results = [
                    applied(world, machines, made, scheduler, steers=foreseen)
                    for world, made in zip(worlds, plans, strict=True)
                ]
                yield {"search": search, "scheduler": scheduler, "foreseen": foreseen, **sums(results)}


def sums(results: Sequence[Applied]) -> dict[str, Any]:
    """What plans said, and what they came to."""
    before, expected = (sum(getattr(result.planned, when).price for result in results) for when in ("before", "after"))
    price = sum(result.price for result in results)
    steps = [step for result in results for step in result.planned.steps]
    return {
        "priceBefore": round(before, 4),
        "pricePlanned": round(expected, 4),
        "priceReached": round(price, 4),
        "dearerPercent": round(100 * (price - expected) / expected, 2),
        "evictionsPlanned": sum(evictions(result.planned) for result in results),
        "evictions": sum(result.evictions for result in results),
        "launchesPlanned": sum(len(step.command.replacements) for step in steps),
        "launches": sum(result.launched for result in results),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--first", type=int, default=1, metavar="SEED", help="the seed of the first cluster")
    parser.add_argument("--search", nargs="+", default=["prefix", GLOBAL])
    parser.add_argument("--json", action="store_true", help="print one JSON object for each way")
    given = parser.parse_args()
    for row in measure(given.search, given.clusters, given.nodes, given.first):
        if given.json:
            print(msgspec.json.encode(row).decode(), flush=True)
        else:
            print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
