"""How long a what-if takes, and the blockers of a cluster, in processor time of one core.

    python benchmarks/what_if.py                        # 150, 300 and 3,000 nodes
    python benchmarks/what_if.py --nodes 300 --json
    python benchmarks/what_if.py --nodes 3000 --blockers 20

The question is as a worker process has it: read, and with kernels compiled.
"""

import argparse
import pickle
import time
from typing import Any, Final

import msgspec
from clusters import NOW, catalog, generate

from karpool.disruption.settings import DisruptionSettings
from karpool.disruption.what_if.answer import WhatIf
from karpool.disruption.what_if.blockers import blockers_of
from karpool.disruption.what_if.knobs import read_knobs
from karpool.disruption.what_if.question import Question
from karpool.disruption.what_if.quick import SOON, search_words
from karpool.packing.options import Options
from karpool.packing.warmup import warm_up

KNOBS: Final = (
    {"knob": "budgetsOff"},
    {"knob": "doNotDisruptOff"},
    {"knob": "gracePeriod", "value": "30m"},
    {"knob": "evictionPrice", "value": 0},
    {"knob": "nodeFee", "value": 0.01},
    {"knob": "forbidTypes", "instanceTypes": ["*.large"]},
    {"knob": "anyMachine"},
    {"knob": "spotToSpot", "value": True},
)


def measure(nodes: int, seed: int, blockers: int) -> dict[str, Any]:
    """Ask about a generated cluster, one knob after the other."""
    question = Question(generate(nodes, seed), catalog(), DisruptionSettings(complete_catalog=True), Options(), NOW)
    what_if = WhatIf(question)
    start = time.process_time()
    today = what_if.today.end
    figures: dict[str, Any] = {
        "nodes": nodes,
        "pods": len(question.objects.pods),
        "search": search_words(what_if.question.settings),
        "questionMB": round(len(pickle.dumps(question)) / 1e6, 1),
        "todaySeconds": round(time.process_time() - start, 2),
        "todayPrice": round(today.after.price, 2),
        "knobs": {},
    }
    for knob in KNOBS:
        start = time.process_time()
        then = what_if.ask(read_knobs(msgspec.json.encode([knob]))).then
        seconds = round(time.process_time() - start, 2)
        figures["knobs"][knob["knob"]] = {"seconds": seconds, "price": round(then.after.price, 2)}
    if blockers:
        start = time.process_time()
        found = blockers_of(WhatIf(question, global_up_to=SOON), blockers)
        figures["blockers"] = len(found.lifts)
        figures["blockersComputed"] = sum(lift.worth is not None for lift in found.lifts)
        figures["blockersSeconds"] = round(time.process_time() - start, 1)
    return figures


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description="Measure what-ifs.")
    parser.add_argument("--nodes", type=int, nargs="+", default=[150, 300, 3000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blockers", type=int, default=0, help="also compute so many blockers")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warm_up()
    for nodes in given.nodes:
        figures = measure(nodes, given.seed, given.blockers)
        if given.json:
            print(msgspec.json.encode(figures).decode())
            continue
        print(f"{nodes:,} nodes, {figures['pods']:,} pods, {figures['search']}: today {figures['todaySeconds']} s")
        for name, entry in figures["knobs"].items():
            print(f"  {name:18} {entry['seconds']:6.2f} s  {entry['price']:10,.2f} $/h")
        if given.blockers:
            computed, found = figures["blockersComputed"], figures["blockers"]
            print(f"  {computed} of {found} blockers in {figures['blockersSeconds']} s")


if __name__ == "__main__":
    main()
