"""How long a plan takes from file to output, where the time goes, what it needs and how good it is.

    python benchmarks/plan.py --nodes 5000 [--search prefix] [--steps 1] --json
    python benchmarks/plan.py --nodes 100 500 1000 2000 5000      # prefixes and the global search side by side
    python benchmarks/plan.py --interactive                       # what the least effort finds at 300 nodes

Each plan is made by a process of its own, at eviction price 0 unless told otherwise. Seconds are processor time.
`aboveBound` is the ratio of the end price to the lower bound of a linear programme.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
from clusters import NOW, catalog, catalog_entries, generate, manifest
from outcomes import evictions, linear_bound_of

from karpool.catalog.sources import open_catalog
from karpool.disruption.command import Cause
from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import Plan, Planner, context_of
from karpool.disruption.settings import GLOBAL, DisruptionSettings
from karpool.model.reading.loading import load
from karpool.packing.options import Options
from karpool.packing.warmup import warm_up
from karpool.report.plans.assemble import plan_document
from karpool.report.plans.document import to_json
from karpool.report.plans.plan_table import print_plan
from karpool.report.terminal import Screen

PREFIX: Final = "prefix"
INTERACTIVE: Final = 300
"""Nodes of a cluster that someone looks at while a plan is made."""
Figures = dict[str, Any]


def measure(folder: Path, given: argparse.Namespace) -> Figures:
    """Plan a generated cluster from its files, phase by phase."""
    cluster, prices = folder / "cluster.json", folder / "catalog.json"
    cluster.write_bytes(manifest(generate(given.nodes[0], given.seed)))
    prices.write_bytes(msgspec.json.encode(catalog_entries()))
    settings = settings_of(given)
    warm_up()
    marks = [time.process_time()]
    planned: list[float] = []

    def mark() -> None:
        marks.append(time.process_time())

    def progress(what: str, done: int, _most: int | None) -> None:
        if what == "Planning steps" and done == len(planned) + 1:
            planned.append(time.process_time())

    objects = load([str(cluster)], stdin=sys.stdin.buffer).objects
    machines = open_catalog(str(prices))
    mark()

    def made() -> DecisionContext:
        return context_of(objects, machines, now=NOW, settings=settings, options=Options())

    context = made()
    mark()
    plan = Planner(context, progress, afresh=made).plan(given.steps)
    mark()
    document = plan_document(plan)
    size = len(to_json(document))
    with redirect_stdout(StringIO()) as table:
        print_plan(document, Screen(table), every_node=False)
    mark()
    load_seconds, build, decide, report = (after - before for before, after in pairwise(marks))
    return {
        "nodes": given.nodes[0],
        "pods": len(objects.pods),
        "search": given.search[0],
        "effort": given.effort,
        "steps": len(plan.steps),
        "loadSeconds": round(load_seconds, 3),
        "buildSeconds": round(build, 3),
        "firstCommandSeconds": _since(marks[1], planned, 0),
        "firstConsolidationSeconds": _since(marks[1], planned, _first_consolidation(plan)),
        "decideSeconds": round(decide, 3),
        "reportSeconds": round(report, 3),
        "totalSeconds": round(marks[-1] - marks[0], 3),
        "peakMemoryMB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "priceBefore": round(plan.before.price, 4),
        "priceAfter": round(plan.after.price, 4),
        "evictions": evictions(plan),
        "savedPercent": round(document.savings.percent or 0.0, 2),
        "documentMB": round(size / 1e6, 1),
    }


def _first_consolidation(plan: Plan) -> int:
    """The place of the first command that is neither about empty nodes nor about drift."""
    causes = [step.command.cause for step in plan.steps]
    return causes.index(Cause.UNDERUTILIZED) if Cause.UNDERUTILIZED in causes else len(causes)


def _since(start: float, planned: list[float], place: int) -> float | None:
    return round(planned[place] - start, 3) if place < len(planned) else None


def settings_of(given: argparse.Namespace) -> DisruptionSettings:
    return DisruptionSettings(
        search=given.search[0], effort=given.effort, eviction_price=given.eviction_price, complete_catalog=True
    )


def side_by_side(given: argparse.Namespace) -> Iterator[Figures]:
    """Every size with every strategy, and the bound of each size."""
    for nodes in given.nodes:
        bound = linear_bound_of(generate(nodes, given.seed), catalog()) if given.bound else None
        for search in given.search:
            found = in_its_own_process(given, nodes=nodes, search=search, effort=given.effort)
            above = {} if bound is None else {"aboveBound": round(found["priceAfter"] / bound, 4)}
            yield {**found, **above}


def interactive(given: argparse.Namespace) -> Iterator[Figures]:
    """Prefixes, the least effort and the usual effort, and which share of the gain the least effort has."""
    usual = DisruptionSettings().effort
    settings = [(PREFIX, usual), (GLOBAL, 0), (GLOBAL, usual)]
    prefix, quick, full = (
        in_its_own_process(given, nodes=INTERACTIVE, search=search, effort=effort) for search, effort in settings
    )
    gain = prefix["priceAfter"] - full["priceAfter"]
    yield prefix
    yield {**quick, "shareOfGain": round((prefix["priceAfter"] - quick["priceAfter"]) / gain, 3) if gain else None}
    yield full


def in_its_own_process(given: argparse.Namespace, *, nodes: int, search: str, effort: int) -> Figures:
    """So that one plan does not warm up or fill the memory of the next."""
    options = {"nodes": nodes, "search": search, "effort": effort, "seed": given.seed, "steps": given.steps}
    options["eviction-price"] = given.eviction_price
    told = [f"--{name}={value}" for name, value in options.items() if value is not None]
    command = [sys.executable, __file__, "--alone", *told]
    return msgspec.json.decode(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout, type=Figures)  # noqa: S603 - this file


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[200])
    parser.add_argument("--search", nargs="+", default=[PREFIX, GLOBAL])
    parser.add_argument("--effort", type=int, default=DisruptionSettings().effort)
    parser.add_argument("--eviction-price", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, help="stop after so many commands; otherwise plan to the end")
    parser.add_argument("--no-bound", dest="bound", action="store_false", help="leave out the lower bound")
    parser.add_argument("--interactive", action="store_true", help=f"the least effort at {INTERACTIVE} nodes")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each plan")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        with tempfile.TemporaryDirectory() as folder:
            print(msgspec.json.encode(measure(Path(folder), given)).decode())
        return
    for found in interactive(given) if given.interactive else side_by_side(given):
        if given.json:
            print(msgspec.json.encode(found).decode(), flush=True)
        else:
            print("\n".join(f"{name:>20}  {value}" for name, value in found.items()), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
