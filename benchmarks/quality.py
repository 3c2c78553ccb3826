"""How good whole plans are: prefixes and the global search side by side, and how far both are from the least possible.

    python benchmarks/quality.py --clusters 20 --nodes 100 --json
    python benchmarks/quality.py --first 1001 --clusters 5      # clusters of other seeds
    python benchmarks/quality.py --only 3 7                     # some of them

At eviction price 0 and at the default: price before and after, evictions, commands, seconds of processor time, and the
ratio to two lower bounds: that of a linear programme, and the best that is proven. At the end: which targets are met.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from clusters import catalog, generate
from outcomes import Bounds, Outcome, bounds_of, outcome_of

from karpool.disruption.settings import GLOBAL, DisruptionSettings
from karpool.packing.warmup import warm_up

PREFIX: Final = "prefix"
TOLERANCE: Final = 1e-6
MOST_ABOVE_LP: Final = 1.04
MOST_ABOVE_BEST: Final = 1.015
MOST_ABOVE_LP_AT_DEFAULT: Final = 1.05
LEAST_SAVED_PER_EVICTION: Final = 0.032
DEFAULT_PRICE: Final = DisruptionSettings(search=GLOBAL).effective_eviction_price


@dataclass(frozen=True)
class Case:
    """A cluster: its bounds, and the outcome of prefixes and of the global search at each price of an eviction."""

    seed: int
    bounds: Bounds
    prefix: Outcome
    searched: dict[float, Outcome]


def measure(seeds: Sequence[int], nodes: int, prices: Sequence[float], effort: int) -> Iterator[Case]:
    """Plan every cluster with both strategies."""
    machines = catalog()
    for seed in seeds:
        world = generate(nodes, seed)
        prefix = DisruptionSettings(search=PREFIX, complete_catalog=True)
        searched = {
            price: DisruptionSettings(search=GLOBAL, effort=effort, eviction_price=price, complete_catalog=True)
            for price in prices
        }
        yield Case(
            seed,
            bounds_of(world, machines),
            outcome_of(world, machines, prefix),
            {price: outcome_of(world, machines, settings) for price, settings in searched.items()},
        )


def total(cases: Sequence[Case]) -> Case:
    """All clusters as one."""
    prices = cases[0].searched
    return Case(
        0,
        Bounds(sum(case.bounds.linear for case in cases), sum(case.bounds.best for case in cases)),
        Outcome.sum(case.prefix for case in cases),
        {price: Outcome.sum(case.searched[price] for case in cases) for price in prices},
    )


def targets(cases: Sequence[Case]) -> Iterator[dict[str, object]]:
    """What plans must reach, as far as the prices that were measured tell, and whether they do."""
    whole = total(cases)
    if 0.0 in whole.searched:
        free = whole.searched[0.0]
        above = [case.seed for case in cases if case.searched[0.0].after > case.prefix.after + TOLERANCE]
        yield {"target": "no cluster ends above prefixes", "met": not above, "clusters": above}
        yield _most("sum / LP bound, eviction price 0", free.after / whole.bounds.linear, MOST_ABOVE_LP)
        yield _most("sum / best bound, eviction price 0", free.after / whole.bounds.best, MOST_ABOVE_BEST)
    if DEFAULT_PRICE in whole.searched:
        priced = whole.searched[DEFAULT_PRICE]
        ratio = priced.after / whole.bounds.linear
        yield _most(f"sum / LP bound, eviction price {DEFAULT_PRICE:g}", ratio, MOST_ABOVE_LP_AT_DEFAULT)
        each = priced.saved_per_eviction
        title = f"$/h saved per eviction, eviction price {DEFAULT_PRICE:g}"
        met = each >= LEAST_SAVED_PER_EVICTION
        usual = round(whole.prefix.saved_per_eviction, 4)
        yield {"target": title, "value": round(each, 4), "least": LEAST_SAVED_PER_EVICTION, "prefix": usual, "met": met}


def _most(title: str, value: float, most: float) -> dict[str, object]:
    return {"target": title, "value": round(value, 4), "most": most, "met": value <= most}


def case_document(case: Case) -> dict[str, Any]:
    """A case as JSON has it."""
    plans = {PREFIX: case.prefix, **{f"{GLOBAL} {price:g}": outcome for price, outcome in case.searched.items()}}
    return {
        "seed": case.seed,
        "priceBefore": round(case.prefix.before, 4),
        "linearBound": round(case.bounds.linear, 4),
        "bestBound": round(case.bounds.best, 4),
        "plans": {name: outcome_document(outcome, case.bounds) for name, outcome in plans.items()},
    }


def outcome_document(outcome: Outcome, bounds: Bounds) -> dict[str, Any]:
    """A plan as JSON has it."""
    return {
        "priceAfter": round(outcome.after, 4),
        "aboveLinear": round(outcome.after / bounds.linear, 4),
        "aboveBest": round(outcome.after / bounds.best, 4),
        "evictions": outcome.evictions,
        "savedPerEviction": round(outcome.saved_per_eviction, 4) if outcome.evictions else None,
        "commands": outcome.commands,
        "nodesAfter": outcome.nodes,
        "seconds": round(outcome.seconds, 2),
    }


def print_case(case: Case, title: str) -> None:
    """A case as lines of a table."""
    found = case_document(case)
    print(
        f"{title:>6}  before {found['priceBefore']:.2f}  LP bound {found['linearBound']:.2f}  "
        f"best bound {found['bestBound']:.2f}"
    )
    for name, row in found["plans"].items():
        each = "-" if row["savedPerEviction"] is None else f"{row['savedPerEviction']:.4f}"
        print(
            f"  {name:<14}{row['priceAfter']:>9.2f} $/h  x{row['aboveLinear']:.4f} LP  x{row['aboveBest']:.4f} best  "
            f"{row['evictions']:>6} evictions  {each:>7} $/h each  {row['commands']:>4} commands  "
            f"{row['nodesAfter']:>4} nodes  {row['seconds']:>7.2f} s"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--first", type=int, default=1, metavar="SEED", help="the seed of the first cluster")
    parser.add_argument("--only", type=int, nargs="+", metavar="SEED", help="just the clusters of these seeds")
    parser.add_argument("--eviction-prices", type=float, nargs="+", default=[0.0, DEFAULT_PRICE], metavar="PRICE")
    parser.add_argument("--effort", type=int, default=DisruptionSettings().effort)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    warm_up()
    cases = []
    for case in measure(
        given.only or range(given.first, given.first + given.clusters), given.nodes, given.eviction_prices, given.effort
    ):
        cases.append(case)
        if not given.json:
            print_case(case, str(case.seed))
    whole, reached = total(cases), list(targets(cases))
    if given.json:
        found = {
            "nodes": given.nodes,
            "clusters": [case_document(case) for case in cases],
            "sum": case_document(whole),
            "targets": reached,
        }
        print(msgspec.json.encode(found).decode())
        return
    print_case(whole, "sum")
    for row in reached:
        print("  ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
