"""What `karpool run` needs, and how soon it reacts, on a real control plane whose nodes kwok plays.

PYTHONPATH=. python benchmarks/live.py --nodes 1000 --json

The programs are those of the live tests; `scripts/ensure-kubernetes` builds them. All nodes are full, so that every one
is looked at and none can go, until a fortieth of the workload is deleted. Heartbeats come as kubelets send them.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from live_cluster import GROUP, LiveCluster
from tests.live.control_plane import ControlPlane
from tests.live.programs import free_port

from karpool.kube.client import Client
from karpool.kube.kubeconfig import find_target
from karpool.live import resources as r

ROOT: Final = Path(__file__).resolve().parents[1]
MB: Final = 2**20
Figures = dict[str, Any]


@dataclass(frozen=True)
class Running:
    """A process of `karpool run`, and what it tells of itself."""

    process: subprocess.Popen[bytes]
    metrics_port: int
    health_port: int

    @classmethod
    def start(cls, kubeconfig: Path, folder: Path, *options: str) -> "Running":
        """Start it with the defaults of the command line, and these options."""
        metrics, health = free_port(), free_port()
        command = [
            Path(sys.executable).with_name("karpool"),
            "run",
            "--act",
            "--provider=kwok",
            f"--kubeconfig={kubeconfig}",
            f"--metrics-address=127.0.0.1:{metrics}",
            f"--health-address=127.0.0.1:{health}",
            f"--journal={folder / 'decisions.jsonl'}",
            *options,
        ]
        with (folder / "karpool.log").open("wb") as log:
            return cls(subprocess.Popen(command, stderr=log), metrics, health)  # noqa: S603 - our own program

    def ready(self) -> bool:
        """Whether its caches are filled."""
        with suppress(OSError):
            return bool(_get(f"http://127.0.0.1:{self.health_port}/readyz"))
        return False

    def series(self) -> dict[str, float]:
        """All metrics, by name and labels."""
        page = _get(f"http://127.0.0.1:{self.metrics_port}/metrics")
        lines = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    def passes(self) -> int:
        """How many passes of decisions it has told of."""
        return int(self.series()["karpool_decision_seconds_count"])

    def memory(self) -> dict[str, int]:
        """Resident memory now and at most, in MiB."""
        status = dict(line.split(":", 1) for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines())
        return {name: int(status[key].split()[0]) // 1024 for name, key in (("now", "VmRSS"), ("most", "VmHWM"))}

    def cpu_seconds(self) -> float:
        """Processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> float:
        """Ask it to stop; how many seconds that took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        return time.monotonic() - began


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as response:  # noqa: S310 - a port of our own
        return str(response.read().decode())


async def until(holds: Callable[[], Awaitable[bool]], what: str, seconds: float = 600.0) -> float:
    """Wait until something holds; how many seconds that took."""
    began = time.monotonic()
    while not await holds():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"after {seconds:g} s not yet: {what}")
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def measure(plane: ControlPlane, nodes: int, pods: int, idle: float) -> Figures:
    """Fill a cluster, let Karpool take it over, watch it do nothing, then give it something to do."""
    async with Client(find_target(kubeconfig=plane.kubeconfig())) as client:
        cluster = LiveCluster(client, nodes, pods)
        began = time.monotonic()
        await cluster.make()
        # Nobody waits for the leases of so many nodes: two cores would have little else to do.
        plane.start_controller_manager("--node-monitor-grace-period=24h")
        plane.start_scheduler()
        plane.start_kwok("--node-lease-duration-seconds=0")
        await until(cluster.settled, "all pods run")
        found: Figures = {"nodes": nodes, "pods": nodes * pods, "clusterSeconds": round(time.monotonic() - began, 1)}
        heartbeats = asyncio.create_task(cluster.heartbeats())
        running = Running.start(plane.kubeconfig(), plane.folder)
        try:
            found |= await take_over(running)
            found |= await do_nothing(running, idle)
            found |= await react(running, cluster)
        finally:
            heartbeats.cancel()
            found["stopSeconds"] = round(running.stop(), 2)
    return found


async def take_over(running: Running) -> Figures:
    """From the start of the process to the first decision."""

    async def ready() -> bool:
        return await asyncio.to_thread(running.ready)

    async def decided() -> bool:
        return await asyncio.to_thread(running.passes) > 0

    synced = await until(ready, "the caches are filled")
    first = await until(decided, "the first decision is made")
    return {
        "syncSeconds": round(synced, 2),
        "firstDecisionSeconds": round(synced + first, 2),
        "takeOverCpuSeconds": round(running.cpu_seconds(), 2),
        "takeOverRequests": _requests(running.series()),
    }


def _requests(series: dict[str, float]) -> Counter[str]:
    """How many requests were sent, by verb."""
    sent: Counter[str] = Counter()
    for name, value in series.items():
        if name.startswith("karpool_api_requests_total{"):
            sent[name.partition('verb="')[2].partition('"')[0]] += round(value)
    return sent


async def do_nothing(running: Running, seconds: float) -> Figures:
    """What is used while nothing changes but heartbeats."""
    before, cpu = running.series(), running.cpu_seconds()
    await asyncio.sleep(seconds)
    after = running.series()
    per_minute = 60 / seconds
    requests = {verb: round(number * per_minute) for verb, number in (_requests(after) - _requests(before)).items()}
    decision = "karpool_decision_seconds"
    return {
        "idleCpuSecondsPerMinute": round((running.cpu_seconds() - cpu) * per_minute, 2),
        "idleRequestsPerMinute": requests,
        "decisionSeconds": round(after[f"{decision}_sum"] / after[f"{decision}_count"], 3),
        "memoryMiB": running.memory(),
    }


async def react(running: Running, cluster: LiveCluster) -> Figures:
    """From a change to what Karpool does about it, with the waits that are its defaults."""
    client = cluster.client

    async def asked_for() -> bool:
        return len((await client.list(r.NODE_CLAIMS)).items) > cluster.nodes

    async def tainted() -> bool:
        nodes = (await client.list(r.NODES)).items
        return any(taint.key == "karpenter.sh/disrupted" for node in nodes for taint in node.spec.taints)

    async def gone() -> bool:
        left = {node.name for node in (await client.list(r.NODES)).items}
        return not left & emptied

    await cluster.add_pod()
    claimed = await until(asked_for, "a NodeClaim for a pod that waits", 120)
    emptied = await cluster.empty_nodes(max(GROUP, cluster.nodes // 40))
    began = time.monotonic()
    first = await until(tainted, "a taint on an empty node", 180)
    await until(gone, "all empty nodes are gone", 600)
    return {
        "pendingPodToClaimSeconds": round(claimed, 2),
        "emptyToTaintSeconds": round(first, 2),
        "emptied": len(emptied),
        "emptyToGoneSeconds": round(time.monotonic() - began, 2),
        "busyMemoryMiB": running.memory(),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20, help="on each node")
    parser.add_argument("--idle", type=float, default=60.0, help="seconds to watch it do nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--keep", type=Path, help="a new folder for logs and the journal, to look at afterwards")
    given = parser.parse_args()
    script = ROOT / "scripts" / "ensure-kubernetes"
    programs = subprocess.run([script], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]  # noqa: S603
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary) / "plane"
        with ControlPlane(Path(programs), folder) as plane:
            found = asyncio.run(measure(plane, given.nodes, given.pods, given.idle))
    if given.json:
        print(msgspec.json.encode(found).decode())
    else:
        for name, value in found.items():
            print(f"{name:<28}{dict(value) if isinstance(value, dict) else value}")


if __name__ == "__main__":
    main()
