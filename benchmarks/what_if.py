"""How long a what-if takes, and the blockers of a cluster, in processor time of one core.

    PYTHONPATH=. python benchmarks/what_if.py                        # 150, 300 and 3,000 nodes
    PYTHONPATH=. python benchmarks/what_if.py --nodes 300 --json
    PYTHONPATH=. python benchmarks/what_if.py --nodes 3000 --blockers 20
    PYTHONPATH=. python benchmarks/what_if.py --nodes 3000 --cloud eks-groups eks-karpenter

The question is as a worker process has it: read, with kernels compiled, and with the plan of today, which is made once.
Each knob is turned twice; seconds are those of a processor, `wall` those of a clock.
"""

import argparse
import pickle
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import cloud_clusters
import msgspec
from cloud_fleets import CLOUDS
from clusters import NOW, catalog, generate

from karpool.cli.console_decider import ConsoleDecider
from karpool.cli.options.catalog_options import CatalogOpener
from karpool.cli.options.decision_options import Choices
from karpool.cluster.node_groups import GroupOptions
from karpool.disruption.settings import DisruptionSettings
from karpool.disruption.what_if.answer import WhatIf
from karpool.disruption.what_if.blockers import blockers_of
from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.knobs import read_knobs
from karpool.disruption.what_if.question import KnobError, Question
from karpool.disruption.what_if.quick import SOON, search_words
from karpool.model.owners import workload_of
from karpool.packing.options import Options
from karpool.packing.warmup import warm_up
from karpool.web.answers import FIRST_SECONDS

KNOBS: Final = (
    {"knob": "budgetsOff"},
    {"knob": "consolidateAfter", "value": "5m"},
    {"knob": "gracePeriod", "value": "30m"},
    {"knob": "consolidationPolicy", "value": "WhenEmptyOrUnderutilized"},
    {"knob": "weight", "value": 5},
    {"knob": "minimumSavings", "value": "5%"},
    {"knob": "nodeFee", "value": 0.01},
    {"knob": "evictionPrice", "value": 0},
    {"knob": "spotToSpot", "value": True},
    {"knob": "partition", "value": "none"},
    {"knob": "order", "value": "cost"},
    {"knob": "forbidTypes", "instanceTypes": ["*.large"]},
    {"knob": "anyMachine"},
    {"knob": "doNotDisruptOff"},
    {"knob": "requests", "cpu": 0.8, "memory": 0.8},
)


_TIMES: Final = (("seconds", "wall"), ("again", "againWall"))


def subject(cloud: str, nodes: int, seed: int) -> Question:
    """A generated cluster with its own catalogue, or one of a cloud with the prices that come with Karpool."""
    if not cloud:
        return Question(generate(nodes, seed), catalog(), DisruptionSettings(complete_catalog=True), Options(), NOW)
    choices = Choices(settings=DisruptionSettings(), options=Options(), now=NOW)
    decide = ConsoleDecider(CatalogOpener(), choices, GroupOptions(), moves=False)
    return decide(cloud_clusters.generate(cloud, nodes, seed)).subject


def largest_workload(question: Question) -> str:
    """The workload with most pods that a knob can name."""
    pods = (pod for pod in question.objects.pods if not pod.is_daemon)
    counts = Counter(map(workload_of, pods))
    return str(counts.most_common(1)[0][0])


def measure(cloud: str, nodes: int, seed: int, blockers: int) -> dict[str, Any]:
    """Ask about a cluster as the console does, one knob after the other, each twice."""
    question = subject(cloud, nodes, seed)
    what_if = WhatIf(question, seconds=FIRST_SECONDS)
    start = time.process_time()
    today = what_if.today.end
    figures: dict[str, Any] = {
        "cluster": cloud or "generated",
        "nodes": len(question.objects.nodes),
        "pods": len(question.objects.pods),
        "search": search_words(what_if.question.settings),
        "questionMB": round(len(pickle.dumps(question)) / 1e6, 1),
        "todaySeconds": round(time.process_time() - start, 2),
        "todaySteps": today.steps,
        "todayPrice": round(today.after.price, 2),
        "knobs": {},
    }
    for knob in KNOBS:
        asked = {**knob, "workload": largest_workload(question)} if knob["knob"] == "requests" else knob
        try:
            knobs = read_knobs(msgspec.json.encode([asked]).decode())
            entry = _timed(what_if, knobs)
        except KnobError as problem:
            figures["knobs"][knob["knob"]] = {"problem": str(problem)}
            continue
        again = _timed(what_if, knobs)
        figures["knobs"][knob["knob"]] = {**entry, "again": again["seconds"], "againWall": again["wall"]}
    if blockers:
        start = time.process_time()
        found = blockers_of(WhatIf(question, global_up_to=SOON), blockers)
        figures["blockers"] = len(found.lifts)
        figures["blockersComputed"] = sum(lift.worth is not None for lift in found.lifts)
        figures["blockersSeconds"] = round(time.process_time() - start, 1)
    return figures


def _timed(what_if: WhatIf, knobs: Sequence[Knob]) -> dict[str, Any]:
    start, begun = time.process_time(), time.monotonic()
    answer = what_if.ask(knobs)
    seconds, wall = round(time.process_time() - start, 2), round(time.monotonic() - begun, 2)
    return {
        "seconds": seconds,
        "wall": wall,
        "price": round(answer.then.after.price, 2),
        "unchecked": 0 if answer.checked is None else answer.checked.unchecked,
        "stopped": answer.stopped,
    }


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description="Measure what-ifs.")
    parser.add_argument("--nodes", type=int, nargs="+", default=[150, 300, 3000])
    parser.add_argument("--cloud", choices=sorted(CLOUDS), nargs="+", help="clusters as clouds make them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blockers", type=int, default=0, help="also compute so many blockers")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warm_up()
    for cloud in given.cloud or [""]:
        for nodes in given.nodes:
            _print(measure(cloud, nodes, given.seed, given.blockers), given)


def _print(figures: dict[str, Any], given: argparse.Namespace) -> None:
    if given.json:
        print(msgspec.json.encode(figures).decode())
        return
    what = f"{figures['cluster']}: {figures['nodes']:,} nodes, {figures['pods']:,} pods, {figures['search']}"
    print(f"{what}: today {figures['todaySeconds']} s, {figures['todaySteps']:,} steps")
    for name, entry in figures["knobs"].items():
        if "problem" in entry:
            print(f"  {name:20} {entry['problem']}")
            continue
        stopped = f"  stopped, {entry['unchecked']:,} steps unchecked" if entry["stopped"] else ""
        times = (
            f"{entry['seconds']:6.2f} s ({entry['wall']:.2f}), again {entry['again']:.2f} s ({entry['againWall']:.2f})"
        )
        print(f"  {name:20} {times}  {entry['price']:10,.2f} $/h{stopped}", flush=True)
    if given.blockers:
        computed, found = figures["blockersComputed"], figures["blockers"]
        print(f"  {computed} of {found} blockers in {figures['blockersSeconds']} s")


if __name__ == "__main__":
    main()
