"""How long a day of a virtual cluster takes: about 300 nodes and 5,000 pods at its peak.

python benchmarks/simulation.py --hours 24 --scale 1.0 --search prefix --json
"""

import argparse
import resource
import time
from random import Random

import msgspec

from karpool.catalog.sources import open_catalog
from karpool.packing.warmup import warm_up
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.curves import Curve, Hour, Noise
from karpool.virtual.scenario import Decisions, Policy, Protection, Scenario, ScenarioWorkload, read_scenario
from karpool.wire.quantity import parse_quantity

SEARCHES = ("prefix", "global")
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


def measure(hours: float, scale: float, search: str) -> dict[str, object]:
    """Run the cluster and tell what it took."""
    warm_up()
    policy = Policy(decisions=Decisions(search=search, effort=0))
    cluster = VirtualCluster(scenario(scale), open_catalog("kwok"), policy=policy)
    start, processor = time.perf_counter(), time.process_time()
    cluster.run(hours * 3600)
    found = cluster.recorder.summary()
    return {
        "benchmark": "simulation",
        "hours": hours,
        "search": search,
        "events": cluster.queue.done,
        "mostNodes": max(sample.nodes for sample in cluster.recorder.samples),
        "mostPods": max(sample.pods for sample in cluster.recorder.samples),
        "nodeHours": round(found.node_hours, 1),
        "evictions": found.evictions,
        "seconds": round(time.perf_counter() - start, 2),
        "processorSeconds": round(time.process_time() - processor, 2),
        "peakMemoryMB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--search", choices=SEARCHES, default="prefix", help="global searches with effort 0")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    found = measure(given.hours, given.scale, given.search)
    if given.json:
        print(msgspec.json.encode(found).decode())
    else:
        print("\n".join(f"{name:>16}  {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
