"""Whether `karpool run` keeps its lease while it launches hundreds of nodes at once, on a real control plane.

PYTHONPATH=. python benchmarks/launch.py --pods 4000 --json

An empty pool and a workload of which fourteen pods fit on the largest node that is allowed. Every renewal of the lease
is seen by a watch of a process that does nothing else.
"""

import argparse
import asyncio
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from os import getloadavg
from pathlib import Path
from typing import Any, Final

import msgspec
from live_cluster import REPLICA_SETS, TYPES, LiveCluster, pod_spec
from tests.live.control_plane import ControlPlane

from karpool.kube.api_objects import Lease
from karpool.kube.client import Client
from karpool.kube.kubeconfig import find_target
from karpool.kube.reflector import Reflector
from karpool.kube.resources import LEASES
from karpool.live import resources as r
from live import ROOT, Running, until

LEASE: Final = "karpool"
SET: Final = 200
"""Pods of one ReplicaSet."""
CPU: Final = "1100m"
Figures = dict[str, Any]


@dataclass
class Renewals:
    """What a watch tells of the lease: when each renewal was written, by the writer's clock, and by whom."""

    times: list[float] = field(default_factory=list)
    holders: list[str] = field(default_factory=list)

    def put(self, lease: Lease) -> None:
        """It was written."""
        spec = lease.spec
        if lease.metadata.name == LEASE and spec.renew_time is not None and spec.holder_identity:
            self.times.append(spec.renew_time.timestamp())
            if self.holders[-1:] != [spec.holder_identity]:
                self.holders.append(spec.holder_identity)

    def remove(self, _lease: Lease) -> None:
        """It is gone, and with it who led."""
        self.holders.append("")

    def replace(self, leases: Sequence[Lease], _version: str) -> None:
        """These are all there are."""
        for lease in leases:
            self.put(lease)

    def gaps(self, since: float) -> list[float]:
        """Seconds between renewals, from the last one before a moment on."""
        first = max((at for at in self.times if at <= since), default=since)
        return [after - before for before, after in pairwise(sorted({at for at in self.times if at >= first}))]


async def measure(plane: ControlPlane, pods: int, quiet: float) -> Figures:
    """Start Karpool on an empty cluster, let it rest, and give it all pods at once."""
    async with Client(find_target(kubeconfig=plane.kubeconfig())) as client:
        await LiveCluster(client, 0, 0).make()
        plane.start_controller_manager("--node-monitor-grace-period=24h")
        plane.start_scheduler()
        plane.start_kwok("--node-lease-duration-seconds=0")
        renewals = Renewals()
        watch = asyncio.create_task(Reflector(client, LEASES, renewals, namespace="karpool").run())
        running = Running.start(plane.kubeconfig(), plane.folder)
        try:

            async def leads() -> bool:
                return await asyncio.to_thread(running.ready) and bool(renewals.times)

            await until(leads, "Karpool leads")
            await asyncio.sleep(quiet)
            before, began = list(renewals.times), time.time()
            found = await launch(client, pods)
            await asyncio.sleep(quiet)
            cpu, memory = running.cpu_seconds(), running.memory()["most"]
        finally:
            watch.cancel()
            running.stop()
        rest = [late - early for early, late in pairwise(before)]
        return {
            **found,
            "renewals": len(renewals.times) - len(before),
            "longestGapAtRestSeconds": round(max(rest, default=0.0), 2),
            "meanGapSeconds": round(statistics.fmean(renewals.gaps(began)), 2),
            "longestGapSeconds": round(max(renewals.gaps(began)), 2),
            "leaders": len(set(filter(None, renewals.holders))),
            "longestLoopSeconds": longest_hold((plane.folder / "karpool.log").read_text(encoding="utf-8")),
            "cpuSeconds": round(cpu, 1),
            "memoryMiB": memory,
            "load": round(getloadavg()[0], 1),
        }


async def launch(client: Client, pods: int) -> Figures:
    """Create the workload, and wait until all of it runs."""
    began = time.monotonic()
    for first in range(0, pods, SET):
        name = f"web-{first}"
        template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec(CPU)}
        selector = {"matchLabels": {"app": name}}
        spec = {"replicas": min(SET, pods - first), "selector": selector, "template": template}
        await client.create(REPLICA_SETS, {"metadata": {"name": name}, "spec": spec}, namespace="default")

    async def runs() -> bool:
        await asyncio.sleep(1)  # it costs the API server more than Karpool does
        sets = msgspec.json.decode(await client.raw("GET", REPLICA_SETS.path("default")))["items"]
        return sum(one["status"].get("readyReplicas", 0) for one in sets) >= pods

    await until(runs, "all pods run", 900)
    seconds = time.monotonic() - began
    nodes = len((await client.list(r.NODES)).items)
    return {"pods": pods, "nodes": nodes, "seconds": round(seconds, 1)}


def longest_hold(log: str) -> float:
    """How long the event loop was held up at most, by the log; short holds are not told."""
    told = re.findall(r'"event":"the event loop was held up".*?"seconds":([0-9.]+)', log)
    return max(map(float, told), default=0.0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=4000, help=f"fourteen on a node; types: {', '.join(TYPES)}")
    parser.add_argument("--quiet", type=float, default=20.0, help="seconds of rest before and after")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--keep", type=Path, help="a new folder for logs and the journal, to look at afterwards")
    given = parser.parse_args()
    script = ROOT / "scripts" / "ensure-kubernetes"
    programs = subprocess.run([script], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]  # noqa: S603
    with (
        tempfile.TemporaryDirectory() as temporary,
        ControlPlane(Path(programs), given.keep or Path(temporary) / "plane") as plane,
    ):
        found = asyncio.run(measure(plane, given.pods, given.quiet))
    if given.json:
        print(msgspec.json.encode(found).decode())
    else:
        print("\n".join(f"{name:<28}{value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
