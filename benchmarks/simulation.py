"""How long a day of a virtual cluster takes: about 300 nodes and 5,000 pods at its peak.

python benchmarks/simulation.py --hours 24 --scale 1.0 --search prefix --json
python benchmarks/simulation.py --hours 0.5 --growth 1 5 1 --json
python benchmarks/simulation.py --idle 400
"""

import argparse
import resource
import time
from collections.abc import Sequence
from random import Random

import msgspec

from karpool.catalog.sources import open_catalog
from karpool.packing.warmup import warm_up
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.curves import Curve, Hour, Noise
from karpool.virtual.scenario import Decisions, Policy, Protection, Scenario, ScenarioWorkload, read_scenario
from karpool.wire.quantity import parse_quantity

SEARCHES = ("prefix", "global")
_HOUR = 3600.0
_SETTLED = 2 * _HOUR
_PODS_OF_A_NODE = 15
POOLS = """
pools:
- metadata: {name: general}
  spec:
    template:
      spec:
        requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: kubernetes.io/os, operator: In, values: [linux]}
        - {key: karpenter.kwok.sh/instance-cpu, operator: In, values: ["4", "8", "16"]}
    disruption: {consolidateAfter: 5m, budgets: [{nodes: "10%"}]}
"""


def scenario(scale: float) -> Scenario:
    """Fifty services that follow the day, ten databases, jobs and an agent on every node."""
    random = Random(1)
    workloads = [
        ScenarioWorkload(name="agent", kind="DaemonSet", cpu=parse_quantity("50m"), memory=parse_quantity("64Mi"))
    ]
    for number in range(50):
        peak = scale * random.choice([40, 80, 120, 160])
        day = [("04:00", 0.5), ("09:00", 1.0), ("17:00", 1.0), ("22:00", 0.5)]
        hours = tuple(Hour(at=at, value=peak * share) for at, share in day)
        workloads.append(
            ScenarioWorkload(
                name=f"web-{number}",
                cpu=parse_quantity(random.choice(["250m", "500m", "1"])),
                memory=parse_quantity(random.choice(["512Mi", "1Gi", "2Gi"])),
                replicas=Curve(hours=hours, noise=Noise(share=0.02)),
                protection=Protection(max_unavailable="20%"),
                deploys_per_day=1.0,
            )
        )
    for number in range(10):
        size = {"cpu": parse_quantity("1"), "memory": parse_quantity("4Gi")}
        held = Protection(max_unavailable=1)
        workloads.append(ScenarioWorkload(name=f"db-{number}", kind="StatefulSet", replicas=5, protection=held, **size))
    jobs = {"cpu": parse_quantity("1"), "memory": parse_quantity("1Gi")}
    workloads.append(ScenarioWorkload(name="jobs", kind="Job", replicas=Curve(base=100 * scale), **jobs))
    return msgspec.structs.replace(read_scenario(POOLS), workloads=tuple(workloads))


def quiet(nodes: int) -> Scenario:
    """Services that fill so many nodes and never want more or less."""
    size = {"cpu": parse_quantity("1"), "memory": parse_quantity("1Gi")}
    services = [
        ScenarioWorkload(name=f"web-{number}", replicas=Curve(base=nodes * _PODS_OF_A_NODE / 50), **size)
        for number in range(50)
    ]
    return msgspec.structs.replace(read_scenario(POOLS), workloads=tuple(services))


def run_on(cluster: VirtualCluster, until: float) -> float:
    """Let a cluster go on until so many seconds after its start; the processor time that this took."""
    processor = time.process_time()
    cluster.run(until)
    return time.process_time() - processor


def measure(hours: float, scale: float, search: str) -> dict[str, object]:
    """Run the cluster and tell what it took."""
    policy = Policy(decisions=Decisions(search=search, effort=0))
    cluster = VirtualCluster(scenario(scale), open_catalog("kwok"), policy=policy)
    start = time.perf_counter()
    processor = run_on(cluster, hours * _HOUR)
    found, changes = cluster.recorder.summary(), cluster.store.version
    return {
        "benchmark": "simulation",
        "hours": hours,
        "scale": scale,
        "search": search,
        "events": cluster.queue.done,
        "microsecondsPerEvent": microseconds(processor, cluster.queue.done),
        "changes": changes,
        "microsecondsPerChange": microseconds(processor, changes),
        "mostNodes": max(sample.nodes for sample in cluster.recorder.samples),
        "mostPods": max(sample.pods for sample in cluster.recorder.samples),
        "nodeHours": round(found.node_hours, 1),
        "evictions": found.evictions,
        "seconds": round(time.perf_counter() - start, 2),
        "processorSeconds": round(processor, 2),
        "peakMemoryMB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def growth(hours: float, scales: Sequence[float], search: str) -> dict[str, object]:
    """Run clusters of several sizes one after the other, and tell how much more an event costs than in the first."""
    runs = [measure(hours, scale, search) for scale in scales]
    costs = [float(str(run["microsecondsPerEvent"])) for run in runs]
    return {"benchmark": "simulation", "sizes": runs, "ratios": [round(cost / costs[0], 2) for cost in costs]}


def idle(nodes: int, search: str) -> dict[str, object]:
    """Let a cluster settle in which nothing is asked for any more, and tell what an hour of it costs."""
    policy = Policy(decisions=Decisions(search=search, effort=0))
    cluster = VirtualCluster(quiet(nodes), open_catalog("kwok"), policy=policy)
    run_on(cluster, _SETTLED)
    events, polls = cluster.queue.done, cluster.controller.turns
    processor = run_on(cluster, _SETTLED + _HOUR)
    polls = cluster.controller.turns - polls
    return {
        "benchmark": "simulation",
        "idleNodes": len(cluster.store.nodes),
        "idlePods": len(cluster.store.pods),
        "events": cluster.queue.done - events,
        "polls": polls,
        "microsecondsPerPoll": microseconds(processor, polls),
        "processorSeconds": round(processor, 3),
    }


def microseconds(seconds: float, number: int) -> float:
    """Processor time of one of so many."""
    return round(seconds / max(1, number) * 1e6, 1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--search", choices=SEARCHES, default="prefix", help="global searches with effort 0")
    parser.add_argument("--growth", type=float, nargs="+", metavar="SCALE", help="compare an event of these sizes")
    parser.add_argument("--idle", type=int, metavar="NODES", help="an hour of a cluster in which nothing happens")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    warm_up()
    if given.idle:
        found = idle(given.idle, given.search)
    elif given.growth:
        found = growth(given.hours, given.growth, given.search)
    else:
        found = measure(given.hours, given.scale, given.search)
    if given.json:
        print(msgspec.json.encode(found).decode())
    else:
        print("\n".join(f"{name:>22}  {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
